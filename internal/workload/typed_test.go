package workload_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// asked is all that the controller asks of an object.
type asked struct {
	Metadata                workload.Metadata
	Template                map[string]string
	Records                 checksum.Records
	References              []checksum.Reference
	Foreign                 *checksum.Foreign
	RolledByOwner, Unprobed bool
	Status                  workload.Status
	Faults                  [2]bool
}

func ask(object *workload.Object, status workload.Status) asked {
	records, recordsErr := object.Records()
	references, referencesErr := object.References()
	return asked{
		object.Metadata, object.TemplateAnnotations(), records, references, object.Foreign([]checksum.Dialect{checksum.Reloader, checksum.Wave}),
		object.RolledByOwner(append(workload.Builtin(), workload.Known()...)), object.Template.Unprobed(), status, [2]bool{recordsErr != nil, referencesErr != nil},
	}
}

// sameTyped fails the test unless what is read of an object's Go type is what is read of its JSON.
func sameTyped(t *testing.T, kind *workload.Kind, raw []byte) {
	t.Helper()
	whole := map[string]runtime.Object{"Deployment": &appsv1.Deployment{}, "StatefulSet": &appsv1.StatefulSet{}, "DaemonSet": &appsv1.DaemonSet{}, "CronJob": &batchv1.CronJob{}}[kind.Name]
	if kind.Custom || whole == nil || kjson.UnmarshalCaseSensitivePreserveInts(raw, whole) != nil {
		return
	}
	object, decoding := kind.Decode(raw)
	status, reading := kind.Status(raw)
	if err := errors.Join(decoding, reading); err != nil {
		t.Fatal(err)
	}
	want := ask(object, status)
	object, status, err := kind.Of(whole)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, ask(object, status), cmpopts.EquateEmpty(), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("(-JSON +Go type):\n%s%s", diff, raw)
	}
}

// What the objects of other tests lack.
func TestOf_SaysWhatJSONDoes(t *testing.T) {
	sameTyped(t, kindNamed(t, "StatefulSet"), []byte(`{"metadata":{"generation":2},"status":{"observedGeneration":2,"conditions":[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate"}]}}`))
	sameTyped(t, kindNamed(t, "CronJob"), []byte(`{"metadata":{"name":"c","generateName":"c-","ownerReferences":[{"apiVersion":"serving.knative.dev/v1","kind":"Service","name":"s","uid":"u","controller":true}]}}`))
}

func TestOf_AnotherType(t *testing.T) {
	for _, whole := range []runtime.Object{nil, &metav1.Status{Message: "hunter2"}, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "hunter2"}}} {
		object, status, err := kindNamed(t, "Deployment").Of(whole)
		if err == nil || strings.Contains(err.Error(), "hunter2") || object != nil || status != (workload.Status{}) {
			t.Errorf("%T: %v, %+v, %v", whole, object, status, err)
		}
	}
}

// A watch of a custom kind brings a status as client-go writes it, and an answer as the API
// server does.
func TestStatusHash_IsOfOneForm(t *testing.T) {
	kind, err := workload.ParseKind("example.com/v1/machines=spec.template,rollout=Ready")
	if err != nil {
		t.Fatal(err)
	}
	hash := func(text string) uint64 {
		status, err := kind.Status([]byte(text))
		if err != nil || status.StatusHash == 0 {
			t.Fatalf("%s: %+v, %v", text, status, err)
		}
		return status.StatusHash
	}
	seen := map[uint64]string{}
	for _, odd := range []string{`{}`, `{"a":1}`, `{"a":"1"}`, `{"a":1.5}`, `{"a":-0.0,"b":1}`, `{"a":1e3,"b":2}`, `{"a":1.0,"b":3}`, `{"a":1e21}`, `{"a":9007199254740993}`, `{"a":9007199254740993.0}`, `{"a":1E-7}`,
		`{"a":null}`, `{"a":[]}`, `{"a":{}}`, `{"a":true}`, ` { "b" : [ 1 , {"d":4,"c":3} ] , "a" : 2 } `, `{"a":"<b> & \u003cc\u003e"}`, `{"a":"\u00e4\u2028\/"}`, `{"a":"\ud800"}`, "{\"b\":\"\xff\"}", `{"a":1,"a":2,"b":"twice"}`} {
		text := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"m"},"spec":{},"status":%s}`, odd)
		whole := &unstructured.Unstructured{}
		if err := whole.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		again, err := whole.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if asSent, asWatched := hash(text), hash(string(again)); asSent != asWatched {
			t.Errorf("%s: %x, and as client-go writes it %s: %x", odd, asSent, again, asWatched)
		}
		if other := seen[hash(text)]; other != "" {
			t.Errorf("%s and %s are the same", odd, other)
		}
		seen[hash(text)] = odd
	}
}
