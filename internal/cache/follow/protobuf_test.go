package follow

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// left is a serializer to which nothing is to be left.
type left struct{ runtime.Serializer }

func (left) Decode([]byte, *schema.GroupVersionKind, runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return nil, nil, errors.New("left to apimachinery")
}

// What is read in place is what apimachinery reads, whatever happens to a byte of it.
func TestInPlaceReadsWhatApimachineryReads(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "token"}, Data: map[string][]byte{"key": {0, 1}}}
	whole, raw := protobuf.NewSerializer(scheme, scheme), protobuf.NewRawSerializer(scheme, scheme)
	object, err := runtime.Encode(whole, secret)
	if err != nil {
		t.Fatal(err)
	}
	event, err := runtime.Encode(raw, &metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: object}})
	if err != nil {
		t.Fatal(err)
	}
	eachChange(event, func(data []byte, changed bool) {
		var got, want metav1.WatchEvent
		if _, _, err := (events{left{}}).Decode(data, nil, &got); err != nil {
			if !changed {
				t.Error(err)
			}
			return
		}
		if _, _, err := raw.Decode(data, nil, &want); err != nil || !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("event %q: %v, want %v, %v", data, got, want, err)
		}
	})
	eachChange(object, func(data []byte, changed bool) {
		got, gvk, ok := inPlace(data, scheme)
		if !ok {
			if !changed {
				t.Error("it is left to apimachinery")
			}
			return
		}
		got.GetObjectKind().SetGroupVersionKind(*gvk)
		if want, _, err := whole.Decode(data, nil, nil); err != nil || !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("object %q: %v, want %v, %v", data, got, want, err)
		}
	})
}

// eachChange gives out data, and data in which one byte is another, or which ends there.
func eachChange(data []byte, give func(data []byte, changed bool)) {
	give(data, false)
	for i := range data {
		give(slices.Clone(data[:i]), true)
		for b := range 256 {
			other := slices.Clone(data)
			other[i] = byte(b)
			give(other, byte(b) != data[i])
		}
	}
}
