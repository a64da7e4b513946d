package source

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configstamp/configstamp/checksum"
)

func TestCondense(t *testing.T) {
	at, immutable := metav1.Unix(1700000000, 0), true
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: "7", CreationTimestamp: at, Annotations: map[string]string{"configstamp.dev/ignore": "true"}}
	cm := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "1", "b": "2"}, BinaryData: map[string][]byte{"c": {3}}, Immutable: &immutable}
	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"a": []byte("1")}, Type: "Opaque"}
	release := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"a": []byte("1")}, Type: checksum.HelmReleaseType}
	for name, c := range map[string]struct {
		whole     runtime.Object
		want      *checksum.Content
		immutable bool
	}{
		"a ConfigMap":      {cm, checksum.ContentOfConfigMap(cm), true},
		"a Secret":         {secret, checksum.ContentOfSecret(secret), false},
		"a Helm release":   {release, &checksum.Content{Unwatched: true}, false},
		"another kind":     {&corev1.Pod{ObjectMeta: meta}, nil, false},
		"a typed nothing":  {&metav1.Status{}, nil, false},
		"its metadata":     {&metav1.PartialObjectMetadata{ObjectMeta: meta}, nil, false},
		"nothing at all":   {nil, nil, false},
		"an empty Secret":  {&corev1.Secret{ObjectMeta: meta}, checksum.ContentOfSecret(&corev1.Secret{ObjectMeta: meta}), false},
		"a bare ConfigMap": {&corev1.ConfigMap{ObjectMeta: meta}, checksum.ContentOfConfigMap(&corev1.ConfigMap{ObjectMeta: meta}), false},
	} {
		t.Run(name, func(t *testing.T) {
			o, ok := (&condenser{}).condense(c.whole)
			if ok != (c.want != nil) {
				t.Fatalf("%v, %t", o, ok)
			}
			if !ok {
				return
			}
			if !o.content.Equal(c.want) || o.content.Unwatched != c.want.Unwatched || o.immutable != c.immutable {
				t.Errorf("%#v, immutable %t", o, o.immutable)
			}
			if o.namespace != "shop" || o.name != "web" || o.resourceVersion != "7" || o.created != at.Unix() {
				t.Errorf("%v of %s, made at %d", o, o.resourceVersion, o.created)
			}
		})
	}
}

func TestOwnsData(t *testing.T) {
	for fields, want := range map[string]bool{
		`{"f:data":{}}`: true, `{"f:data":{".":{},"f:a":{}}}`: true, `{"f:binaryData":{"f:a":{}}}`: true, `{"f:a":{},"f:stringData":{"f:a":{}}}`: true,
		`{"f:metadata":{"f:annotations":{"f:data":{}}}}`: false, `{"f:metadata":{},"f:data":`: false, `{}`: false, ``: false,
	} {
		if got := ownsData([]byte(fields)); got != want {
			t.Errorf("%s: %t", fields, got)
		}
	}
}
