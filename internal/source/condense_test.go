package source

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configstamp/configstamp/checksum"
)

func wireOf(t testing.TB, obj runtime.Object) []byte {
	t.Helper()
	message, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func condenserAtNoon() *condenser {
	return &condenser{clock: clocktesting.NewFakePassiveClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))}
}

// typed condenses what Kubernetes' own decoder makes of a message: what the one on the
// wire has to agree with.
func typed(kind string, message []byte) (*object, error) {
	var meta metav1.ObjectMeta
	var content *checksum.Content
	if kind == "ConfigMap" {
		var cm corev1.ConfigMap
		if err := cm.Unmarshal(message); err != nil {
			return nil, err
		}
		meta, content = cm.ObjectMeta, checksum.ContentOfConfigMap(&cm)
	} else {
		var secret corev1.Secret
		if err := secret.Unmarshal(message); err != nil {
			return nil, err
		}
		meta, content = secret.ObjectMeta, checksum.ContentOfSecret(&secret)
	}
	// Two entries of one name, one of them binary, come in any order.
	slices.SortFunc(content.Entries, func(a, b checksum.Entry) int {
		return strings.Compare(fmt.Sprintf("%s\x00%t", a.Name, a.Binary), fmt.Sprintf("%s\x00%t", b.Name, b.Binary))
	})
	m := metadata{namespace: []byte(meta.Namespace), name: []byte(meta.Name), resourceVersion: []byte(meta.ResourceVersion), created: meta.CreationTimestamp}
	for _, entry := range meta.ManagedFields {
		m.owners = append(m.owners, owner{at: entry.Time, fields: entry.FieldsV1.GetRawBytes()})
	}
	return condenserAtNoon().object(&m, content), nil
}

func differs(a, b *object) string {
	switch {
	case a.namespace != b.namespace || a.name != b.name || a.resourceVersion != b.resourceVersion:
		return "metadata"
	case a.written != b.written || a.created != b.created:
		return "times"
	case !a.content.SameEntries(b.content):
		return "entries"
	case !a.content.Policy.Equal(b.content.Policy):
		return "policy"
	}
	return ""
}

// assertSame condenses a copy of message in both ways, and wipes it between.
func assertSame(t *testing.T, kind string, message []byte) {
	t.Helper()
	want, err := typed(kind, message)
	if err != nil {
		t.Fatal(err)
	}
	received := bytes.Clone(message)
	got, err := condenserAtNoon().condense(kind, received)
	if err != nil {
		t.Fatalf("%s of %d bytes: %v", kind, len(message), err)
	}
	clear(received)
	if part := differs(got.(*object), want); part != "" {
		t.Fatalf("%s: other %s than Kubernetes' decoder finds: %x", kind, part, message)
	}
}

var someFields = []string{`{}`, `{"f:data":{}}`, `{"f:data":{".":{},"f:a":{}}}`, `{"f:binaryData":{}}`, `{"f:stringData":{"f:a":{}}}`, `{"f:metadata":{"f:annotations":{"f:data":{}}}}`,
	`{"f:metadata":{"f:annotations":{"f:configstamp.dev/resume":{}}}}`, `{"f:metadata":{"f:labels":{"f:configstamp.dev/resume":{}}}}`, `{"f:data":`, ``}

var someAnnotations = map[string][]string{
	"configstamp.dev/ignore":                           {"true", "false", "perhaps"},
	"configstamp.dev/ignore-keys":                      {"*.bak", "[", ""},
	"configstamp.dev/resume":                           {"2026-06-01T12:00:00Z", "2027-06-01T12:00:00Z", "soon"},
	"reloader.stakater.com/ignore":                     {"true", "x"},
	"reloader.stakater.com/match":                      {"true"},
	"kubectl.kubernetes.io/last-applied-configuration": {strings.Repeat("x", 1000)},
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func randomMeta(r *rand.Rand) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: pick(r, []string{"web", "a.b", ""}), Namespace: pick(r, []string{"shop", ""}), ResourceVersion: pick(r, []string{"7", "123456", ""}),
		GenerateName: pick(r, []string{"", "x-"}), UID: "u", Generation: int64(r.IntN(3)), Labels: map[string]string{"a": "b"}, Finalizers: []string{"f"}}
	if r.IntN(2) == 0 {
		meta.CreationTimestamp = metav1.Unix(r.Int64N(2e9), 0)
		meta.DeletionTimestamp = &meta.CreationTimestamp
	}
	for _, key := range slices.Sorted(maps.Keys(someAnnotations)) {
		if r.IntN(3) == 0 {
			metav1.SetMetaDataAnnotation(&meta, key, pick(r, someAnnotations[key]))
		}
	}
	for range r.IntN(4) {
		entry := metav1.ManagedFieldsEntry{Manager: "kubectl", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", Subresource: "status"}
		if r.IntN(4) > 0 {
			entry.FieldsV1 = metav1.NewFieldsV1(pick(r, someFields))
		}
		if r.IntN(4) > 0 {
			at := pick(r, []metav1.Time{{}, metav1.Unix(r.Int64N(2e9), 5)})
			entry.Time = &at
		}
		meta.ManagedFields = append(meta.ManagedFields, entry)
	}
	return meta
}

func randomData(r *rand.Rand) map[string][]byte {
	if r.IntN(4) == 0 {
		return pick(r, []map[string][]byte{nil, {}})
	}
	data := map[string][]byte{}
	for range r.IntN(6) {
		value := make([]byte, r.IntN(200))
		for i := range value {
			value[i] = byte(r.Uint32())
		}
		data[pick(r, []string{"a", "b.crt", "tls.key", "", "C", "ä"})] = value
	}
	return data
}

func randomObject(r *rand.Rand) (string, runtime.Object) {
	immutable := r.IntN(2) == 0
	if r.IntN(2) == 0 {
		return "Secret", &corev1.Secret{ObjectMeta: randomMeta(r), Data: randomData(r), Type: "Opaque", StringData: map[string]string{"a": "b"}, Immutable: &immutable}
	}
	cm := &corev1.ConfigMap{ObjectMeta: randomMeta(r), BinaryData: randomData(r), Immutable: &immutable}
	for name, value := range randomData(r) {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[name] = string(value)
	}
	return "ConfigMap", cm
}

// unknown adds fields that a later version of Kubernetes may have, of each wire type.
func unknown(message []byte) []byte {
	message = protowire.AppendTag(message, 100, protowire.VarintType)
	message = protowire.AppendVarint(message, 1<<60)
	message = protowire.AppendTag(message, 101, protowire.Fixed32Type)
	message = protowire.AppendFixed32(message, 7)
	message = protowire.AppendTag(message, 102, protowire.Fixed64Type)
	message = protowire.AppendFixed64(message, 7)
	message = protowire.AppendTag(message, 103, protowire.StartGroupType)
	message = protowire.AppendTag(message, 1, protowire.BytesType)
	message = protowire.AppendString(message, "in a group")
	message = protowire.AppendTag(message, 103, protowire.EndGroupType)
	message = protowire.AppendTag(message, 104, protowire.BytesType)
	return protowire.AppendString(message, "later")
}

func TestWhatIsCondensedOnTheWireIsWhatKubernetesDecodes(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		kind, obj := randomObject(r)
		message := wireOf(t, obj)
		assertSame(t, kind, message)
		assertSame(t, kind, unknown(message))
		// One message after another is one message: texts are overwritten, maps and lists grow.
		for {
			if other, obj := randomObject(r); other == kind {
				message = append(unknown(message), wireOf(t, obj)...)
				break
			}
		}
		assertSame(t, kind, message)
		// Cut off, it is an error or what was received until then, and never a panic.
		cut := message[:r.IntN(len(message))]
		if got, err := condenserAtNoon().condense(kind, cut); err == nil {
			if want, err := typed(kind, cut); err != nil || differs(got.(*object), want) != "" {
				t.Fatalf("seed %d: a cut-off %s is read, want an error (%v)", seed, kind, err)
			}
		}
	}
}

func TestCondensingTellsNothingOfWhatIsMalformed(t *testing.T) {
	for _, message := range []string{"\x12\x40hunter2", "\x12\x09\x0a\x01a\x12\x30hunter2", "\x0a\x09\x8a\x01\x06\x22\x04\x12\x40hunter2"} {
		if _, err := condenserAtNoon().condense("Secret", []byte(message)); err == nil || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%q: %v", message, err)
		}
	}
	if _, err := condenserAtNoon().condense("Pod", nil); err == nil {
		t.Error("a Pod is condensed")
	}
}
