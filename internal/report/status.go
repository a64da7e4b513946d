package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status computes a status from facts. manager is the field manager of the edit. History, and the times at
// which states began, are carried over from was, the previous status.
func (f *Facts) Status(was *Status, manager string, generation int64, now time.Time) Status {
	is := Status{ObservedGeneration: generation, Workloads: f.entries(), Conditions: slices.Clone(was.Conditions)}
	is.Edit = Edit{EditedAt: timeOf(f.EditedAt), Manager: manager, Keys: f.Keys[:min(len(f.Keys), mostKeys)]}
	for _, w := range f.Workloads {
		if w.Observes {
			continue
		}
		is.Total++
		switch w.State {
		case Done:
			is.Done++
		case Failed:
			is.Failed++
		}
	}
	if is.EditedAt.Equal(was.EditedAt) {
		is.takeOver(was, f.Keys == nil)
	} else {
		is.History = was.followed(now)
	}
	is.History = is.History[:min(len(is.History), mostHistory)]
	is.setConditions(f, now)
	return is
}

// Same reports whether two statuses are equal.
func (s *Status) Same(other *Status) bool { return equality.Semantic.DeepEqual(s, other) }

// takeOver carries over what a previous status of the same edit has; the keys only if keys is set.
func (s *Status) takeOver(was *Status, keys bool) {
	s.History = was.History
	if keys {
		s.Keys = was.Keys[:min(len(was.Keys), mostKeys)]
	}
	for i := range s.Workloads { // a new leader only knows when it first saw them
		is := &s.Workloads[i]
		before := slices.IndexFunc(was.Workloads, func(e Entry) bool { return e.State == is.State && e.Reason == is.Reason && e.Message == is.Message })
		if before >= 0 && is.State != Done {
			is.Since = earlier(is.Since, was.Workloads[before].Since)
		}
	}
}

// followed returns the history after another edit. The edit before that one is in it if it rolled anything:
// then Ready has been false since.
func (s *Status) followed(now time.Time) []Past {
	ready := meta.FindStatusCondition(s.Conditions, Ready)
	if ready == nil || s.EditedAt == nil || ready.Reason == string(Settling) {
		return s.History
	}
	past := Past{Edit: s.Edit, Outcome: State(ready.Reason), EndedAt: timeOf(now)}
	if ready.Status == metav1.ConditionTrue {
		if ready.LastTransitionTime.Before(s.EditedAt) {
			return s.History
		}
		past.EndedAt = &ready.LastTransitionTime
	}
	return append([]Past{past}, s.History...)
}

// setConditions sets and removes conditions one by one: a condition that stays keeps its time.
func (s *Status) setConditions(f *Facts, now time.Time) {
	state := f.State()
	message := f.message(state, s)
	set := func(kind string, status metav1.ConditionStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: string(state), Message: message, ObservedGeneration: s.ObservedGeneration, LastTransitionTime: *timeOf(now),
		})
	}
	ready := metav1.ConditionFalse
	if state.Condition() == Ready {
		ready = metav1.ConditionTrue
	}
	set(Ready, ready)
	for _, kind := range []string{Reconciling, Stalled} {
		if kind == state.Condition() {
			set(kind, metav1.ConditionTrue)
		} else {
			meta.RemoveStatusCondition(&s.Conditions, kind)
		}
	}
}

// message returns one sentence that says what to do.
func (f *Facts) message(state State, s *Status) string {
	have := fmt.Sprintf("%d of %d workloads have it", s.Done, s.Total)
	switch state {
	case Halted:
		if f.Halted != "" {
			return f.Halted
		}
		i := slices.IndexFunc(f.Workloads, func(w Workload) bool { return w.State == Failed })
		return have + ", and " + f.Workloads[i].Name + " has failed: " + f.Workloads[i].Message + ". " + f.Workloads[i].Advice
	case Complete:
		return have + ": there is nothing to do"
	case Unused:
		return "no workload that configstamp may roll uses it: there is nothing to do"
	case Settling:
		return have + "; it was edited a moment ago: wait"
	case Held:
		return have + ", and " + s.first(Held) + ": to roll it out now, change what holds it"
	case Waiting:
		return have + ", and " + s.first(Waiting) + ": wait"
	}
	return have + ", and others roll: wait"
}

// first names the first workload in a state, with the reason.
func (s *Status) first(state State) string {
	i := slices.IndexFunc(s.Workloads, func(e Entry) bool { return e.State == state })
	if i < 0 {
		return "others are " + strings.ToLower(string(state))
	}
	text := s.Workloads[i].Names[0] + " is " + strings.ToLower(string(state))
	if why := s.Workloads[i].Message; why != "" {
		text += " (" + why + ")"
	}
	return text
}
