package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
	"github.com/configstamp/configstamp/internal/source"
)

// Our controller asks a replica whose memory is behind, while sources change. What is
// proven, and what is read beside it, must keep its answers right.

// replica is a webhook whose memory holds what the API server has now, and learns no more.
func replica(t *testing.T, server *fakeapi.Server) *Handler {
	t.Helper()
	store, err := source.NewStore(server.Config(), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = store.Run(ctx) }()
	fakeapi.Eventually(t, "the store is filled", store.HasSynced)
	stop()
	<-done
	h := newHandler(&cluster{})
	h.OwnNamespace, h.Sources = "configstamp", store
	h.People = source.NewChecker(store, source.CheckerOptions{Timeout: 5 * time.Second})
	h.Own = source.NewChecker(store, source.CheckerOptions{Timeout: 5 * time.Second})
	return h
}

func put(server *fakeapi.Server, name, value string) {
	server.Put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: caseNamespace, Name: name}, Data: map[string]string{"key": value}})
}

// deployment uses ConfigMaps by envFrom, and key of b, if it is among them.
func deployment(names ...string) []byte {
	var from, env []any
	for _, name := range names {
		from = append(from, map[string]any{"configMapRef": map[string]any{"name": name}})
		if name == "b" {
			env = append(env, map[string]any{"name": "B", "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": name, "key": "key"}}})
		}
	}
	raw, _ := json.Marshal(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web-app", "namespace": caseNamespace},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "envFrom": from, "env": env}}}}},
	})
	return raw
}

// asked sends a request of our own account, and returns what is stored then.
func asked(t *testing.T, h *Handler, operation admissionv1.Operation, object []byte) (stored []byte, rolled bool) {
	t.Helper()
	c := testCase{Operation: operation, Stored: object, FieldManager: checksum.RollingManager}
	if operation == admissionv1.Create {
		c.Stored, c.FieldManager = nil, "kubectl"
	}
	request := c.request(t, object)
	request.UserInfo.Username = "system:serviceaccount:configstamp:configstamp"
	response := admit(silent(t), t, h, request)
	return apply(t, object, response.Patch), response.Patch != nil
}

// slowly has an API server take its time for a ConfigMap.
func slowly(name string) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/configmaps/"+name) {
			time.Sleep(100 * time.Millisecond)
		}
		return false
	}
}

// stamps are those of an object, by source.
func stamps(t *testing.T, object []byte) map[string]any {
	t.Helper()
	found, _ := field(t, object, "spec", "template", "metadata", "annotations").(map[string]any)
	return found
}

// truth is what a replica that knows everything stamps.
func truth(t *testing.T, server *fakeapi.Server, names ...string) map[string]any {
	t.Helper()
	object, _ := asked(t, replica(t, server), admissionv1.Create, deployment(names...))
	return stamps(t, object)
}

func same(a, b map[string]any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func TestWhatOneTryHasProvenCountsForNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.Piped(t)
		var hangs atomic.Bool
		server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			if hangs.Load() && strings.HasSuffix(r.URL.Path, "/configmaps/b") {
				<-r.Context().Done()
				return true
			}
			return false
		}
		put(server, "a", "0")
		put(server, "b", "0")
		object, _ := asked(t, replica(t, server), admissionv1.Create, deployment("a", "b"))
		put(server, "a", "1")
		put(server, "b", "1")
		first := replica(t, server)
		first.Own = source.NewChecker(first.Sources.(*source.Store), source.CheckerOptions{Timeout: 300 * time.Millisecond})
		hangs.Store(true)
		if _, rolled := asked(t, first, admissionv1.Update, object); rolled {
			t.Fatal("it rolls though b is not proven")
		}
		hangs.Store(false)
		put(server, "a", "2") // the first replica does not know
		object, rolled := asked(t, replica(t, server), admissionv1.Update, object)
		if want := truth(t, server, "a", "b"); !rolled || !same(stamps(t, object), want) {
			t.Fatalf("the second replica stamps %v, want %v", stamps(t, object), want)
		}
		if again, rolled := asked(t, first, admissionv1.Update, object); rolled {
			t.Errorf("the first replica goes back to %v from %v", stamps(t, again), stamps(t, object))
		}
	})
}

func TestSourcesEditedTogetherRollOnceWhereMemoryLacksOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for round := range 4 {
			server := fakeapi.Piped(t)
			server.Intercept = slowly("a") // what is read beside is waited for as long again
			put(server, "a", "0")
			put(server, "b", "0")
			object, _ := asked(t, replica(t, server), admissionv1.Create, deployment("a", "b"))
			put(server, "a", "1")
			behind := replica(t, server)
			put(server, "b", "1")
			object, rolled := asked(t, behind, admissionv1.Update, object)
			if want := truth(t, server, "a", "b"); !rolled || !same(stamps(t, object), want) {
				t.Fatalf("round %d: rolled %v to %v, want %v: the other one will make a second rollout", round, rolled, stamps(t, object), want)
			}
		}
	})
}

// TestNothingIsDoneOnTheWordOfAMemoryThatIsBehind: it finds another source changed, which
// has been stamped since.
func TestNothingIsDoneOnTheWordOfAMemoryThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.Piped(t)
		var slow atomic.Bool
		server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			if slow.Load() && strings.HasSuffix(r.URL.Path, "/configmaps/b") {
				time.Sleep(200 * time.Millisecond) // longer than what is read beside is waited for
			}
			return false
		}
		put(server, "a", "0")
		put(server, "b", "0")
		behind := replica(t, server)
		put(server, "a", "1")
		object, _ := asked(t, replica(t, server), admissionv1.Create, deployment("a", "b"))
		put(server, "b", "1")
		slow.Store(true)
		object, rolled := asked(t, behind, admissionv1.Update, object)
		if want := truth(t, server, "a", "b"); !rolled || !same(stamps(t, object), want) {
			t.Errorf("rolled %v to %v, want %v", rolled, stamps(t, object), want)
		}
	})
}

func TestNothingRollsIntoASourceThatIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(server *fakeapi.Server)
		edited    string // "": a
		optional  bool
		rolls     bool
	}{
		"deleted":                            {meanwhile: func(s *fakeapi.Server) { s.Delete("configmaps", caseNamespace, "b") }},
		"deleted, and optional":              {meanwhile: func(s *fakeapi.Server) { s.Delete("configmaps", caseNamespace, "c") }, optional: true},
		"edited, then deleted, and optional": {edited: "c", meanwhile: func(s *fakeapi.Server) { s.Delete("configmaps", caseNamespace, "c") }, optional: true},
		"replaced with other content": {meanwhile: func(s *fakeapi.Server) {
			s.Delete("configmaps", caseNamespace, "b")
			put(s, "b", "other")
		}, rolls: true},
		"replaced without its required key": {meanwhile: func(s *fakeapi.Server) {
			s.Delete("configmaps", caseNamespace, "b")
			s.Put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: caseNamespace, Name: "b"}, Data: map[string]string{"another": "key"}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for range 2 {
					server := fakeapi.Piped(t)
					server.Intercept = slowly("a")
					for _, name := range []string{"a", "b", "c"} {
						put(server, name, "0")
					}
					uses := deployment("a", "b")
					if c.optional {
						uses = []byte(strings.Replace(string(deployment("a", "c")), `{"name":"c"}`, `{"name":"c","optional":true}`, 1))
					}
					object, _ := asked(t, replica(t, server), admissionv1.Create, uses)
					put(server, cmp.Or(c.edited, "a"), "1")
					behind := replica(t, server)
					c.meanwhile(server)
					stored, rolled := asked(t, behind, admissionv1.Update, object)
					if rolled != c.rolls {
						t.Fatalf("rolls: %v, to %v", rolled, stamps(t, stored))
					}
					if rolled && !same(stamps(t, stored), truth(t, server, "a", "b")) {
						t.Errorf("rolls to %v", stamps(t, stored))
					}
				}
			})
		})
	}
}
