package answer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Status is what is under way.
type Status struct {
	// Changes are the sources because of which something rolls, waits, is held, or has
	// failed; what the user should look at first stands first.
	Changes []Change `json:"changes"`
	// Others are workloads that are not done, without it being known because of what.
	Others []Progress `json:"others,omitempty"`
	// Workloads counts those that were looked at by their state.
	Workloads map[State]int `json:"workloads"`
}

// Change is one source that has changed, and where its users stand.
type Change struct {
	Namespace string          `json:"namespace"`
	Source    checksum.Source `json:"source"`
	// Edited is when its content was written last, and by whom.
	Edited *seen.Write `json:"edited,omitempty"`
	// Done of Of its users carry what is true, and have rolled out.
	Done int `json:"done"`
	Of   int `json:"of"`
	// Workloads are those that are not done.
	Workloads []Progress `json:"users"`
	// Next is what to do.
	Next string `json:"next,omitempty"`
}

// urgency is the order of states in which people want to see them.
func urgency() []State {
	return []State{Failed, Halted, Held, Unknown, Rolling, Waiting, Suspended, Observed, Done, Unserved}
}

func byUrgency(a, b State) int { return slices.Index(urgency(), a) - slices.Index(urgency(), b) }

// StatusOf says what is under way among the workloads of a fleet.
func StatusOf(f *seen.Fleet, now time.Time) Status {
	status := Status{Changes: []Change{}, Workloads: map[State]int{}}
	changes := map[rollout.SourceRef]*Change{}
	var refs []rollout.SourceRef
	all := make([]Progress, len(f.Workloads))
	for i, w := range f.Workloads {
		p := ProgressOf(f, w, now)
		all[i] = p
		status.Workloads[p.State]++
		switch {
		case p.State == Done || p.State == Unserved:
			continue
		case len(p.Because) == 0:
			if p.Outcome != seen.InStep { // else somebody else rolls it
				status.Others = append(status.Others, p)
			}
			continue
		}
		for _, source := range p.Because {
			at := rollout.SourceRef{Namespace: w.Namespace, Source: source}
			if changes[at] == nil {
				changes[at] = changeOf(f, at)
				refs = append(refs, at)
			}
			changes[at].Workloads = append(changes[at].Workloads, p)
		}
	}
	for i, w := range f.Workloads {
		if all[i].State == Unserved || all[i].State == Unknown {
			continue
		}
		for _, source := range f.Selected(w) {
			if change := changes[rollout.SourceRef{Namespace: w.Namespace, Source: source}]; change != nil {
				change.Of++
				if all[i].State == Done || !slices.Contains(all[i].Because, source) {
					change.Done++
				}
			}
		}
	}
	slices.SortFunc(refs, rollout.SourceRef.Compare)
	for _, at := range refs {
		change := changes[at]
		slices.SortStableFunc(change.Workloads, func(a, b Progress) int { return byUrgency(a.State, b.State) })
		change.Of = max(change.Of, change.Done+len(change.Workloads))
		change.Next = nextOf(change)
		status.Changes = append(status.Changes, *change)
	}
	slices.SortStableFunc(status.Changes, func(a, b Change) int { return byUrgency(a.Workloads[0].State, b.Workloads[0].State) })
	slices.SortStableFunc(status.Others, func(a, b Progress) int { return byUrgency(a.State, b.State) })
	return status
}

func changeOf(f *seen.Fleet, at rollout.SourceRef) *Change {
	change := &Change{Namespace: at.Namespace, Source: at.Source}
	if edit := f.Source(at.Namespace, at.Source).Edited(); !edit.At.IsZero() {
		change.Edited = &edit
	}
	return change
}

// nextOf is what to do about a change: about its most urgent user, in the words of the
// source. While some roll, those that a setting holds are held on purpose.
func nextOf(change *Change) string {
	of := change.Source.String() + " -n " + change.Namespace
	first := change.Workloads[0]
	moves := slices.ContainsFunc(change.Workloads, func(p Progress) bool { return p.State == Rolling || p.State == Waiting })
	switch {
	case first.State == Failed:
		return first.Next + ". To go on anyway: kubectl configstamp resume " + of
	case first.State == Halted:
		return "fix " + change.Source.String() + ", or put it back. To go on anyway: kubectl configstamp resume " + of
	case moves:
		return "kubectl configstamp wait " + of
	}
	return first.Next
}

// Words counts the users of a change by their state: "2 of 5 done, 1 rolling". Of one
// alone it says the state.
func (c *Change) Words() string {
	var parts []string
	if c.Of > 1 {
		parts = append(parts, fmt.Sprintf("%d of %d done", c.Done, c.Of))
	}
	for _, state := range urgency() {
		n := 0
		for _, its := range c.Workloads {
			if its.State == state {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

// missingPods says how far a rollout is.
func missingPods(status *workload.Status) string {
	what := "pods"
	if status.PerNode {
		what = "nodes"
	}
	if status.Wanted == 0 {
		return "it is not rolled out yet"
	}
	return fmt.Sprintf("%d of %d %s are new and available", status.Wanted-status.Missing, status.Wanted, what)
}
