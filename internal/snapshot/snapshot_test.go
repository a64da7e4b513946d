package snapshot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/snapshot"
)

var (
	noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	web  = checksum.Source{Kind: checksum.ConfigMap, Name: "web"}
)

func ring(t *testing.T, first byte) *checksum.Ring {
	t.Helper()
	material := make([]byte, checksum.KeySize)
	material[0] = first
	key, err := checksum.NewKey(material)
	if err != nil {
		t.Fatal(err)
	}
	return checksum.NewRing(key)
}

func source(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "of-web", ResourceVersion: "7",
			Labels: map[string]string{"argocd.argoproj.io/instance": "web"}, Annotations: map[string]string{"configstamp.dev/ignore-keys": "a"},
			OwnerReferences: []metav1.OwnerReference{{Name: "x"}}, Finalizers: []string{"x/y"},
		},
		Data: map[string]string{"a": value}, BinaryData: map[string][]byte{"b": {0xff, 0}},
	}
}

// TestASnapshotIsACopyOfAllButTheMetadata, and tells what it is of.
func TestASnapshotIsACopyOfAllButTheMetadata(t *testing.T) {
	of := source("1")
	r := ring(t, 1)
	name := r.SnapshotName("shop", web, checksum.ContentOfConfigMap(of))
	s := snapshot.Of(of, name, noon)
	want := metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{"configstamp.dev/snapshot": "true"},
		Annotations: map[string]string{"configstamp.dev/of": "configmap/web", "configstamp.dev/made": "2026-06-01T12:00:00Z"},
	}
	if fmt.Sprint(s.ObjectMeta) != fmt.Sprint(want) || s.Immutable == nil || !*s.Immutable {
		t.Errorf("%v", s)
	}
	of.Data["a"] = "2" // its own maps
	if s.Data["a"] != "1" || len(s.BinaryData["b"]) != 2 {
		t.Errorf("%v %v", s.Data, s.BinaryData)
	}
	verified := func(r *checksum.Ring, cm *corev1.ConfigMap) bool {
		is, ok := snapshot.From(cm)
		return ok && is.Verified(r)
	}
	if got, _ := snapshot.From(s); !verified(r, s) || got.Of != web || len(got.Content.Entries) != 2 {
		t.Errorf("%v", got)
	}
	for what, change := range map[string]func(*corev1.ConfigMap){
		"other content":              func(s *corev1.ConfigMap) { s.Data["a"] = "3" },
		"a key in the other map":     func(s *corev1.ConfigMap) { s.Data["b"] = "\xff\x00"; s.BinaryData = nil },
		"another namespace":          func(s *corev1.ConfigMap) { s.Namespace = "other" },
		"another name":               func(s *corev1.ConfigMap) { s.Name = "web-0123456789abcdef0123" },
		"of another source":          func(s *corev1.ConfigMap) { s.Annotations["configstamp.dev/of"] = "configmap/other" },
		"of a Secret":                func(s *corev1.ConfigMap) { s.Annotations["configstamp.dev/of"] = "secret/web" },
		"of nothing":                 func(s *corev1.ConfigMap) { s.Annotations = nil },
		"no label":                   func(s *corev1.ConfigMap) { s.Labels = nil },
		"a label with another value": func(s *corev1.ConfigMap) { s.Labels["configstamp.dev/snapshot"] = "yes" },
		"not immutable":              func(s *corev1.ConfigMap) { s.Immutable = nil },
	} {
		changed := s.DeepCopy()
		change(changed)
		if verified(r, changed) {
			t.Errorf("it is taken for a snapshot with %s", what)
		}
	}
	if verified(ring(t, 2), s) {
		t.Error("it is verified by a key that did not make it")
	}
	if verified(nil, s) {
		t.Error("it is verified without a key")
	}
}

// TestNoSourceIsItsOwnSnapshot, not even one whose name is as long as names can be.
func TestNoSourceIsItsOwnSnapshot(t *testing.T) {
	name := strings.Repeat("a", 232) + "-0123456789abcdef0123"
	if _, ok := snapshot.Claims(map[string]string{"configstamp.dev/snapshot": "true"}, map[string]string{"configstamp.dev/of": "configmap/" + name}, name); ok {
		t.Error("it claims to be a snapshot of itself")
	}
}

// TestWhatStays goes through the life of four snapshots of one source.
func TestWhatStays(t *testing.T) {
	r := ring(t, 1)
	var all []snapshot.Snapshot
	for i := range 4 {
		cm := source(fmt.Sprint(i))
		copied := snapshot.Of(cm, r.SnapshotName("shop", web, checksum.ContentOfConfigMap(cm)), noon.Add(time.Duration(i)*time.Minute))
		copied.UID = types.UID(fmt.Sprint("uid-", i))
		s, ok := snapshot.From(copied)
		if !ok {
			t.Fatal("no snapshot")
		}
		all = append(all, s)
	}
	named, now := map[string]bool{}, checksum.ContentOfConfigMap(source("1"))
	unused, bounds := snapshot.Unused{}, snapshot.Bounds{Keep: 1, Grace: time.Hour}
	facts := &snapshot.Facts{
		Namespace: "shop", All: all, Ring: r, Now: func(checksum.Source) *checksum.Content { return now }, Named: func(name string) bool { return named[name] },
	}
	at := func(after time.Duration, want ...int) {
		t.Helper()
		facts.Listed = noon.Add(after)
		var got []int
		for _, s := range unused.Collect(facts, bounds) {
			for i := range all {
				if all[i].Name == s.Name {
					got = append(got, i)
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %s: %v go, want %v", after, got, want)
		}
	}
	named[all[2].Name] = true
	if !facts.Idle(bounds) || !unused.Ripe("shop", bounds).IsZero() {
		t.Error("there is nothing to collect")
	}
	at(0) // 3 is the newest, 2 is named, 1 is what the source holds
	if ripe := unused.Ripe("shop", bounds); !ripe.Equal(noon.Add(time.Hour)) {
		t.Errorf("ripe at %s", ripe)
	}
	at(time.Hour - 1)
	at(time.Hour, 0)
	now = checksum.ContentOfConfigMap(source("x"))
	at(time.Hour, 0) // 1 begins to be unused
	named[all[1].Name] = true
	at(90*time.Minute, 0)
	named[all[1].Name] = false
	at(2*time.Hour, 0) // 1 begins anew
	at(3*time.Hour-1, 0)
	at(3*time.Hour, 1, 0)
	unused.Used("shop", all[0].Name)
	at(3*time.Hour, 1)
	facts.All[1].UID = "made again"
	at(3 * time.Hour)
	now = nil // the source is gone, and with it what is kept for it
	at(4*time.Hour, 1, 0)
	at(5*time.Hour, 3, 1, 0)
	facts.Ring = ring(t, 2)
	at(9 * time.Hour)
	if facts.Idle(bounds) || len(unused) != 0 {
		t.Error("what cannot be verified is nobody's to collect")
	}
}
