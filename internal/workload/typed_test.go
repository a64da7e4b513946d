package workload_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// asked is all that the controller asks of an object.
type asked struct {
	Metadata      workload.Metadata
	Template      map[string]string
	Records       checksum.Records
	References    []checksum.Reference
	Foreign       *checksum.Foreign
	RolledByOwner bool
	Unprobed      bool
	Status        workload.Status
	Faults        []bool
}

func ask(object *workload.Object, status workload.Status) (found asked) {
	found = asked{Metadata: object.Metadata, Template: object.TemplateAnnotations(), Status: status, Unprobed: object.Template.Unprobed(),
		RolledByOwner: object.RolledByOwner(append(workload.Builtin(), workload.Known()...)), Foreign: object.Foreign([]checksum.Dialect{checksum.Reloader, checksum.Wave})}
	var faults [2]error
	found.Records, faults[0] = object.Records()
	found.References, faults[1] = object.References()
	for _, fault := range faults {
		found.Faults = append(found.Faults, fault != nil)
	}
	return found
}

// What is read of a Go type is what is read of its JSON.
func TestOf_SaysWhatJSONDoes(t *testing.T) {
	seen := asked{}
	for name := range builtinTypes() {
		kind := kindNamed(t, name)
		for seed := range uint64(80) {
			whole := builtinTypes()[name]
			random(whole, seed, 1+int(seed%5))
			if seed%4 == 0 {
				refuse(whole)
			}
			text, err := json.Marshal(whole)
			if err != nil || strings.Contains(string(text), `\ufffd`) { // a text that is no text
				continue
			}
			object, err := kind.Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			status, err := kind.Status(text)
			if err != nil {
				t.Fatal(err)
			}
			want := ask(object, status)
			object, status, err = kind.Of(whole)
			if err != nil {
				t.Fatal(err)
			}
			got := ask(object, status)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Fatalf("%s, seed %d (-JSON +Go type):\n%s", name, seed, diff)
			}
			seen.References = append(seen.References, got.References...)
			seen.RolledByOwner, seen.Unprobed = seen.RolledByOwner || got.RolledByOwner, seen.Unprobed || got.Unprobed
			seen.Status.Wanted, seen.Status.Refused = max(seen.Status.Wanted, got.Status.Wanted), seen.Status.Refused || got.Status.Refused
			if got.Foreign != nil {
				seen.Foreign = got.Foreign
			}
		}
	}
	if len(seen.References) < 1000 || seen.Foreign == nil || seen.Status.Wanted == 0 || !seen.Unprobed || !seen.Status.Refused {
		t.Errorf("the objects are not random enough: %d references, %+v", len(seen.References), seen.Status)
	}
}

// refuse has an object report that its pods are refused.
func refuse(whole runtime.Object) {
	switch whole := whole.(type) {
	case *appsv1.Deployment:
		whole.Status.Conditions = []appsv1.DeploymentCondition{{Type: "ReplicaFailure", Status: "True", Reason: "FailedCreate"}}
	case *appsv1.StatefulSet:
		whole.Status.Conditions = []appsv1.StatefulSetCondition{{Type: "ReplicaFailure", Status: "True", Reason: "FailedCreate"}}
	}
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
