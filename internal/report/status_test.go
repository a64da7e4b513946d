package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
)

var began = time.Date(2026, 11, 28, 7, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

func workloads(states ...State) (all []Workload) {
	for i, state := range states {
		all = append(all, Workload{Name: fmt.Sprintf("deployment/%02d", i), State: state})
	}
	return all
}

func TestTheStateOfAnEdit(t *testing.T) {
	settling := Workload{Name: "deployment/s", State: Waiting, Settles: true}
	observing := Workload{Name: "deployment/o", State: Held, Observes: true}
	for _, test := range []struct {
		facts     Facts
		state     State
		condition string
	}{
		{Facts{}, Unused, Ready},
		{Facts{Workloads: []Workload{observing}}, Unused, Ready},
		{Facts{Workloads: append(workloads(Done), observing)}, Complete, Ready},
		{Facts{Workloads: append(workloads(Done), settling)}, Settling, Reconciling},
		{Facts{Workloads: append(workloads(Waiting), settling)}, Settling, Reconciling},
		{Facts{Workloads: append(workloads(Rolling), settling)}, Rolling, Reconciling},
		{Facts{Workloads: workloads(Done, Held)}, Held, Reconciling},
		{Facts{Workloads: workloads(Held, Waiting)}, Waiting, Reconciling},
		{Facts{Workloads: workloads(Held, Waiting, Rolling)}, Rolling, Reconciling},
		{Facts{Workloads: workloads(Failed, Rolling)}, Rolling, Reconciling},
		{Facts{Workloads: workloads(Failed, Waiting)}, Rolling, Reconciling},
		{Facts{Workloads: workloads(Failed, Done)}, Halted, Stalled},
		{Facts{Halted: "why", Workloads: append(workloads(Failed, Waiting), settling)}, Halted, Stalled},
		{Facts{Halted: "why", Workloads: workloads(Held)}, Halted, Stalled},
	} {
		if is := test.facts.State(); is != test.state || is.Condition() != test.condition {
			t.Errorf("%+v: %s and %s, want %s and %s", test.facts, is, is.Condition(), test.state, test.condition)
		}
		status := test.facts.Status(&Status{}, "m", 3, began)
		var holds []string
		for _, c := range status.Conditions {
			if c.Status == metav1.ConditionTrue {
				holds = append(holds, c.Type)
			}
			if c.Reason != string(test.state) || c.ObservedGeneration != 3 || c.Message == "" {
				t.Errorf("%+v: condition %+v", test.facts, c)
			}
		}
		if !slices.Equal(holds, []string{test.condition}) || meta.FindStatusCondition(status.Conditions, Ready) == nil {
			t.Errorf("%+v: conditions %+v", test.facts, status.Conditions)
		}
	}
}

func TestWorkloadsWithOneReasonAreOneEntry(t *testing.T) {
	facts := Facts{Workloads: workloads(Done, Rolling, Failed)}
	for i := range 30 {
		facts.Workloads = append(facts.Workloads, Workload{Name: fmt.Sprintf("deployment/w%02d", i), State: Held, Reason: "window", Message: "m", Since: at(-i), Until: at(100 + i)})
	}
	status := facts.Status(&Status{}, "", 1, began)
	held := &status.Workloads[1]
	if states := []State{status.Workloads[0].State, held.State, status.Workloads[2].State, status.Workloads[3].State}; !slices.Equal(states, []State{Failed, Held, Rolling, Done}) || len(status.Workloads) != 4 {
		t.Errorf("entries: %+v", status.Workloads)
	}
	if held.Count != 30 || len(held.Names) != mostNames || !held.Since.Time.Equal(at(-29)) || !held.Until.Time.Equal(at(100)) {
		t.Errorf("of thirty: %+v", held)
	}

	facts = Facts{Workloads: workloads(Failed, Done)}
	for i := range 40 {
		facts.Workloads = append(facts.Workloads,
			Workload{Name: fmt.Sprintf("deployment/h%02d", i), State: Held, Reason: "window", Message: fmt.Sprint(i)},
			Workload{Name: fmt.Sprintf("deployment/w%02d", i), State: Waiting, Reason: fmt.Sprint("r", i), Message: strings.Repeat("m", 2000)})
	}
	status = facts.Status(&Status{}, "", 1, began)
	count := map[State]int32{}
	for _, e := range status.Workloads {
		count[e.State] += e.Count
		if len(e.Message) > longestMessage || len(e.Names) > mostNames {
			t.Errorf("too long: %+v", e)
		}
	}
	if diff := cmp.Diff(map[State]int32{Failed: 1, Held: 40, Waiting: 40, Done: 1}, count); diff != "" || len(status.Workloads) > mostEntries {
		t.Errorf("%d entries: %s", len(status.Workloads), diff)
	}
}

// Keys, times of states and times of conditions are carried over within one edit.
func TestWhatIsKnownOfTheSameEditStays(t *testing.T) {
	facts := Facts{EditedAt: at(0), Keys: []string{"A"}, Workloads: []Workload{{Name: "deployment/a", State: Held, Reason: "pause", Message: "m", Since: at(1)}}}
	first := facts.Status(&Status{}, "m", 1, at(1))
	newLeader := facts
	newLeader.Keys = nil
	newLeader.Workloads = []Workload{facts.Workloads[0]}
	newLeader.Workloads[0].Since = at(500)
	if again := newLeader.Status(&first, "m", 1, at(600)); !again.Same(&first) {
		t.Errorf("a new leader says something else: %s", cmp.Diff(first, again))
	}
	done := Facts{EditedAt: at(0), Workloads: workloads(Done)}
	second := done.Status(&first, "m", 1, at(700))
	if ready := meta.FindStatusCondition(second.Conditions, Ready); !ready.LastTransitionTime.Time.Equal(at(700)) || meta.FindStatusCondition(second.Conditions, Reconciling) != nil {
		t.Errorf("done: %+v", second.Conditions)
	}
	if third := done.Status(&second, "m", 1, at(800)); !third.Same(&second) {
		t.Errorf("unchanged: %s", cmp.Diff(second, third))
	}
}

func TestHistory(t *testing.T) {
	var status Status
	edit := func(second int, states ...State) {
		facts := Facts{EditedAt: at(second), Keys: []string{}, Workloads: workloads(states...)}
		status = facts.Status(&status, fmt.Sprint("m", second), 1, at(second+1))
	}
	history := func() (all []string) {
		for _, past := range status.History {
			all = append(all, fmt.Sprint(past.EditedAt.Sub(began), " ", past.Manager, " ", past.Outcome, " ", past.EndedAt.Sub(began)))
		}
		return all
	}
	settle := func(second int) {
		facts := Facts{EditedAt: at(second), Workloads: []Workload{{Name: "deployment/a", State: Waiting, Settles: true}}}
		status = facts.Status(&status, "m", 1, at(second))
	}
	edit(0, Rolling)
	edit(0, Done)
	edit(10, Done) // it rolls nothing
	edit(20, Rolling)
	edit(20, Failed)
	settle(30)
	settle(31)
	edit(40, Rolling)
	edit(50, Done)
	want := []string{"40s m40 Rolling 51s", "20s m20 Halted 30s", "0s m0 Complete 1s"}
	if diff := cmp.Diff(want, history()); diff != "" {
		t.Error(diff)
	}
	for second := 100; second < 200; second += 10 {
		edit(second, Rolling)
	}
	if len(status.History) != mostHistory {
		t.Errorf("%d edits in the history", len(status.History))
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 252) + "b"
	for _, test := range []struct {
		source checksum.Source
		name   string
	}{
		{checksum.Source{Kind: checksum.ConfigMap, Name: "shop-settings"}, "configmap-shop-settings"},
		{checksum.Source{Kind: checksum.Secret, Name: "a.b"}, "secret-a.b"},
	} {
		name := NameOf(test.source)
		if source, ok := SourceOf(name); name != test.name || !ok || source != test.source || MayBeCut(name) {
			t.Errorf("%v: %s, of %v", test.source, name, source)
		}
	}
	one, two := NameOf(checksum.Source{Kind: checksum.ConfigMap, Name: long}), NameOf(checksum.Source{Kind: checksum.ConfigMap, Name: long[:252] + "c"})
	if len(one) > longestName || one == two || !MayBeCut(one) {
		t.Errorf("%s and %s", one, two)
	}
	for _, name := range []string{"", "configmap", "configmap-", "pod-a", "secretproviderclass-a"} {
		if source, ok := SourceOf(name); ok {
			t.Errorf("%q is of %v", name, source)
		}
	}
}

// Other releases may have written a status of another form.
func TestReadTakesAStatusOfAnotherFormAsEmpty(t *testing.T) {
	object, err := Read([]byte(`{"metadata":{"name":"configmap-a","generation":2},"spec":{"source":{"kind":"ConfigMap","name":"a"}},"status":{"workloads":"none"}}`))
	if err != nil || object.Generation != 2 || object.Spec.Source.Name != "a" || object.Status.Workloads != nil {
		t.Errorf("%+v, %v", object, err)
	}
	if _, err := Read([]byte(`[`)); err == nil {
		t.Error("no object is read")
	}
}
