package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func secret(namespace, name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"password": []byte(value)}}
}

// contentOf is the content that a ConfigMap of these data has.
func contentOf(data map[string]string) *checksum.Content {
	return checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: data})
}

// changes collects what OnChange tells.
type changes struct {
	mu   sync.Mutex
	list []string
}

func (c *changes) add(namespace string, source checksum.Source, _ *checksum.Content) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, namespace+"/"+source.String())
}

func (c *changes) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	slices.Sort(list)
	return list
}

func newStore(t testing.TB, server *fakeapi.Server, namespaces ...string) (*Store, *changes) {
	t.Helper()
	store, err := NewStore(server.Config(), Options{Namespaces: namespaces})
	if err != nil {
		t.Fatal(err)
	}
	c := &changes{}
	store.OnChange(c.add)
	return store, c
}

// run runs a store until the test ends or stop is called.
func run(t testing.TB, store *Store) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = store.Run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	fakeapi.Eventually(t, "the store is filled", store.HasSynced)
	return stop
}

var (
	web   = checksum.Source{Kind: checksum.ConfigMap, Name: "web"}
	token = checksum.Source{Kind: checksum.Secret, Name: "token"}
)

func TestStoreIsFilledFromTheCluster(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		t.Run(fmt.Sprintf("WatchList refused: %t", refuse), func(t *testing.T) {
			server := fakeapi.New(t)
			server.RefuseWatchList = refuse
			written := metav1.NewTime(time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC))
			later := metav1.NewTime(written.Add(time.Hour))
			cm := configMap("shop", "web", map[string]string{"a": "1"})
			cm.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "kubectl", Time: &written, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{".":{},"f:a":{}}}`)},
				{Manager: "labeller", Time: &later, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:data":{}}}}`)},
			}
			version := server.Put("configmaps", cm)
			server.Put("secrets", secret("shop", "token", "hunter2"))
			helm := secret("shop", "sh.helm.release.v1.web.v1", "big")
			helm.Type = "helm.sh/release.v1"
			server.Put("secrets", helm)

			store, changes := newStore(t, server)
			if _, err := store.Cached("shop", []checksum.Source{web}); !errors.Is(err, ErrNotWatched) {
				t.Errorf("before the fill: %v", err)
			}
			if !store.LastProgress().IsZero() {
				t.Error("progress before Run")
			}
			run(t, store)
			view, err := store.Cached("shop", []checksum.Source{web, token, {Kind: checksum.Secret, Name: "none"}})
			if err != nil {
				t.Fatal(err)
			}
			if at, _ := store.Written("shop", web); !view[web].Equal(contentOf(cm.Data)) || store.Version("shop", web) != version || !at.Equal(written.Time) {
				t.Errorf("web: %v, version %s, written %s", view[web], store.Version("shop", web), at)
			}
			if at, _ := store.Written("shop", token); !view[token].Equal(checksum.ContentOfSecret(secret("", "", "hunter2"))) || !at.IsZero() {
				t.Errorf("token: %v, written %s", view[token], at)
			}
			if none, ok := view[checksum.Source{Kind: checksum.Secret, Name: "none"}]; !ok || none != nil {
				t.Errorf("what does not exist: %v, %t", none, ok)
			}
			if counts := store.Counts(); counts[checksum.ConfigMap] != 1 || counts[checksum.Secret] != 1 {
				t.Errorf("counts: %v (Helm's releases do not count)", counts)
			}
			if time.Since(store.LastProgress()) > time.Minute {
				t.Errorf("last progress: %s", store.LastProgress())
			}
			if told := changes.take(); len(told) > 0 {
				t.Errorf("told of %v during the initial fill", told)
			}
		})
	}
}

func TestOnChangeTellsOfWhatMatters(t *testing.T) {
	server := fakeapi.New(t)
	server.Put("configmaps", configMap("shop", "web", map[string]string{"a": "1"}))
	server.Put("configmaps", configMap("shop", "last", nil))
	store, changes := newStore(t, server)
	run(t, store)
	put := func(edit func(cm *corev1.ConfigMap)) func() {
		return func() {
			cm := configMap("shop", "web", map[string]string{"a": "1"})
			edit(cm)
			server.Put("configmaps", cm)
		}
	}
	steps := []struct {
		what string
		do   func()
		want bool
	}{
		{"written again without a change", put(func(*corev1.ConfigMap) {}), false},
		{"another label", put(func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"a": "b"} }), false},
		{"another annotation", put(func(cm *corev1.ConfigMap) { cm.Annotations = map[string]string{"a": "b"} }), false},
		{"another value", put(func(cm *corev1.ConfigMap) { cm.Data["a"] = "2" }), true},
		{"the value back", put(func(*corev1.ConfigMap) {}), true},
		{"the value as binaryData", put(func(cm *corev1.ConfigMap) {
			cm.Data, cm.BinaryData = nil, map[string][]byte{"a": []byte("1")}
		}), true},
		{"deleted", func() { server.Delete("configmaps", "shop", "web") }, true},
		{"created", put(func(*corev1.ConfigMap) {}), true},
		{"watches cut", server.CutWatches, false},
	}
	for i, step := range steps {
		step.do()
		// What comes last tells that all before has arrived.
		server.Put("configmaps", configMap("shop", "last", map[string]string{"step": fmt.Sprint(i)}))
		var told []string
		fakeapi.Eventually(t, step.what, func() bool {
			told = append(told, changes.take()...)
			return slices.Contains(told, "shop/configmap/last")
		})
		if got := slices.Contains(told, "shop/configmap/web"); got != step.want {
			t.Errorf("%s: told %t, want %t", step.what, got, step.want)
		}
	}
}

func TestRelistTellsOfWhatChangedUnwatched(t *testing.T) {
	server := fakeapi.New(t)
	for _, name := range []string{"same", "changed", "deleted"} {
		server.Put("configmaps", configMap("shop", name, map[string]string{"a": "1"}))
	}
	server.Put("secrets", secret("shop", "token", "hunter2"))
	store, changes := newStore(t, server)
	run(t, store)
	// A watch that told of something is not begun by a list when it ends.
	server.Put("configmaps", configMap("shop", "deleted", map[string]string{"a": "2"}))
	fakeapi.Eventually(t, "a change", func() bool { return len(changes.take()) > 0 })
	// etcd comes back from a snapshot: resourceVersions go back, too.
	server.Restore("configmaps", 50,
		configMap("shop", "same", map[string]string{"a": "1"}),
		configMap("shop", "changed", map[string]string{"a": "0"}),
		configMap("shop", "appeared", nil))
	var told []string
	fakeapi.Eventually(t, "three changes", func() bool {
		told = append(told, changes.take()...)
		return len(told) >= 3
	})
	if want := []string{"shop/configmap/appeared", "shop/configmap/changed", "shop/configmap/deleted"}; !slices.Equal(told, want) {
		t.Errorf("told of %v, want %v", told, want)
	}
	server.Put("configmaps", configMap("shop", "same", map[string]string{"a": "2"}))
	fakeapi.Eventually(t, "a change at a version that is lower than before", func() bool {
		return slices.Equal(changes.take(), []string{"shop/configmap/same"})
	})
	if record, _ := store.Get("shop", checksum.Source{Kind: checksum.ConfigMap, Name: "same"}); record.ResourceVersion != "51" {
		t.Errorf("record: %v", record)
	}
}

func TestStoreOfSomeNamespaces(t *testing.T) {
	server := fakeapi.New(t)
	server.Put("configmaps", configMap("shop", "web", map[string]string{"a": "1"}))
	server.Put("configmaps", configMap("bank", "web", map[string]string{"a": "2"}))
	server.Put("configmaps", configMap("other", "web", map[string]string{"a": "3"}))
	store, _ := newStore(t, server, "shop", "bank", "shop")
	run(t, store)
	if view, err := store.Cached("bank", []checksum.Source{web}); err != nil || !view[web].Equal(contentOf(map[string]string{"a": "2"})) {
		t.Errorf("bank: %v, %v", view, err)
	}
	if _, err := store.Cached("other", []checksum.Source{web}); !errors.Is(err, ErrNotWatched) {
		t.Errorf("a namespace that is not watched: %v", err)
	}
	if n := store.Counts()[checksum.ConfigMap]; n != 2 {
		t.Errorf("%d ConfigMaps", n)
	}
	for _, request := range server.Requests() {
		if !strings.Contains(request, "/namespaces/shop/") && !strings.Contains(request, "/namespaces/bank/") {
			t.Errorf("%s needs rights that namespaced mode does not have", request)
		}
	}
}

// A namespace that is gone, and its Role with it, keeps no other waiting.
func TestStoreOfANamespaceThatIsRefused(t *testing.T) {
	server := fakeapi.New(t)
	server.Refuse("/namespaces/gone/", fakeapi.ErrForbidden)
	server.Put("configmaps", configMap("shop", "web", map[string]string{"a": "1"}))
	server.Put("configmaps", configMap("gone", "web", map[string]string{"a": "2"}))
	store, _ := newStore(t, server, "shop", "gone")
	var filled atomic.Int32
	store.OnFilled(func(namespace string) {
		if namespace == "gone" {
			filled.Add(1)
		}
	})
	run(t, store)
	if view, err := store.Cached("shop", []checksum.Source{web}); err != nil || view[web] == nil {
		t.Errorf("shop: %v, %v", view, err)
	}
	if _, err := store.Cached("gone", []checksum.Source{web}); !errors.Is(err, ErrNotWatched) {
		t.Errorf("a namespace that is refused: %v", err)
	}
	server.Refuse("/namespaces/gone/", nil)
	fakeapi.Eventually(t, "it is read once the right is there", func() bool {
		_, err := store.Cached("gone", []checksum.Source{web})
		return err == nil && filled.Load() == 2
	})
}

// Whoever may read nothing at all knows nothing.
func TestStoreThatIsRefusedEverything(t *testing.T) {
	made := func(namespace string) *sink {
		s := newSink(checksum.Secret, clock.RealClock{}, nil)
		s.Namespace = namespace
		return s
	}
	filled, waiting, refused, refusedAll := made("shop"), made("gone"), made("gone"), made("")
	fill(filled, "1")
	server := fakeapi.New(t)
	server.Refuse("GET", fakeapi.ErrForbidden)
	store, _ := newStore(t, server)
	for _, s := range []*sink{refused, refusedAll} {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.Run(ctx, store.client) })
		fakeapi.Eventually(t, "it is refused", s.Refused)
		cancel()
		running.Wait()
	}
	shop, gone := sinkKey{namespace: "shop"}, sinkKey{namespace: "gone"}
	for about, c := range map[string]struct {
		store *Store
		want  bool
	}{
		"all of the cluster":          {&Store{all: true, sinks: map[sinkKey]*sink{{}: refusedAll, {kind: checksum.Secret}: filled}}, false},
		"every namespace":             {&Store{sinks: map[sinkKey]*sink{gone: refused}}, false},
		"one namespace":               {&Store{sinks: map[sinkKey]*sink{gone: refused, shop: filled}}, true},
		"one, and another is waiting": {&Store{sinks: map[sinkKey]*sink{gone: refused, shop: waiting}}, false},
	} {
		if got := c.store.HasSynced(); got != c.want {
			t.Errorf("refused is %s: filled: %v", about, got)
		}
	}
}
