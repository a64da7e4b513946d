package writer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/discovery"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/rollout"
)

// world is an API server, and what a leader knows of sources. Its time is that of a bubble of
// testing/synctest.
type world struct {
	*fakeapi.Server
	t *testing.T

	mu     sync.Mutex
	puts   map[string][]time.Time // when each status was written, by namespace and name
	facts  map[rollout.SourceRef]report.Facts
	warned []time.Time

	writer *Writer
	end    func()
}

var edited = time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC) // before each bubble begins

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		Server: fakeapi.Piped(t), t: t, end: func() {},
		puts: map[string][]time.Time{}, facts: map[rollout.SourceRef]report.Facts{},
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
	object := w.kept(at.Namespace, report.NameOf(at.Source))
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

// kept returns a copy of a ConfigRollout, nil if there is none.
func (w *world) kept(namespace, name string) *report.ConfigRollout {
	stored := w.Get(report.Resource, namespace, name)
	if stored == nil {
		return nil
	}
	text, err := json.Marshal(stored)
	if err != nil {
		w.t.Fatal(err)
	}
	object, err := report.Read(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return object
}

// set keeps an object as somebody else writes it.
func (w *world) set(namespace, name string, object *report.ConfigRollout) {
	object.APIVersion, object.Kind, object.Namespace, object.Name = report.GroupVersion().String(), report.Kind, namespace, name
	text, err := json.Marshal(object)
	stored := &unstructured.Unstructured{}
	if err == nil {
		err = stored.UnmarshalJSON(text)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.Put(report.Resource, stored)
}

// forge has the report on a source say something else.
func (w *world) forge(at rollout.SourceRef) {
	object := w.kept(at.Namespace, report.NameOf(at.Source))
	object.Status.Done, object.Status.Conditions = 99, nil
	w.set(object.Namespace, object.Name, object)
}

// define sets whether the API server serves ConfigRollouts.
func (w *world) define(served bool) {
	if served {
		w.Refuse("/apis/", nil)
	} else {
		w.Refuse("/apis/", apierrors.NewNotFound(schema.GroupResource{}, ""))
	}
}

// intercept answers discovery, and notes when each status is written.
func (w *world) intercept(to http.ResponseWriter, r *http.Request) bool {
	path := strings.Split(r.URL.Path, "/") // /apis/GROUP/VERSION/namespaces/NAMESPACE/configrollouts/NAME/status, or less of it
	switch len(path) {
	case 4:
		to.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(to).Encode(metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: report.Resource, Kind: report.Kind, Namespaced: true}}})
		return true
	case 9:
		w.mu.Lock()
		defer w.mu.Unlock()
		key := path[5] + "/" + path[7]
		w.puts[key] = append(w.puts[key], time.Now())
	}
	return false
}
