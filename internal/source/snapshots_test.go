package source

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/snapshot"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func testRing(t testing.TB) *checksum.Ring {
	key, err := checksum.NewKey(make([]byte, checksum.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return checksum.NewRing(key)
}

func snapshotOf(ring *checksum.Ring, cm *corev1.ConfigMap) *corev1.ConfigMap {
	of := checksum.Source{Kind: checksum.ConfigMap, Name: cm.Name}
	copied := snapshot.Of(cm, ring.SnapshotName(cm.Namespace, of, checksum.ContentOfConfigMap(cm)), noon)
	copied.UID = types.UID("uid-of-" + copied.Name)
	return copied
}

// TestSnapshotsAreNoSources in any way of reading, and lie where they are asked for.
func TestSnapshotsAreNoSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring, server := testRing(t), fakeapi.Piped(t)
		web := configMap("shop", "web", map[string]string{"a": "1"})
		web.BinaryData = map[string][]byte{"b": {1, 2, 3}}
		first := snapshotOf(ring, web)
		server.Put("configmaps", web)
		server.Put("configmaps", first)
		store, changes := newStore(t, server)
		var mu sync.Mutex
		var told []string
		store.OnSnapshot(func(namespace, name string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, namespace+"/"+name)
		})
		run(t, store)

		if names := store.Names("shop", checksum.ConfigMap); !slices.Equal(names, []string{"web"}) {
			t.Errorf("sources: %v", names)
		}
		s, there := store.Snapshot("shop", first.Name)
		if !there || !s.Verified(ring) || !s.Immutable || s.Of.Name != "web" || s.UID != first.UID || s.Bytes != 6 || !s.MadeAt().Equal(noon) {
			t.Fatalf("%v, %+v", there, s)
		}
		if whole, is := snapshot.From(typedMap(t, server, first.Name)); !is || !whole.Content.Equal(s.Content) || whole.Bytes != s.Bytes {
			t.Error("what is condensed differs from what is decoded")
		}
		if count, bytes := store.SnapshotTotals(); count != 1 || bytes != 6 || store.Counts()[checksum.ConfigMap] != 1 {
			t.Errorf("%d snapshots of %d bytes", count, bytes)
		}
		at := checksum.Source{Kind: checksum.ConfigMap, Name: first.Name}
		found, err := NewChecker(store, CheckerOptions{}).Fresh(t.Context(), "shop", []checksum.Source{at}, nil)
		if err != nil || found[at] != nil {
			t.Errorf("a live read says that a snapshot is a source: %v, %v", found, err)
		}

		changes.take()
		web.Data["a"] = "2"
		second := snapshotOf(ring, web)
		server.Put("configmaps", second)
		fakeapi.Eventually(t, "the second snapshot is seen", func() bool { return len(store.Snapshots("shop")) == 2 })
		server.Delete("configmaps", "shop", first.Name)
		fakeapi.Eventually(t, "the first is gone", func() bool { return len(store.Snapshots("shop")) == 1 })
		if list := changes.take(); len(list) > 0 {
			t.Errorf("snapshots are told of as sources: %v", list)
		}
		server.Delete("configmaps", "shop", second.Name)
		fakeapi.Eventually(t, "no namespace holds any", func() bool { return len(store.SnapshotNamespaces()) == 0 })
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"shop/" + first.Name, "shop/" + second.Name, "shop/" + first.Name, "shop/" + second.Name}; !slices.Equal(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
	})
}

func typedMap(t *testing.T, server *fakeapi.Server, name string) *corev1.ConfigMap {
	t.Helper()
	cm, ok := server.Get("configmaps", "shop", name).(*corev1.ConfigMap)
	if !ok {
		t.Fatalf("no ConfigMap %s", name)
	}
	return cm
}

// TestTheLabelAloneMakesNoSnapshot: somebody restores old content under the source's name.
func TestTheLabelAloneMakesNoSnapshot(t *testing.T) {
	ring, server := testRing(t), fakeapi.New(t)
	web := configMap("shop", "web", map[string]string{"a": "1"})
	server.Put("configmaps", web)
	store, changes := newStore(t, server)
	run(t, store)
	restored := snapshotOf(ring, web)
	restored.Name = "web"
	server.Put("configmaps", restored)
	at := checksum.Source{Kind: checksum.ConfigMap, Name: "web"}
	var found []checksum.Finding
	fakeapi.Eventually(t, "people are told", func() bool {
		found = nil
		store.Findings(func(_ string, _ checksum.Source, all []checksum.Finding) { found = all })
		return len(found) > 0
	})
	if len(found) != 1 || found[0].Reason != reason.NotASnapshot || store.Content("shop", at) == nil {
		t.Errorf("%v", found)
	}
	if list := changes.take(); len(list) > 0 {
		t.Errorf("the same content is told of: %v", list)
	}
	// A source that becomes a snapshot is gone, and the other way round.
	named := snapshotOf(ring, web)
	plain := named.DeepCopy()
	plain.Labels = nil
	server.Put("configmaps", plain)
	fakeapi.Eventually(t, "it is a source", func() bool { return len(store.Names("shop", checksum.ConfigMap)) == 2 })
	server.Put("configmaps", named)
	fakeapi.Eventually(t, "it is a snapshot", func() bool {
		return len(store.Names("shop", checksum.ConfigMap)) == 1 && len(store.Snapshots("shop")) == 1
	})
	server.Put("configmaps", plain)
	fakeapi.Eventually(t, "it is a source again", func() bool {
		return len(store.Names("shop", checksum.ConfigMap)) == 2 && len(store.Snapshots("shop")) == 0
	})
	if list := changes.take(); len(list) != 3 || !strings.HasSuffix(list[0], named.Name) {
		t.Errorf("told %v", list)
	}
}

// TestARelistTellsOfSnapshots that came, changed and went while nobody could watch.
func TestARelistTellsOfSnapshots(t *testing.T) {
	object := func(version, name string) *object {
		return (&condenser{}).snapshot(&metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version}, &snapshot.Snapshot{Content: contentOf(nil)})
	}
	var told []string
	s := newSink(checksum.ConfigMap, clocktesting.NewFakePassiveClock(noon), func(string, checksum.Source, *checksum.Content) {})
	s.snapshotChanged = func(_, name string) { told = append(told, name) }
	fill(s, "100", object("90", "a"), object("91", "b"), object("92", "c"))
	told = nil
	fill(s, "200", object("90", "a"), object("191", "b"), object("192", "d"))
	if slices.Sort(told); !slices.Equal(told, []string{"b", "c", "d"}) {
		t.Errorf("told %v", told)
	}
}
