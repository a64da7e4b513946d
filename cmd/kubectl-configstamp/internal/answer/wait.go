package answer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// Result is what a wait has come to.
type Result string

// The results. Finished needs the webhook's own word, and the workload's own controller's.
const (
	// Going tells that it is worth waiting.
	Going    Result = "waiting"
	Finished Result = "done"
	Stopped  Result = "halted"
	OnHold   Result = "held"
	TimedOut Result = "timed-out"
	// Unsaid tells that the webhook has not said whether something is in step.
	Unsaid Result = "unknown"
)

// Wait is how far a change is on its way to all workloads that are waited for.
type Wait struct {
	Namespace string `json:"namespace"`
	// For is the source or the workload.
	For    string `json:"for"`
	Result Result `json:"result"`
	// Why says in words why it is not done.
	Why string `json:"why,omitempty"`
	// Done of Of workloads are in step and rolled out.
	Done int `json:"done"`
	Of   int `json:"of"`
	// Workloads are those that are not done, the most urgent first.
	Workloads []Progress `json:"workloads"`
	// Notes are about those that are not waited for, or that cannot tell how far they are.
	Notes []string `json:"notes,omitempty"`
	// Next is what to do.
	Next string `json:"next,omitempty"`

	// Sure tells that time alone does not change the result.
	Sure bool `json:"-"`
	// Again is when to look again though nothing has changed; zero: no such time.
	Again time.Time `json:"-"`
}

// WaitOf says how far the workloads of a fleet are. what is the source or workload that is
// waited for; until is when the wait ends, zero for never: a hold that ends before is
// waited for.
func WaitOf(f *seen.Fleet, namespace, what string, now, until time.Time) Wait {
	wait := Wait{Namespace: namespace, For: what, Result: Finished, Workloads: []Progress{}}
	for _, w := range f.Workloads {
		p := ProgressOf(f, w, now)
		if p.State == Unserved {
			wait.Notes = append(wait.Notes, p.Workload+" is not waited for: "+p.Why)
			continue
		}
		wait.Of++
		result, sure := wait.resultOf(f, w, &p, now, until)
		if result == Finished {
			wait.Done++
			if note := quiet(w); note != "" {
				wait.Notes = append(wait.Notes, note)
			}
			continue
		}
		wait.Workloads = append(wait.Workloads, p)
		if order := graveness(); slices.Index(order, result) > slices.Index(order, wait.Result) {
			wait.Result, wait.Sure, wait.Next = result, sure, p.Next
			wait.Why = p.Why
			if result == Unsaid {
				wait.Why = f.Outcome(w).Sentence
			} else if what != p.Workload {
				wait.Why = p.Workload + ": " + p.Why
			}
		}
	}
	slices.SortStableFunc(wait.Workloads, func(a, b Progress) int { return byUrgency(a.State, b.State) })
	if wait.Of == 0 && len(wait.Notes) > 0 {
		wait.Result, wait.Sure, wait.Why = Unsaid, true, "configstamp leaves alone every workload that uses it"
		if only := f.Workloads[0]; only.Text() == what {
			p := ProgressOf(f, only, now)
			wait.Why, wait.Next, wait.Notes = "configstamp leaves it alone: "+p.Why, p.Next, nil
		}
	}
	return wait
}

// graveness is which result counts of several, the last before all others.
func graveness() []Result { return []Result{Finished, Going, Unsaid, OnHold, Stopped} }

// resultOf is what one workload makes of the wait.
func (wait *Wait) resultOf(f *seen.Fleet, w *seen.Workload, p *Progress, now, until time.Time) (result Result, sure bool) {
	outcome := f.Outcome(w)
	if outcome.Code == seen.Unknown {
		return Unsaid, outcome.Lasting
	}
	switch p.State {
	case Done:
		if outcome.Moved {
			p.State, p.Why = Waiting, "it was changed a moment ago"
			return Going, false
		}
		if s := &w.Status; s.Phase == workload.Unreported && s.Updated < s.Wanted {
			p.State, p.Why = Suspended, fmt.Sprintf("%d of %d pods are old, and stay: %s", s.Wanted-s.Updated, s.Wanted, s.Waits)
			p.Next = "kubectl configstamp why " + w.Text() + " -n " + w.Namespace
			return OnHold, false
		}
		return Finished, false
	case Failed, Halted:
		return Stopped, false
	case Observed:
		return OnHold, false
	case Held:
		policy := f.Policy(w)
		hold, held := policy.HoldAt(now, w.Status.Current)
		if held && outcome.Stale() && !hold.Until.IsZero() && (until.IsZero() || hold.Until.Before(until)) {
			wait.lookAt(hold.Until)
			return Going, false
		}
		if event := lastEvent(f, w, reason.Paced, reason.Blocked, reason.Retry); !held && event != nil && event.Reason == reason.Retry.Event() {
			return Going, false // it is tried again for ever
		}
		return OnHold, false
	case Unknown: // the webhook could not tell, for now
		wait.lookAt(now.Add(askAgain))
		return Going, false
	case Rolling, Waiting, Suspended, Unserved:
	}
	return Going, false
}

// askAgain is how soon the webhook is asked again when it could not tell.
const askAgain = 2 * time.Second

func (wait *Wait) lookAt(at time.Time) {
	if wait.Again.IsZero() || at.Before(wait.Again) {
		wait.Again = at
	}
}

// quiet says of a workload that is in step why its rollout cannot be seen, "" if it can.
func quiet(w *seen.Workload) string {
	why := w.Status.Waits
	switch {
	case w.Status.Phase == workload.Unreported && why == "":
		why = "its kind does not say how far a rollout is"
	case w.Status.Phase != workload.Unreported && w.Status.StatusHash != 0:
		why = "its status does not say which generation it speaks of"
	case w.Status.Phase != workload.Unreported:
		return ""
	}
	return w.Text() + " is in step, and no rollout is waited for: " + why
}

// Words says in one line how far a wait is, and what it waits for.
func (wait *Wait) Words() string {
	const first = 3
	var parts []string
	for i := range wait.Workloads[:min(first, len(wait.Workloads))] {
		p := &wait.Workloads[i]
		text := p.Workload + " " + string(p.State)
		if p.Why != "" {
			text += " (" + p.Why + ")"
		}
		parts = append(parts, text)
	}
	if more := len(wait.Workloads) - first; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("%d of %d in step and rolled out", wait.Done, wait.Of)
	if len(parts) > 0 {
		text += "; waiting for " + strings.Join(parts, "; ")
	}
	return text
}

// superseded reports whether a source that an event is about was edited, or released, after
// the event: then it tells of another change, or of a halt that has ended.
func superseded(f *seen.Fleet, w *seen.Workload, event *seen.Event) bool {
	return slices.ContainsFunc(SourcesIn(event.About), func(of checksum.Source) bool {
		source := f.Source(w.Namespace, of)
		return source.Edited().At.After(event.Last) || source.Policy.Resumes().After(event.Last)
	})
}
