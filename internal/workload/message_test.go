package workload_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// generated is an object of k8s.io/api.
type generated interface {
	metav1.Object
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal(message []byte) error
}

// builtinTypes is a new object of each kind that is read from protobuf.
func builtinTypes() map[string]generated {
	return map[string]generated{"Deployment": &appsv1.Deployment{}, "StatefulSet": &appsv1.StatefulSet{}, "DaemonSet": &appsv1.DaemonSet{}, "CronJob": &batchv1.CronJob{}}
}

// someTexts stand in every text of a random object: names, words of the API that are
// read, and our annotations.
var someTexts = []string{"", "web", "db", "ä \" \\", "valueFrom", "True", "False", "Progressing", "Available", "NewReplicaSetAvailable", "ProgressDeadlineExceeded", "OnDelete", "Recreate",
	"RollingUpdate", "Always", "apps/v1", "secrets-store.csi.k8s.io", "secretProviderClass", "configstamp.dev/inject", "configstamp.dev/baseline", "configstamp.dev/pause", `{"secret/db":"v1:absent"}`,
	"configmap.configstamp.dev/web", "reloader.stakater.com/auto", "configmap.reloader.stakater.com/reload", "web,db", "true", "v1:00"}

// filler writes something random into values; rare is how seldom it fills what may be empty.
type filler struct {
	*rand.Rand
	rare int
}

func (r filler) fill(v reflect.Value) {
	switch typed := v.Addr().Interface().(type) {
	case *metav1.Time:
		*typed = metav1.Unix(r.Int64N(2e9)+1, 0)
		return
	case *intstr.IntOrString:
		*typed = []intstr.IntOrString{intstr.FromInt32(2), intstr.FromString("30%")}[r.IntN(2)]
		return
	case *resource.Quantity:
		*typed = *resource.NewQuantity(r.Int64N(1e9), resource.BinarySI)
		return
	case *metav1.FieldsV1:
		*typed = *metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(r.rare) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				r.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if r.IntN(r.rare) == 0 {
			v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		}
		for i := range v.Len() {
			r.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(5) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			r.fill(key)
			r.fill(value)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(someTexts[r.IntN(len(someTexts))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, 1, 2, 2, 3, 600, -1, 1<<31 - 1, -1 << 31}[r.IntN(9)])
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(256)))
	default: // an interface stays nil
	}
}

func random(object generated, seed uint64, rare int) {
	r := filler{rand.New(rand.NewPCG(seed, 1)), rare}
	r.fill(reflect.ValueOf(object).Elem())
	if r.IntN(4) == 0 {
		object.SetDeletionTimestamp(nil)
	}
}

func messageOf(t testing.TB, object generated) []byte {
	t.Helper()
	message, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

// read is all that the controller asks of an object.
type read struct {
	Metadata      workload.Metadata
	Template      map[string]string
	Records       checksum.Records
	References    []checksum.Reference
	Unprobed      bool
	Foreign       *checksum.Foreign
	RolledByOwner bool
	Status        workload.Status
	Faults        []bool
}

func readAs(form workload.Reader, data []byte) (read, error) {
	object, err := form.Decode(data)
	if err != nil {
		return read{}, err
	}
	head, err := form.DecodeMetadata(data)
	if err != nil || !reflect.DeepEqual(head.Metadata, object.Metadata) {
		return read{}, fmt.Errorf("other metadata alone: %w", err)
	}
	found := read{Metadata: object.Metadata, Template: object.TemplateAnnotations(), RolledByOwner: object.RolledByOwner(append(workload.Builtin(), workload.Known()...))}
	var faults [2]error
	found.Records, faults[0] = object.Records()
	found.References, faults[1] = object.References()
	found.Unprobed = object.Template.Unprobed()
	found.Foreign = object.Foreign([]checksum.Dialect{checksum.Reloader, checksum.Wave})
	found.Status, err = form.Status(data)
	for _, fault := range faults {
		found.Faults = append(found.Faults, fault != nil)
	}
	return found, err
}

// difference is how what is read of a message differs from what is read of the object's JSON.
func difference(t *testing.T, kind *workload.Kind, form workload.Reader, object generated, message []byte) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil || strings.Contains(string(text), `\ufffd`) { // a text that is no text
		return ""
	}
	want, err := readAs(kind, text)
	if err != nil {
		t.Fatalf("JSON of a %s: %v", kind.Name, err)
	}
	received := bytes.Clone(message)
	got, err := readAs(form, received)
	if err != nil {
		return err.Error()
	}
	clear(received)
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Exporter(func(reflect.Type) bool { return true }))
}

// Kubernetes' own types, written in both forms, are the oracle.
func TestProtobufIsReadAsItsJSONWouldBe(t *testing.T) {
	seen := read{}
	for name := range builtinTypes() {
		kind := kindNamed(t, name)
		form := kind.Protobuf()
		for seed := range uint64(80) {
			object := builtinTypes()[name]
			random(object, seed, 1+int(seed%5))
			message := messageOf(t, object)
			if diff := difference(t, kind, form, object, message); diff != "" {
				t.Fatalf("%s, seed %d (-JSON +protobuf):\n%s", name, seed, diff)
			}
			if found, err := readAs(form, message); err == nil {
				seen.References = append(seen.References, found.References...)
				seen.RolledByOwner = seen.RolledByOwner || found.RolledByOwner
				if found.Foreign != nil {
					seen.Foreign = found.Foreign
				}
				seen.Status.Wanted = max(seen.Status.Wanted, found.Status.Wanted)
			}
		}
	}
	if len(seen.References) < 1000 || seen.Foreign == nil || seen.Status.Wanted == 0 {
		t.Errorf("the objects are not random enough: %d references, %v, %v", len(seen.References), seen.Foreign, seen.Status.Wanted)
	}
}

func TestProtobuf_CustomAndCreateOnlyKindsAreJSONAlone(t *testing.T) {
	for _, kind := range append(workload.Builtin(), workload.Known()...) {
		if got, want := kind.Protobuf() != nil, !kind.Custom && !kind.CreateOnly; got != want {
			t.Errorf("%s is read from protobuf: %t, want %t", kind, got, want)
		}
	}
}

func TestProtobuf_ErrorsQuoteNothing(t *testing.T) {
	d := &appsv1.Deployment{}
	random(d, 1, 3)
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, d.Spec.Template.Spec.Containers...)
	d.Name = "hunter2"
	form, message := kindNamed(t, "Deployment").Protobuf(), messageOf(t, d)
	failed := 0
	for end := range message {
		for _, err := range []error{second(form.Decode(message[:end])), second(form.DecodeMetadata(message[:end])), second(form.Status(message[:end]))} {
			if err != nil && (strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), "reading ")) {
				t.Fatal(err)
			}
			if err != nil {
				failed++
			}
		}
	}
	if failed < len(message) {
		t.Errorf("of %d messages that were cut off, %d are errors", len(message), failed)
	}
}

func second[T any](_ T, err error) error { return err }

// Whatever arrives is an error, or is read as Kubernetes' own decoder reads it.
// go test ./internal/workload -run '^$' -fuzz FuzzMessage -fuzztime 1m
func FuzzMessage(f *testing.F) {
	for _, object := range builtinTypes() {
		for seed := range uint64(5) {
			random(object, seed, 6)
			f.Add(messageOf(f, object))
		}
	}
	table := workload.Builtin().Readmitted()
	forms := make([]workload.Reader, 0, len(table))
	for _, kind := range table {
		forms = append(forms, kind.Protobuf())
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		for i, kind := range table {
			form := forms[i]
			if _, err := readAs(form, message); err != nil {
				continue
			}
			object := builtinTypes()[kind.Name]
			if object.Unmarshal(message) != nil {
				continue // something that is not read
			}
			if at := object.GetDeletionTimestamp(); at != nil && at.IsZero() {
				continue // which JSON cannot say
			}
			if diff := difference(t, kind, form, object, message); diff != "" {
				t.Fatalf("%s (-JSON +protobuf):\n%s", kind.Name, diff)
			}
		}
	})
}
