package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	benchreport "github.com/configstamp/configstamp/e2e/bench/report"
	"github.com/configstamp/configstamp/internal/report"
)

func reports() Scenario {
	return Scenario{
		Name: "reports", Title: "What ConfigRollouts cost",
		Method: "10,000 and then 30,000 ConfigMaps, each with a Deployment that uses it, without and with a ConfigRollout of each, which has five past edits. " +
			"Stored: the API server's estimate of what etcd holds of them. Heap: of the API server, live after a collection. Memory: of the product, at rest. " +
			"The requests are those of one edit that rolls one workload, counted by a proxy. " +
			"With reports, the product compares them with the cluster meanwhile, as each new leader does.",
		Run: func(ctx context.Context, b *Bench, r *benchreport.Result) error {
			const namespace = "reported"
			if err := b.Product.Namespace(ctx, namespace); err != nil {
				return err
			}
			there, m := 0, &reported{b, r, namespace}
			if err := m.source(ctx, edited); err != nil {
				return err
			}
			for _, size := range []int{b.Size(10_000, 500), b.Size(30_000, 1_000)} {
				if err := m.measure(ctx, there, size); err != nil {
					return err
				}
				there = size
			}
			return nil
		},
	}
}

// edited is the one source that is edited.
const edited = "edited"

type reported struct {
	*Bench
	r         *benchreport.Result
	namespace string
}

// source creates a ConfigMap, and a Deployment that uses it.
func (m *reported) source(ctx context.Context, name string) error {
	return errors.Join(m.ConfigMap(ctx, m.namespace, name, "0"),
		m.Create(ctx, m.Product.Workload(lab.Workload{Namespace: m.namespace, Name: name, Sources: []string{"configmap/" + name}})))
}

// measure fills the cluster up to a size, and measures before and after there are reports.
func (m *reported) measure(ctx context.Context, there, size int) error {
	m.Say("creating %d ConfigMaps and Deployments", size-there)
	if err := lab.Fill(ctx, size-there, func(ctx context.Context, i int) error { return m.source(ctx, nameOf(there+i)) }); err != nil {
		return err
	}
	add := func(what string, edits ...string) error {
		what = fmt.Sprintf("%d sources, %s", size, what)
		if err := m.rest(ctx, what, edits); err != nil {
			return err
		}
		heap, err := m.heap(ctx)
		m.r.Add(what+": the API server's heap", "MiB", heap)
		return err
	}
	if there == 0 {
		if err := add("no reports", "a new report", "a report that exists"); err != nil {
			return err
		}
	}
	m.Say("creating %d reports", size-there)
	if err := lab.Fill(ctx, size-there, func(ctx context.Context, i int) error { return m.report(ctx, nameOf(there+i)) }); err != nil {
		return err
	}
	if err := add("as many reports"); err != nil {
		return err
	}
	if err := lab.Pause(ctx, 70*time.Second); err != nil { // the estimate is made each minute
		return err
	}
	metrics, err := m.Metrics(ctx)
	if err != nil {
		return err
	}
	for name, value := range metrics {
		if strings.HasPrefix(name, "apiserver_resource_size_estimate_bytes") && strings.Contains(name, report.Resource) {
			m.r.Add(fmt.Sprintf("%d sources, as many reports: stored", size), "MiB", value/(1<<20))
		}
	}
	return nil
}

// rest measures the product's memory at rest, and counts the requests of some edits, one after the other.
func (m *reported) rest(ctx context.Context, what string, edits []string) error {
	m.Say("%s: at rest", what)
	return m.Started(ctx, product.Options{Immediate: true, Counted: true}, func() error {
		if err := lab.Pause(ctx, 20*time.Second); err != nil {
			return err
		}
		for role, process := range m.Product.Processes() {
			resting, err := process.MiB()
			if err != nil {
				return err
			}
			m.r.Add(fmt.Sprintf("%s: memory of the %s", what, role), "MiB", resting)
		}
		for _, edit := range edits {
			before := m.Product.Counter.Counts()
			if err := m.Edit(ctx, m.namespace, edited, fmt.Sprint(time.Now().UnixNano())); err != nil {
				return err
			}
			if err := lab.Pause(ctx, 10*time.Second); err != nil {
				return err
			}
			asked := m.Product.Counter.Since(before).Work()
			m.r.AddNoted(fmt.Sprintf("%s: requests of one edit about %s, with %s", what, report.Resource, edit), "requests", asked.String(), float64(asked.Of(report.Resource)))
		}
		return nil
	})
}

// report creates a report as the product writes it for a ConfigMap that was edited six times.
func (m *reported) report(ctx context.Context, name string) error {
	begun := time.Now().Add(-time.Hour)
	var status report.Status
	for edit := range 6 {
		at := begun.Add(time.Duration(edit) * time.Minute)
		for _, state := range []report.State{report.Rolling, report.Done} {
			facts := report.Facts{EditedAt: at, Keys: []string{"MESSAGE"}, Workloads: []report.Workload{{Name: "deployment/" + name, State: state, Since: at}}}
			status = facts.Status(&status, "kubectl-client-side-apply", 1, at.Add(time.Second))
		}
	}
	object := report.ConfigRollout{
		TypeMeta:   metav1.TypeMeta{APIVersion: report.GroupVersion().String(), Kind: report.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "configmap-" + name},
		Spec:       report.Spec{Source: report.Source{Kind: "ConfigMap", Name: name}},
	}
	client := m.Dynamic.Resource(report.GroupVersion().WithResource(report.Resource)).Namespace(m.namespace)
	write := func(do func(*unstructured.Unstructured) (*unstructured.Unstructured, error)) error {
		text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&object)
		if err != nil {
			return fmt.Errorf("writing report %s: %w", object.Name, err)
		}
		made, err := do(&unstructured.Unstructured{Object: text})
		if err != nil {
			return fmt.Errorf("writing report %s: %w", object.Name, err)
		}
		object.ResourceVersion, object.Status = made.GetResourceVersion(), status
		return nil
	}
	return errors.Join(
		write(func(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return client.Create(ctx, o, metav1.CreateOptions{})
		}),
		write(func(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return client.UpdateStatus(ctx, o, metav1.UpdateOptions{})
		}),
	)
}

// heap is the API server's live heap after a collection, in MiB.
func (m *reported) heap(ctx context.Context) (float64, error) {
	raw, err := m.Raw()
	if err != nil {
		return 0, err
	}
	text, _, err := raw.Do(ctx, http.MethodGet, "/debug/pprof/heap?gc=1&debug=1", "", nil)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if bytes, found := strings.CutPrefix(strings.TrimSpace(line), "# HeapAlloc = "); found {
			count, err := strconv.ParseFloat(bytes, 64)
			return count / (1 << 20), err
		}
	}
	return 0, errors.New("the API server's profile of the heap has no HeapAlloc")
}
