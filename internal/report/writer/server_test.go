package writer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/discovery"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/rollout"
)

// world is an API server that keeps ConfigRollouts, and what a leader knows of sources. Its time is that of
// a bubble of testing/synctest.
type world struct {
	*fakeapi.Server
	t *testing.T

	mu      sync.Mutex
	served  bool // there is a definition of ConfigRollouts
	refuse  func(r *http.Request) *metav1.Status
	objects map[string]*report.ConfigRollout // by namespace and name
	puts    map[string][]time.Time           // when each status was written
	facts   map[rollout.SourceRef]report.Facts
	warned  []time.Time

	writer *Writer
	end    func()
}

var edited = time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC) // before each bubble begins

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		Server: fakeapi.Piped(t), t: t, served: true, refuse: func(*http.Request) *metav1.Status { return nil }, end: func() {},
		objects: map[string]*report.ConfigRollout{}, puts: map[string][]time.Time{}, facts: map[rollout.SourceRef]report.Facts{},
	}
	w.Intercept = w.intercept
	t.Cleanup(func() { w.end() })
	w.lead()
	return w
}

// lead has another process lead, which knows nothing of what the last one wrote.
func (w *world) lead() {
	w.end()
	server, err := discovery.NewClient(w.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	w.writer, err = New(w.Config(), server, Options{
		Facts: func(at rollout.SourceRef) (report.Facts, bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			facts, known := w.facts[at]
			return facts, known || at.Source.Name == "unused"
		},
		Sources: func() (all []rollout.SourceRef) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for at := range maps.Keys(w.facts) {
				all = append(all, at)
			}
			return all
		},
		Serves: func(at rollout.SourceRef) bool { return at.Namespace != "foreign" },
		Warn: func(string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.warned = append(w.warned, time.Now())
		},
		Clock: clock.RealClock{}, Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.writer.Run(ctx)
	}()
	w.end = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	synctest.Wait()
}

// find sets what is true of a source, and queues its report unless it is missed.
func (w *world) find(at rollout.SourceRef, missed bool, states ...report.State) {
	facts := report.Facts{EditedAt: edited}
	for i, state := range states {
		facts.Workloads = append(facts.Workloads, report.Workload{Name: fmt.Sprint("deployment/", i), State: state})
	}
	w.mu.Lock()
	w.facts[at] = facts
	w.mu.Unlock()
	if !missed {
		w.writer.Changed(at)
	}
}

// source makes a ConfigMap.
func (w *world) source(namespace, name string) rollout.SourceRef {
	w.Put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + name),
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "labeler", Time: &metav1.Time{Time: edited.Add(time.Hour)}, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`)},
			{Manager: "editor", Time: &metav1.Time{Time: edited}, FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)},
		},
	}})
	return rollout.SourceRef{Namespace: namespace, Source: checksum.Source{Kind: checksum.ConfigMap, Name: name}}
}

// said returns the state that the report on a source says; "" if there is none.
func (w *world) said(at rollout.SourceRef) report.State {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	object := w.objects[at.Namespace+"/"+report.NameOf(at.Source)]
	if object == nil {
		return ""
	}
	ready := meta.FindStatusCondition(object.Status.Conditions, report.Ready)
	if ready == nil {
		return "nothing"
	}
	return report.State(ready.Reason)
}

func (w *world) want(at rollout.SourceRef, state report.State, when string) {
	w.t.Helper()
	if said := w.said(at); said != state {
		w.t.Errorf("%s, the report on %s/%s says %q, want %q", when, at.Namespace, at.Source.Name, said, state)
	}
}

// written returns how often the status of a report was written.
func (w *world) written(at rollout.SourceRef) int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.puts[at.Namespace+"/"+report.NameOf(at.Source)])
}

func (w *world) warnings() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.warned)
}

// kept returns a copy of an object that there is.
func (w *world) kept(key string) report.ConfigRollout {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *w.objects[key]
}

// set keeps an object as somebody else writes it; nil deletes it.
func (w *world) set(namespace, name string, object *report.ConfigRollout) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep(namespace+"/"+name, object)
}

// forge has the report on a source say something else.
func (w *world) forge(at rollout.SourceRef) {
	name := report.NameOf(at.Source)
	w.mu.Lock()
	defer w.mu.Unlock()
	object := w.objects[at.Namespace+"/"+name]
	if object == nil {
		w.t.Fatalf("there is no report on %s/%s", at.Namespace, at.Source.Name)
	}
	forged := *object
	forged.Status.Done, forged.Status.Conditions = 99, nil
	w.keep(at.Namespace+"/"+name, &forged)
}

// keep gives an object a new version; the caller holds the lock.
func (w *world) keep(key string, object *report.ConfigRollout) {
	namespace, name, _ := strings.Cut(key, "/")
	if object == nil {
		delete(w.objects, key)
		w.Delete(report.Resource, namespace, name)
		return
	}
	object.Namespace, object.Name = namespace, name
	object.ResourceVersion = w.Put(report.Resource, &metav1.PartialObjectMetadata{ObjectMeta: object.ObjectMeta})
	w.objects[key] = object
}

// define has the definition of ConfigRollouts come or go, with all objects.
func (w *world) define(served bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.served = served
	for key := range w.objects {
		if !served {
			w.keep(key, nil)
		}
	}
}

func status(code int32, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
}

// intercept answers what concerns ConfigRollouts. Lists and watches are fakeapi's.
func (w *world) intercept(to http.ResponseWriter, r *http.Request) bool {
	path, ours := strings.CutPrefix(r.URL.Path, "/apis/"+report.GroupVersion().String())
	if !ours {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	answer, handled := w.answer(r, strings.Split(path, "/"))
	if !handled {
		return false
	}
	to.Header().Set("Content-Type", "application/json")
	if status, ok := answer.(*metav1.Status); ok {
		to.WriteHeader(int(status.Code))
	}
	_ = json.NewEncoder(to).Encode(answer)
	return true
}

// answer answers a request for /namespaces/NAMESPACE/configrollouts/NAME/status, or less of it.
func (w *world) answer(r *http.Request, path []string) (answer any, handled bool) {
	body, _ := io.ReadAll(r.Body)
	switch refusal := w.refuse(r); {
	case !w.served:
		return status(http.StatusNotFound, metav1.StatusReasonNotFound, "no such resource"), true
	case len(path) == 1:
		return metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: report.Resource, Kind: report.Kind, Namespaced: true}}}, true
	case refusal != nil:
		return refusal, true
	case r.Method == http.MethodGet && len(path) < 5:
		return nil, false
	}
	object, err := report.Read(body)
	switch r.Method {
	case http.MethodPost:
		if err != nil {
			w.t.Error(err)
		}
		w.keep(path[2]+"/"+object.Name, object)
		return object, true
	case http.MethodPut:
		key := path[2] + "/" + path[4]
		if old := w.objects[key]; old == nil || old.ResourceVersion != object.ResourceVersion || path[5] != "status" {
			return status(http.StatusConflict, metav1.StatusReasonConflict, "it was changed"), true
		}
		w.keep(key, object)
		w.puts[key] = append(w.puts[key], time.Now())
		return object, true
	}
	if object := w.objects[path[2]+"/"+path[4]]; object != nil {
		return object, true
	}
	return status(http.StatusNotFound, metav1.StatusReasonNotFound, "no such object"), true
}
