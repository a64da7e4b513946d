package archive

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/snapshot"
)

var web = checksum.Source{Kind: checksum.ConfigMap, Name: "web"}

// cluster is what the API server holds, and a memory that knows what it is told.
type cluster struct {
	mu       sync.Mutex
	maps     map[string]*corev1.ConfigMap
	known    map[string]snapshot.Snapshot
	changed  func(namespace, name string)
	requests []string
	refusal  error // of a POST
	alters   bool  // somebody's admission changes what is made
	takes    time.Duration
	atOnce   int
	most     int
}

func (c *cluster) begin(what string) {
	c.mu.Lock()
	c.requests = append(c.requests, what)
	c.atOnce++
	c.most = max(c.most, c.atOnce)
	c.mu.Unlock()
	time.Sleep(c.takes)
	c.mu.Lock()
	c.atOnce--
}

func notFound(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

func (c *cluster) Get(_ context.Context, name string) (*corev1.ConfigMap, error) {
	c.begin("GET " + name)
	defer c.mu.Unlock()
	if cm := c.maps[name]; cm != nil {
		return cm.DeepCopy(), nil
	}
	return nil, notFound(name)
}

func (c *cluster) Create(_ context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	c.begin("POST " + cm.Name)
	defer c.mu.Unlock()
	if c.refusal != nil {
		return nil, c.refusal
	}
	if c.maps[cm.Name] != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, cm.Name)
	}
	cm = cm.DeepCopy()
	if c.alters {
		cm.Data["added"] = "by somebody"
	}
	c.maps[cm.Name] = cm
	return cm.DeepCopy(), nil
}

func (c *cluster) Snapshot(_, name string) (snapshot.Snapshot, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.known[name]
	return s, ok
}

func (c *cluster) OnSnapshot(call func(namespace, name string)) { c.changed = call }

// watch brings memory what the API server holds of a name.
func (c *cluster) watch(name string) {
	c.mu.Lock()
	if cm := c.maps[name]; cm == nil {
		delete(c.known, name)
	} else if s, is := snapshot.From(cm); is {
		c.known[name] = s
	}
	c.mu.Unlock()
	c.changed("shop", name)
}

func (c *cluster) took() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := strings.Join(c.requests, ", ")
	c.requests = nil
	return text
}

// stand has a ConfigMap web, and gives the name of its snapshot.
func stand(t *testing.T) (c *cluster, a *Archive, ring *checksum.Ring, name string) {
	t.Helper()
	key, err := checksum.NewKey(make([]byte, checksum.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	ring = checksum.NewRing(key)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Data: map[string]string{"a": "1"}}
	c = &cluster{maps: map[string]*corev1.ConfigMap{"web": cm}, known: map[string]snapshot.Snapshot{}}
	a = newArchive(func(string) configMaps { return c }, Options{Store: c, Ring: func() *checksum.Ring { return ring }, Registry: prometheus.NewRegistry()})
	return c, a, ring, ring.SnapshotName("shop", web, checksum.ContentOfConfigMap(cm))
}

func (c *cluster) hold(cm *corev1.ConfigMap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maps[cm.Name] = cm
}

func (c *cluster) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.maps, name)
}

// TestASnapshotIsMadeOnce by one GET and one POST; then memory is enough, late or not.
func TestASnapshotIsMadeOnce(t *testing.T) {
	c, a, ring, name := stand(t)
	for _, want := range []string{"GET web, POST " + name, ""} {
		if err := a.Ensure(t.Context(), "shop", web, name); err != nil {
			t.Fatal(err)
		}
		if got := c.took(); got != want {
			t.Errorf("requests: %s, want %s", got, want)
		}
	}
	if made, ok := snapshot.From(c.maps[name]); !ok || !made.Verified(ring) || made.Of != web || len(made.Content.Entries) != 1 {
		t.Errorf("what was made is no snapshot: %v", ok)
	}
	c.watch(name)
	content, err := a.Content(t.Context(), "shop", name, web)
	if err != nil || content == nil || c.took() != "" {
		t.Errorf("content: %v, %v", content, err)
	}
	// Somebody deletes it: what memory was told before counts no more.
	c.remove(name)
	c.watch(name)
	if content, err := a.Content(t.Context(), "shop", name, web); err != nil || content != nil || c.took() != "GET "+name {
		t.Errorf("content of what is gone: %v, %v", content, err)
	}
	if err := a.Ensure(t.Context(), "shop", web, name); err != nil || c.took() != "GET web, POST "+name {
		t.Errorf("it is not made again: %v", err)
	}
	if content, err := a.Content(t.Context(), "shop", name, web); err != nil || content == nil || c.took() != "" {
		t.Errorf("that it was missing is remembered after it was made: %v, %v", content, err)
	}
}

func TestWhyThereIsNoSnapshot(t *testing.T) {
	forbidden := func(message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message}}
	}
	for name, test := range map[string]struct {
		before func(c *cluster, name string)
		want   error
		reason reason.Reason
		again  string // requests of the next try
	}{
		"quota": {func(c *cluster, _ string) {
			c.refusal = forbidden(`configmaps "x" is forbidden: exceeded quota: small, requested: count/configmaps=1`)
		}, ErrQuota, reason.SnapshotQuota, "GET web, POST "},
		"rights": {func(c *cluster, _ string) { c.refusal = forbidden(`configmaps is forbidden: User "x" cannot create`) }, ErrForbidden, reason.SnapshotForbidden, "GET web, POST "},
		"policy": {func(c *cluster, _ string) {
			c.refusal = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "SECRET"}}
		}, ErrForbidden, reason.SnapshotForbidden, "GET web, POST "},
		"the API server fails": {func(c *cluster, _ string) { c.refusal = apierrors.NewInternalError(errors.New("SECRET")) }, nil, reason.SnapshotFailed, "GET web, POST "},
		"changed":              {func(c *cluster, _ string) { c.maps["web"].Data["a"] = "2" }, ErrChanged, reason.SnapshotOvertaken, "GET web"},
		"gone":                 {func(c *cluster, _ string) { delete(c.maps, "web") }, ErrChanged, reason.SnapshotOvertaken, "GET web"},
		"a ConfigMap has the name": {func(c *cluster, name string) {
			c.maps[name] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		}, ErrForeign, reason.SnapshotForeign, "GET web, POST "},
		"a snapshot that can be written": {func(c *cluster, name string) {
			c.maps[name] = snapshot.Of(c.maps["web"], name, time.Now())
			c.maps[name].Immutable = nil
		}, ErrForeign, reason.SnapshotForeign, ""},
		"somebody's admission changes it": {func(c *cluster, _ string) { c.alters = true }, ErrForeign, reason.SnapshotForeign, "GET web, POST "},
	} {
		t.Run(name, func(t *testing.T) {
			c, a, _, snap := stand(t)
			test.before(c, snap)
			err := a.Ensure(t.Context(), "shop", web, snap)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || Reason(err) != test.reason {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("the error repeats what the API server says: %v", err)
			}
			c.took()
			_ = a.Ensure(t.Context(), "shop", web, snap)
			if got := c.took(); (got == "") != (test.again == "") || !strings.HasPrefix(got, test.again) {
				t.Errorf("the next try asks %q, want %q", got, test.again)
			}
		})
	}
}

// TestKnown_AsksNobody: what memory does not know, or what is no snapshot of ours, is nil.
func TestKnown_AsksNobody(t *testing.T) {
	c, a, _, name := stand(t)
	if content := a.Known("shop", name, web); content != nil {
		t.Errorf("nobody made it: %v", content)
	}
	c.hold(snapshot.Of(c.maps["web"], name, time.Now()))
	c.watch(name)
	if content := a.Known("shop", name, web); content == nil || len(content.Entries) != 1 {
		t.Errorf("it holds %v", content)
	}
	if content := a.Known("shop", name, checksum.Source{Kind: checksum.ConfigMap, Name: "other"}); content != nil {
		t.Errorf("of another source it is %v", content)
	}
	if asked := c.took(); asked != "" {
		t.Errorf("it asks %s", asked)
	}
	c.maps[name].Data["a"] = "forged"
	c.watch(name)
	if content := a.Known("shop", name, web); content != nil {
		t.Errorf("forged, it is %v", content)
	}
}

// TestARefusalIsOfItsOwnSource, and of the moment: another source of the namespace is tried at
// once, and so is this one when its quota or a right has changed.
func TestARefusalIsOfItsOwnSource(t *testing.T) {
	c, a, ring, name := stand(t)
	big := checksum.Source{Kind: checksum.ConfigMap, Name: "big"}
	c.hold(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: big.Name}, Data: map[string]string{"a": "1"}})
	refused := ring.SnapshotName("shop", big, checksum.ContentOfConfigMap(c.maps[big.Name]))
	c.refusal = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "exceeded quota: small"}}
	if err := a.Ensure(t.Context(), "shop", big, refused); !errors.Is(err, ErrQuota) {
		t.Fatalf("%v, want that the quota is full", err)
	}
	c.refusal = nil
	for of, name := range map[checksum.Source]string{web: name, big: refused} {
		if err := a.Ensure(t.Context(), "shop", of, name); err != nil {
			t.Errorf("%s: %v", of, err)
		}
	}
}

// TestAnUndoNeedsNoSource: the source holds something else, or is gone, and the snapshot is
// there, known or not.
func TestAnUndoNeedsNoSource(t *testing.T) {
	c, a, _, name := stand(t)
	c.hold(snapshot.Of(c.maps["web"], name, time.Now()))
	c.remove("web")
	if err := a.Ensure(t.Context(), "shop", web, name); err != nil || c.took() != "GET web, GET "+name {
		t.Errorf("%v", err)
	}
}

// TestWhoAsksAtOnceIsAnsweredTogether, and no more than a few are made at once.
func TestWhoAsksAtOnceIsAnsweredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a, ring, name := stand(t)
		c.takes = 10 * time.Millisecond
		var asking sync.WaitGroup
		for range 100 {
			asking.Go(func() {
				if err := a.Ensure(t.Context(), "shop", web, name); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		if got := c.took(); got != "GET web, POST "+name {
			t.Errorf("requests: %s", got)
		}
		names := map[checksum.Source]string{}
		for i := range 20 {
			of := checksum.Source{Kind: checksum.ConfigMap, Name: "web-" + string(rune('a'+i))}
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: of.Name}, Data: map[string]string{"a": "1"}}
			c.hold(cm)
			names[of] = ring.SnapshotName("shop", of, checksum.ContentOfConfigMap(cm))
		}
		if failed := a.EnsureAll(t.Context(), "shop", names); len(failed) > 0 || c.most > makingPerCall {
			t.Errorf("%v, %d at once", failed, c.most)
		}
		// An API server that hangs is not waited for.
		c.takes = time.Minute
		began := time.Now()
		c.hold(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Data: map[string]string{"a": "3"}})
		other := ring.SnapshotName("shop", web, checksum.ContentOfConfigMap(c.maps["web"]))
		if failed := a.EnsureAll(t.Context(), "shop", map[checksum.Source]string{web: other}); len(failed) != 1 || time.Since(began) > within {
			t.Errorf("%v after %s", failed, time.Since(began))
		}
		time.Sleep(5 * time.Minute)
	})
}

// TestWhatIsForgedIsNotGivenOut, whether memory knows it or not.
func TestWhatIsForgedIsNotGivenOut(t *testing.T) {
	c, a, _, name := stand(t)
	forged := snapshot.Of(c.maps["web"], name, time.Now())
	forged.Data = map[string]string{"a": "other"}
	c.hold(forged)
	for range 2 {
		if content, err := a.Content(t.Context(), "shop", name, web); content != nil || err != nil {
			t.Errorf("content of what is forged: %v, %v", content, err)
		}
		c.watch(name)
	}
}

// TestAbsenceIsRememberedForAMoment, and not longer than until the watch tells.
func TestAbsenceIsRememberedForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a, _, name := stand(t)
		look := func(want string) *checksum.Content {
			t.Helper()
			content, err := a.Content(t.Context(), "shop", name, web)
			if got := c.took(); err != nil || got != want {
				t.Errorf("%v, requests: %q, want %q", err, got, want)
			}
			return content
		}
		look("GET " + name)
		look("")
		time.Sleep(absentFor)
		c.hold(snapshot.Of(c.maps["web"], name, time.Now()))
		if look("GET "+name) == nil {
			t.Error("what is there is not found")
		}
		c.remove(name)
		c.watch(name)
		look("GET " + name)
		c.hold(snapshot.Of(c.maps["web"], name, time.Now()))
		c.watch(name)
		if look("") == nil {
			t.Error("the watch has brought it")
		}
		if content, err := a.Content(t.Context(), "shop", name, checksum.Source{Kind: checksum.ConfigMap, Name: "other"}); content != nil || err != nil {
			t.Errorf("it is given out for another source: %v", err)
		}
	})
}
