package source

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/discovery"
	"github.com/configstamp/configstamp/internal/cache/follow"
)

// statuses are the SecretProviderClassPodStatuses by which the Secrets Store CSI
// driver reports, for each pod, the versions of what it has mounted.
func statuses() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "secrets-store.csi.x-k8s.io", Version: "v1", Resource: "secretproviderclasspodstatuses"}
}

// report is what is kept of a status. class is empty where nothing is
// mounted yet, or nothing can be read.
type report struct {
	object
	class string
}

// DeepCopyObject implements runtime.Object. What a report points to never changes.
func (r *report) DeepCopyObject() runtime.Object {
	same := *r
	return &same
}

// report condenses a status. One that cannot be read reports nothing.
func (c *condenser) report(whole runtime.Object) (*report, bool) {
	object, ok := whole.(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	r := &report{}
	r.namespace, r.name, r.resourceVersion = c.names.intern(object.GetNamespace()), object.GetName(), object.GetResourceVersion()
	var status struct {
		Class   string `json:"secretProviderClassName"`
		Mounted bool   `json:"mounted"`
		Objects []struct {
			ID      string `json:"id"`
			Version string `json:"version"`
		} `json:"objects"`
	}
	fields, _ := object.Object["status"].(map[string]any)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status) == nil && status.Mounted {
		versions := make(map[string]string, len(status.Objects))
		for _, object := range status.Objects {
			versions[object.ID] = object.Version
		}
		r.class, r.content = c.names.intern(status.Class), c.shared(checksum.ContentOfVersions(versions))
	}
	return r, true
}

// classes is what SecretProviderClasses hold, by what their pods report: what the
// newest report says, as long as there is one. The removal of a pod, and of its
// report, says nothing of the class; so what it holds never goes back to
// what older pods reported before.
type classes struct {
	changed onChange

	mu         sync.RWMutex
	namespaces map[string]provided
}

// provided holds the classes of a namespace, and the class on which each status reports.
type provided struct {
	classes   map[string]class
	reporters map[string]string
}

// class is what one holds, and how many statuses report of it.
type class struct {
	held
	reports int
}

func newClasses(changed onChange) *classes {
	return &classes{changed: changed, namespaces: map[string]provided{}}
}

// Filled is always true: without a report, that is all there is to know.
func (c *classes) Filled() bool { return true }

func (c *classes) get(namespace, name string) (Record, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	found, ok := c.namespaces[namespace].classes[name]
	return found.record(), ok
}

func (c *classes) names(namespace string) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Sorted(maps.Keys(c.namespaces[namespace].classes))
}

func (c *classes) len() (count int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, n := range c.namespaces {
		count += len(n.classes)
	}
	return count
}

// take takes a report, or, when it was deleted, lets go of it. Reports come in the
// order of their versions. It returns the classes that hold something else than
// before.
func (c *classes) take(r *report, deleted bool) (changed []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if deleted {
		gone := *r
		gone.class = ""
		r = &gone
	}
	n, ok := c.namespaces[r.namespace]
	if !ok {
		n = provided{classes: map[string]class{}, reporters: map[string]string{}}
		c.namespaces[r.namespace] = n
	}
	changed = n.take(r)
	if len(n.reporters) == 0 {
		delete(c.namespaces, r.namespace)
	}
	return changed
}

func (n provided) take(r *report) (changed []string) {
	before := n.reporters[r.name]
	if before != "" && before != r.class {
		delete(n.reporters, r.name)
		left := n.classes[before]
		if left.reports--; left.reports > 0 {
			n.classes[before] = left
		} else {
			delete(n.classes, before)
			changed = append(changed, before)
		}
	}
	if r.class == "" {
		return changed
	}
	c := n.classes[r.class]
	if before != r.class {
		n.reporters[r.name] = r.class
		c.reports++
	}
	old := c.content
	c.held = r.held
	if c.content.Equal(old) {
		c.content = old // let the new copy go
	} else {
		changed = append(changed, r.class)
	}
	n.classes[r.class] = c
	return changed
}

// replace makes reports all that there are in a namespace, "" for all.
func (c *classes) replace(namespace string, reports []*report) {
	next := newClasses(nil)
	for _, r := range reports {
		next.take(r, false)
	}
	c.mu.Lock()
	before := map[string]provided{}
	for name, n := range c.namespaces {
		if namespace == "" || namespace == name {
			before[name] = n
			delete(c.namespaces, name)
		}
	}
	maps.Copy(c.namespaces, next.namespaces)
	c.mu.Unlock()
	for name, classes := range differing(before, next.namespaces) {
		c.notify(name, classes)
	}
}

// differing lists, by namespace, the classes that hold something else.
func differing(before, after map[string]provided) map[string][]string {
	found := map[string][]string{}
	for _, pair := range [][2]map[string]provided{{before, after}, {after, before}} {
		for namespace, n := range pair[0] {
			for name, one := range n.classes {
				other := pair[1][namespace].classes[name]
				if !one.content.Equal(other.content) && !slices.Contains(found[namespace], name) {
					found[namespace] = append(found[namespace], name)
				}
			}
		}
	}
	return found
}

func (c *classes) notify(namespace string, changed []string) {
	for _, name := range changed {
		c.changed(namespace, checksum.Source{Kind: checksum.SecretProviderClass, Name: name}, nil)
	}
}

// reportSink takes what one watch brings: the statuses of one namespace, or of all. As
// in a sink, an event that is not newer than the one before repeats something known,
// and a list is the truth.
type reportSink struct {
	follow.Store[*report]
	classes *classes
	newest  string // resourceVersion
}

func newReportSink(classes *classes, namespace string) *reportSink {
	s := &reportSink{classes: classes}
	s.Resource, s.Namespace, s.Transform, s.Event, s.All = statuses().Resource, namespace, (&condenser{}).report, s.event, s.all
	return s
}

func (s *reportSink) event(r *report, deleted bool) {
	if !known(r.resourceVersion, s.newest) {
		s.newest = r.resourceVersion
		s.classes.notify(r.namespace, s.classes.take(r, deleted))
	}
}

func (s *reportSink) all(reports []*report, resourceVersion string) {
	// Where one version cannot be compared with the other, the later one counts.
	slices.SortStableFunc(reports, func(a, b *report) int {
		order, _ := resourceversion.CompareResourceVersion(a.resourceVersion, b.resourceVersion)
		return order
	})
	s.newest = resourceVersion
	s.classes.replace(s.Namespace, reports)
}

// resource is what has the statuses watched while the API server serves them.
func (c *classes) resource(cfg *rest.Config, namespaces []string) discovery.Resource {
	return discovery.Resource{GroupVersionResource: statuses(), Watch: func(ctx context.Context, _ string) error {
		client, err := follow.Dynamic(cfg, statuses().GroupVersion())
		if err != nil {
			return fmt.Errorf("making the client that reads SecretProviderClassPodStatuses: %w", err)
		}
		var running sync.WaitGroup
		for _, namespace := range namespaces {
			running.Go(func() { newReportSink(c, namespace).Run(ctx, client) })
		}
		running.Wait()
		c.replace(metav1.NamespaceAll, nil) // there are no reports any more
		return nil
	}}
}
