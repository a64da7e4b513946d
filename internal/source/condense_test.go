package source

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

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

// When data was written is told by the newest entry that owns any of it.
func TestWrittenAt(t *testing.T) {
	now := time.Unix(1700000000, 0)
	entry := func(after time.Duration, fields string) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(now.Add(after))
		return metav1.ManagedFieldsEntry{Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    int64 // after now, in seconds; -1: unknown
	}{
		"nothing":             {nil, -1},
		"data":                {[]metav1.ManagedFieldsEntry{entry(time.Second, `{"f:data":{}}`)}, 1},
		"a key of it":         {[]metav1.ManagedFieldsEntry{entry(time.Second, `{"f:data":{".":{},"f:a":{}}}`)}, 1},
		"binary data":         {[]metav1.ManagedFieldsEntry{entry(time.Second, `{"f:binaryData":{"f:a":{}}}`)}, 1},
		"after another field": {[]metav1.ManagedFieldsEntry{entry(time.Second, `{"f:a":{},"f:stringData":{"f:a":{}}}`)}, 1},
		"the newest of some":  {[]metav1.ManagedFieldsEntry{entry(time.Second, `{"f:data":{}}`), entry(3*time.Second, `{"f:data":{}}`), entry(2*time.Second, `{"f:data":{}}`)}, 3},
		"an annotation":       {[]metav1.ManagedFieldsEntry{entry(time.Second, `{"f:metadata":{"f:annotations":{"f:data":{}}}}`)}, -1},
		"what cannot be read": {[]metav1.ManagedFieldsEntry{entry(time.Second, `{"f:metadata":{},"f:data":`)}, -1},
		"no time":             {[]metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}}, -1},
		"no fields":           {[]metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: now}}}, -1},
	} {
		want := now.Unix() + c.want
		if c.want < 0 {
			want = 0
		}
		condenser := &condenser{clock: clocktesting.NewFakePassiveClock(now)}
		if o, _ := condenser.condense(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.entries}}); o.written != want {
			t.Errorf("%s: written at %d, want %d", name, o.written, want)
		}
	}
}
