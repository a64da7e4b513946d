package main

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/workload"
)

// verdict is the progress of the change that wait waits for, the gravest last.
type verdict int

const (
	finished verdict = iota
	going
	unknown
	held
	halted
)

// finding is a verdict, and why.
type finding struct {
	verdict verdict
	why     string
	// lasts is after how long the verdict ends the wait: until then it may be overtaken. 0: it never does.
	lasts time.Duration
	// vague findings do not count if the webhook says that the workload is in step.
	vague bool
}

// gravest returns the gravest of some findings, the first of several.
func gravest(findings ...finding) (worst finding) {
	for _, f := range findings {
		if f.verdict > worst.verdict {
			worst = f
		}
	}
	return worst
}

// patience is for how long a wait does not believe bad news.
type patience struct {
	settled time.Duration // of what is halted or held
	silent  time.Duration // of a webhook that gives no answer: it may be restarting
	late    time.Duration // of a report that does not come: the leader may be changing
	again   time.Duration // how soon the webhook is asked again
}

func usualPatience() patience {
	return patience{settled: 3 * time.Second, silent: 20 * time.Second, late: time.Minute, again: 2 * time.Second}
}

// writeTime is when a source's data was last written.
type writeTime struct {
	at time.Time // zero: not known
	// hidden says that the user may not read the source.
	hidden bool
}

// judge draws conclusions for a wait.
type judge struct {
	patience
	until time.Time // when the wait ends; zero: never
}

// outdated returns whether a report is missing, or is about an earlier edit; otherwise the finding is finished.
func (j *judge) outdated(r *rolloutReport, source string, last writeTime) finding {
	late := func(why string) finding { return finding{unknown, why, j.late, true} }
	switch {
	case r == nil:
		return late("there is no report on " + source)
	case r.ready().Status == metav1.ConditionUnknown:
		return late("configstamp has not reported on " + source + " yet")
	case timeIn(r.Status.EditedAt).Before(last.at):
		return late(fmt.Sprintf("configstamp has yet to report on the edit of %s at %s", source, at(last.at)))
	case last.hidden && r.ready().Status == metav1.ConditionTrue:
		return finding{unknown, fmt.Sprintf("you may not read %s, so the report on its edit at %s may be about an earlier one", source, at(timeIn(r.Status.EditedAt))), j.settled, true}
	}
	return finding{}
}

// ofEdit returns how far an edit is.
func (j *judge) ofEdit(r *rolloutReport, source string, last writeTime) finding {
	if f := j.outdated(r, source, last); f.verdict != finished {
		return f
	}
	ready := r.ready()
	switch report.State(ready.Reason) {
	case report.Complete:
		return finding{why: ready.Message}
	case report.Halted:
		return finding{halted, ready.Message, j.settled, false}
	case report.Held, report.Unused: // workloads that only observe do not count, but are named
		var all []finding
		for i := range r.Status.Workloads {
			all = append(all, j.ofEntry(r, &r.Status.Workloads[i]))
		}
		if f := gravest(all...); f.verdict != finished {
			return f
		}
		if ready.Status == metav1.ConditionTrue {
			return finding{why: ready.Message}
		}
	}
	return finding{verdict: going, why: ready.Message}
}

// ofWorkload returns how far an edit is on one workload.
func (j *judge) ofWorkload(r *rolloutReport, source, name string, last writeTime) finding {
	if f := j.outdated(r, source, last); f.verdict != finished {
		return f
	}
	entries, named := entriesFor(&r.Status, name)
	if len(entries) == 0 {
		return finding{}
	}
	first := j.ofEntry(r, entries[0])
	for _, e := range entries[1:] {
		if j.ofEntry(r, e).verdict != first.verdict {
			return finding{unknown, "the report on " + source + " names too few workloads to tell how far " + name + " is", j.late, true}
		}
	}
	first.vague = !named
	return first
}

// ofEntry returns how far the workloads of an entry are.
func (j *judge) ofEntry(r *rolloutReport, e *report.Entry) finding {
	why := e.Names[0] + " is " + stateWords(e) + because(e)
	switch {
	case e.State == report.Done:
		return finding{}
	case e.State == report.Failed:
		return finding{halted, why, j.settled, false}
	case e.State == report.Waiting && e.Reason == reason.Halted.String():
		return finding{halted, r.ready().Message, j.settled, false}
	case e.State == report.Held && (e.Until == nil || !j.until.IsZero() && e.Until.After(j.until)):
		return finding{held, why, j.settled, false}
	}
	return finding{verdict: going, why: why}
}

// ofAnswer returns how far a workload is by what the webhook said of it, and by its own status.
func (j *judge) ofAnswer(s *subject, answer *outcome) finding {
	switch why := s.String() + ": " + answer.Sentence; answer.Code {
	case reason.OutcomeInStep:
		return j.ofStatus(s)
	case reason.OutcomeObserved, reason.OutcomeHeld, reason.OutcomeMissing, reason.OutcomeUnreadable, reason.OutcomeOversize:
		return finding{held, why, j.settled, false}
	case reason.NoOutcome:
		return finding{unknown, why, j.silent, false}
	case reason.OutcomeWouldRoll:
		return finding{verdict: going, why: s.String() + " is out of date, and yet to be rolled"}
	default: // the webhook could not tell, for now
		return finding{verdict: going, why: why}
	}
}

// ofStatus returns how far a workload's own controller is.
func (j *judge) ofStatus(s *subject) finding {
	why := s.String() + " is " + s.progress()
	switch old := s.status.Wanted - s.status.Updated; {
	case s.status.Phase == workload.Failed:
		return finding{halted, why, j.settled, false}
	case s.status.Phase == workload.Rolling, s.status.Phase == workload.Suspended:
		return finding{verdict: going, why: why}
	case s.status.Phase == workload.Unreported && old > 0:
		return finding{held, fmt.Sprintf("%d of %d pods of %s are old, and stay: %s", old, s.status.Wanted, s, s.status.Waits), j.settled, false}
	}
	return finding{}
}

// stateWords returns the state of an entry as a part of a sentence.
func stateWords(e *report.Entry) string { return strings.ToLower(string(e.State)) }
