package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// Recorder watches workloads and their revisions from the beginning, so that
// nothing that ever happened is missed, cleaned-up ReplicaSets included.
type Recorder struct {
	mu        sync.Mutex
	workloads map[object]*history
	revisions map[object]map[string]bool // UIDs of ReplicaSets or ControllerRevisions, by owner
}

// object names a workload: kind as kubectl takes it, namespace, name.
type object struct{ kind, namespace, name string }

// history is what happened to one workload, deleted or not.
type history struct {
	uid        string
	generation int64
	template   string
	changes    int // of the pod template
}

// Count is what can be counted of one workload.
type Count struct {
	// Rolls is how often the pod template has changed since the creation.
	Rolls int
	// Revisions is how many ReplicaSets or ControllerRevisions there ever were.
	Revisions int
	// Generation is metadata.generation.
	Generation int64
}

// Counts are those of all workloads of a namespace, by "deployment/web".
type Counts map[string]Count

func newRecorder(ctx context.Context, all dynamic.Interface) (*Recorder, error) {
	r := &Recorder{workloads: map[object]*history{}, revisions: map[object]map[string]bool{}}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(all, 0)
	for _, kind := range []string{"deployment", "statefulset", "daemonset", "cronjob", "replicaset", "controllerrevision"} {
		for _, resource := range resources {
			if resource.short != kind {
				continue
			}
			see := r.workload
			if kind == "replicaset" || kind == "controllerrevision" {
				see = r.revision
			}
			_, err := factory.ForResource(resource.GroupVersionResource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(found any) { see(kind, found) },
				UpdateFunc: func(_, found any) { see(kind, found) },
				DeleteFunc: func(found any) { see(kind, found) },
			})
			if err != nil {
				return nil, fmt.Errorf("watching %s: %w", resource.Resource, err)
			}
		}
	}
	factory.Start(ctx.Done())
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for resource, synced := range factory.WaitForCacheSync(bounded.Done()) {
		if !synced {
			return nil, errors.New("watching " + resource.Resource + ": no answer")
		}
	}
	return r, nil
}

func (r *Recorder) workload(kind string, found any) {
	o, ok := found.(*unstructured.Unstructured)
	if !ok {
		return
	}
	path := []string{"spec", "template"}
	if kind == "cronjob" {
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	template, _, _ := unstructured.NestedMap(o.Object, path...)
	text, err := json.Marshal(template) // keys are sorted
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := object{kind, o.GetNamespace(), o.GetName()}
	known := r.workloads[at]
	switch {
	case known == nil || known.uid != string(o.GetUID()):
		known = &history{uid: string(o.GetUID()), template: string(text)}
		r.workloads[at] = known
	case known.template != string(text):
		known.template = string(text)
		known.changes++
	}
	known.generation = o.GetGeneration()
}

func (r *Recorder) revision(_ string, found any) {
	o, ok := found.(*unstructured.Unstructured)
	if !ok {
		return
	}
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := object{strings.ToLower(owner.Kind), o.GetNamespace(), owner.Name}
	if r.revisions[at] == nil {
		r.revisions[at] = map[string]bool{}
	}
	r.revisions[at][string(o.GetUID())] = true
}

// knows reports whether a revision was seen, or is nobody's.
func (r *Recorder) knows(revision *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(revision)
	if owner == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.revisions[object{strings.ToLower(owner.Kind), revision.GetNamespace(), owner.Name}][string(revision.GetUID())]
}

// Counts are those of a namespace now.
func (r *Recorder) Counts(namespace string) Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := Counts{}
	for at, known := range r.workloads {
		if at.namespace == namespace {
			counts[at.kind+"/"+at.name] = Count{Rolls: known.changes, Revisions: len(r.revisions[at]), Generation: known.generation}
		}
	}
	return counts
}
