package controller

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/shortlist"
	"github.com/configstamp/configstamp/internal/waiting"
	"github.com/configstamp/configstamp/internal/workload"
)

// withSpaces has so many namespaces have series of their own, and the process lead.
func (w *world) withSpaces(n int) *prometheus.Registry {
	w.controller.options.NamespaceMetrics, w.controller.spaces = n, shortlist.New(n)
	w.controller.metrics.leads.Store(true)
	registry := prometheus.NewRegistry()
	registry.MustRegister(gauges{w.controller})
	return registry
}

// bySpace scrapes the workloads by namespace and state.
func bySpace(t *testing.T, from *prometheus.Registry) map[shortlist.Cell]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[shortlist.Cell]float64{}
	for _, family := range families {
		if family.GetName() != "configstamp_namespace_workloads" {
			continue
		}
		for _, series := range family.GetMetric() {
			found[shortlist.Cell{Namespace: series.GetLabel()[0].GetValue(), State: series.GetLabel()[1].GetValue()}] = series.GetGauge().GetValue()
		}
	}
	return found
}

// stateOf is the state of a reason by its label.
func stateOf(label string) string {
	for i, row := range checksum.Reasons() {
		if row.In&checksum.Waiting != 0 && row.Label == label {
			return (checksum.NoReason + 1 + checksum.Reason(i)).State()
		}
	}
	return ""
}

// Five namespaces, two of which have series of their own: whatever happens, all series
// together are what the gauges of the cluster say.
func TestSpaces_TheirSumsAreTheCluster(t *testing.T) {
	w := newWorld(t)
	source := configMap("shared")
	at := func(namespace string) rollout.SourceRef {
		return rollout.SourceRef{Namespace: namespace, Source: source}
	}
	for i := range 40 {
		namespace := fmt.Sprintf("n%d", i%5)
		app := &simulatedApp{user: workload.Ref{Kind: w.kind, Namespace: namespace, Name: fmt.Sprintf("app-%02d", i)}, sources: []checksum.Source{source}}
		switch {
		case namespace == "n0" && i > 20:
			app.settings = map[string]string{"configstamp.dev/mode": "observe"}
		case namespace == "n0":
			app.settings = map[string]string{"configstamp.dev/pause": "true"}
		case namespace == "n3":
			app.refused = 4
		case namespace == "n4" && i > 20:
			app.settings = map[string]string{"configstamp.dev/window": "some day"}
		}
		w.add(app)
	}
	w.clock.Step(30 * 24 * time.Hour)
	w.lead()
	w.pass(time.Minute)
	scraped := w.withSpaces(2)
	for i := range 5 {
		if namespace := fmt.Sprintf("n%d", i); i == 1 {
			w.spoil(at(namespace))
		} else {
			w.edit(at(namespace), w.newContent())
		}
	}
	seen := map[string]bool{}
	for range 60 {
		w.pass(5 * time.Second)
		want := map[string]float64{"rolling": scrape(t, scraped, "configstamp_unsettled_rollouts")[""]}
		for _, state := range checksum.States() {
			want[state.Label] = 0
		}
		for label, n := range scrape(t, scraped, "configstamp_waiting_workloads") {
			want[stateOf(label)] += n
		}
		got, namespaces := map[string]float64{}, map[string]bool{}
		for cell, n := range bySpace(t, scraped) {
			got[cell.State] += n
			namespaces[cell.Namespace] = true
			seen[cell.State] = seen[cell.State] || n > 0
		}
		if !maps.Equal(got, want) || !namespaces[shortlist.Others] || len(namespaces) != 3 {
			t.Fatalf("at %s: by namespace %v, in the cluster %v; of %v", w.clock.Now(), got, want, slices.Sorted(maps.Keys(namespaces)))
		}
	}
	if len(seen) != 5 || !seen["waiting"] || !seen["held"] || !seen["halted"] || !seen["blocked"] || !seen["rolling"] {
		t.Errorf("states that were seen: %v; the test shows too little", seen)
	}
}

// Who has no place, is summed; who has nothing served, gets none; a process that does not lead
// tells of nobody.
func TestSpaces_WhoHasSeries(t *testing.T) {
	w := newWorld(t)
	for i, namespace := range []string{"big", "big", "quiet", "held", "off"} {
		app := &simulatedApp{user: workload.Ref{Kind: w.kind, Namespace: namespace, Name: fmt.Sprint("app", i)}, sources: []checksum.Source{configMap("c")}}
		switch namespace {
		case "held":
			app.settings = map[string]string{"configstamp.dev/pause": "true"}
		case "off":
			app.labels = map[string]string{checksum.InjectLabel: checksum.InjectDisabled}
		}
		w.add(app)
	}
	w.clock.Step(30 * 24 * time.Hour)
	w.lead()
	w.pass(time.Minute)
	want := func(scraped *prometheus.Registry, held string, namespaces ...string) {
		t.Helper()
		got, has := bySpace(t, scraped), map[string]bool{}
		for cell, n := range got {
			has[cell.Namespace] = true
			if (n != 0) != (cell == shortlist.Cell{Namespace: held, State: "held"}) {
				t.Errorf("%v: %v", cell, n)
			}
		}
		if all := slices.Sorted(maps.Keys(has)); !slices.Equal(all, namespaces) {
			t.Errorf("series of %v, want %v", all, namespaces)
		}
	}
	scraped := w.withSpaces(1)
	want(scraped, "", shortlist.Others, "big")
	w.edit(rollout.SourceRef{Namespace: "held", Source: configMap("c")}, w.newContent())
	w.pass(time.Minute)
	want(scraped, "held", shortlist.Others, "held")
	want(w.withSpaces(9), "held", shortlist.Others, "big", "held", "quiet")
	w.controller.spaces = shortlist.New(1)
	w.controller.metrics.leads.Store(false)
	want(scraped, shortlist.Others, shortlist.Others)
	want(w.withSpaces(0), "")
}

// 10,000 workloads of 500 namespaces, half of which wait.
func BenchmarkSpaces(b *testing.B) {
	w := newWorld(&testing.T{})
	w.lead()
	for i := range 10_000 {
		user := workload.Ref{Kind: w.kind, Namespace: fmt.Sprintf("n%03d", i%500), Name: fmt.Sprintf("app-%05d", i)}
		w.controller.index.Told(user, &Workload{})
		if i%2 == 0 {
			w.controller.waits.Looked(user, waiting.Found{Why: checksum.Turn}, false, false, w.clock.Now())
		}
	}
	for _, n := range []int{0, 1, 50, shortlist.Most} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			scraped := w.withSpaces(n)
			for b.Loop() {
				if _, err := scraped.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
