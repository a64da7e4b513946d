package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/rollout"
)

// reports is a writer of reports that never waits. It checks each report against the cluster.
type reports struct {
	queued map[rollout.SourceRef]bool
	said   map[rollout.SourceRef]report.Facts
	states map[rollout.SourceRef][]report.State // each once, one after the other
}

func newReports() *reports {
	return &reports{queued: map[rollout.SourceRef]bool{}, said: map[rollout.SourceRef]report.Facts{}, states: map[rollout.SourceRef][]report.State{}}
}

func (r *reports) changed(at rollout.SourceRef) { r.queued[at] = true }

func (r *reports) write(w *world) {
	if r == nil {
		return
	}
	for at := range r.queued {
		facts, known := w.controller.Facts(at)
		if !known {
			continue // tried again
		}
		state := facts.State()
		if delete(r.queued, at); state == report.Settling {
			r.queued[at] = true // compared again
		}
		r.said[at] = facts
		if states := r.states[at]; len(states) == 0 || states[len(states)-1] != state {
			r.states[at] = append(states, state)
		}
		r.check(w, at, &facts)
	}
}

// check compares facts with the cluster: no more workloads have the content, or have failed, than truly do.
func (r *reports) check(w *world, at rollout.SourceRef, facts *report.Facts) {
	status := facts.Status(&report.Status{}, "", 1, w.clock.Now())
	done, unwell := int32(0), int32(0)
	for _, app := range w.apps {
		if !slices.Contains(app.sources, at.Source) || app.ref.Namespace != at.Namespace {
			continue
		}
		if w.decide(app, checksum.Roller).Equal(app.records) {
			done++
		}
		if !w.isWell(app) {
			unwell++
		}
	}
	if status.Done > done || status.Failed > unwell {
		w.t.Errorf("%s: the report says that %d have it and %d have failed, and %d and %d do: %+v", w.clock.Now().Format(time.TimeOnly), status.Done, status.Failed, done, unwell, facts)
	}
}

// wantNothingMissed checks that each report still says what is true: whatever changed it has queued it.
func (r *reports) wantNothingMissed(w *world) {
	w.t.Helper()
	for at, said := range r.said {
		facts, known := w.controller.Facts(at)
		timeless := func(facts report.Facts) report.Facts {
			facts.Workloads = slices.Clone(facts.Workloads)
			for i := range facts.Workloads {
				facts.Workloads[i].Since, facts.Workloads[i].Until = time.Time{}, time.Time{}
			}
			slices.SortFunc(facts.Workloads, func(a, b report.Workload) int { return strings.Compare(a.Name, b.Name) })
			return facts
		}
		if diff := cmp.Diff(timeless(facts), timeless(said)); known && !r.queued[at] && diff != "" {
			w.t.Errorf("%s: the report on %v was not queued:\n%s", w.clock.Now().Format(time.TimeOnly), at, diff)
		}
	}
}

// pass lets time pass, and checks each second.
func (r *reports) pass(w *world, seconds int) {
	for range seconds {
		w.pass(time.Second)
		r.wantNothingMissed(w)
	}
}

func reporting(t *testing.T, n int, prepare ...func(i int, app *simulatedApp)) (*world, *reports, rollout.SourceRef) {
	w := newWorld(t)
	w.reports = newReports()
	at := w.fill(n, prepare...)
	return w, w.reports, at
}

func TestReport_SaysHowFarAnEditIs(t *testing.T) {
	w, r, at := reporting(t, 4)
	r.pass(w, 1)
	if said, known := r.said[at]; !known || said.Rolls() || said.State() != report.Complete {
		t.Errorf("before any edit: %+v", said)
	}
	delete(r.states, at)
	w.edit(at, w.newContent())
	r.pass(w, 600)
	states := slices.DeleteFunc(r.states[at], func(state report.State) bool { return state == report.Waiting }) // between two turns
	if diff := cmp.Diff([]report.State{report.Settling, report.Rolling, report.Complete}, slices.Compact(states)); diff != "" {
		t.Error(diff)
	}
	if said := r.said[at]; !said.EditedAt.Equal(w.written[at]) || len(said.Workloads) != 4 {
		t.Errorf("at the end: %+v", said)
	}
}

// While a change is halted, no leader reports it as Settling or Complete, or counts more workloads than is true.
func TestReport_ANewLeaderSaysNothingFalse(t *testing.T) {
	w, r, at := reporting(t, 5)
	good := w.spoil(at)
	r.pass(w, 120)
	if said := r.said[at]; said.State() != report.Halted || said.Halted == "" {
		t.Fatalf("of content that fails: %+v", said)
	}
	delete(r.states, at)
	for leader := range 10 {
		clear(r.queued)
		w.lead()
		r.pass(w, 7*leader+3)
	}
	r.pass(w, 120)
	for _, state := range r.states[at] {
		if state != report.Halted && state != report.Rolling && state != report.Waiting {
			t.Errorf("in a halt it was said: %s (%v)", state, r.states[at])
		}
	}
	if said := r.said[at]; said.State() != report.Halted {
		t.Errorf("at the end: %+v", said)
	}
	w.edit(at, good)
	r.pass(w, 600)
	if said := r.said[at]; said.State() != report.Complete {
		t.Errorf("put back: %+v", said)
	}
}

// A new leader has no facts on a source before it has reconciled each workload that uses it, and its settling is over.
func TestReport_ANewLeaderWaits(t *testing.T) {
	w, _, at := reporting(t, 3)
	w.lead()
	if _, known := w.controller.Facts(at); known {
		t.Error("it knows before it has reconciled anything")
	}
	w.controller.next(t.Context())
	w.clock.Step(settle)
	if _, known := w.controller.Facts(at); known {
		t.Error("it knows after one workload of three")
	}
	w.lead()
	for range 3 {
		w.controller.next(t.Context())
	}
	if _, known := w.controller.Facts(at); known {
		t.Error("it knows while its own settling goes on")
	}
	w.clock.Step(settle)
	if _, known := w.controller.Facts(at); !known {
		t.Error("it does not know after all")
	}
}

func TestReport_KeysThatChangedAndAreUsed(t *testing.T) {
	c := newCluster(t)
	c.write("web", map[string]string{"A": "1", "B": "1", "C": "1"})
	h := newHouse(t, c)
	var queued []rollout.SourceRef
	h.Reports(func(at rollout.SourceRef) { queued = append(queued, at) })
	h.outcomes.lead(h.options.Clock.Now().Add(-time.Hour))
	was := c.contents[configMap("web")]
	c.write("web", map[string]string{"A": "2", "B": "1", "D": "1"})
	h.Edited("shop", configMap("web"), was)
	at := rollout.SourceRef{Namespace: "shop", Source: configMap("web")}
	if diff := cmp.Diff([]string{"A", "C", "D"}, h.outcomes.keys(at)); diff != "" || !slices.Equal(queued, []rollout.SourceRef{at}) {
		t.Errorf("keys: %s, queued %v", diff, queued)
	}
	for i := range 2 * mostEdits {
		h.outcomes.edited(rollout.SourceRef{Namespace: fmt.Sprint(i), Source: at.Source}, was, c.contents[at.Source], time.Second, h.options.Clock.Now())
	}
	if len(h.outcomes.edits) > mostEdits {
		t.Errorf("%d edits are kept", len(h.outcomes.edits))
	}
	selection := checksum.Selection{Source: at.Source, Keys: []string{"A"}}
	if !uses(&selection, was, "A") || uses(&selection, was, "B") || !uses(&checksum.Selection{Source: at.Source, All: true}, was, "B") {
		t.Error("which keys a selection uses")
	}
}

// Only the planner reports that the only workload has failed.
func TestReport_TheOnlyWorkloadFails(t *testing.T) {
	w, r, at := reporting(t, 1)
	w.spoil(at)
	r.pass(w, 120)
	if said := r.said[at]; said.State() != report.Halted {
		t.Errorf("it says %+v", said)
	}
}

// With --step=off no health is judged: a workload has content when its own controller has
// rolled it out.
func TestReport_WithoutSteps(t *testing.T) {
	w := newWorld(t)
	w.limits.Step = 0
	w.reports = newReports()
	at := w.fill(2)
	w.edit(at, w.newContent())
	w.reports.pass(w, 600)
	if diff := cmp.Diff([]report.State{report.Settling, report.Rolling, report.Complete}, w.reports.states[at][max(0, len(w.reports.states[at])-3):]); diff != "" {
		t.Error(diff)
	}
	w.spoil(at)
	w.reports.pass(w, 3600)
	if said := w.reports.said[at]; said.State() == report.Complete || said.State() == report.Settling {
		t.Errorf("of content that fails: %+v", said)
	}
}
