// Package throttle finds out how many re-admissions may be under way at once, so that an
// API server that is overloaded gets fewer instead of more: additive increase,
// multiplicative decrease.
//
// It is pure: no clock, no goroutine, no lock. It does not know what a re-admission is;
// its caller says who begins, who has ended, and who was late. Start reading at
// throttle.go; limit.go is the rule.
package throttle

import (
	"container/list"
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// Throttle gives permits: some to each namespace, and some in all. A namespace in which
// re-admissions are late gets fewer, and no other does; where they are late in several,
// there are fewer in all. Who gets none stands in line: each namespace has a line, and the
// lines take turns. Make it with New.
type Throttle struct {
	most       int
	all        *limit[string]
	namespaces map[string]*namespace // of which there is something to know
	places     map[workload.Ref]place
	turns      []string // the namespaces that have a line, the next one first
}

// namespace is what there is to know of one.
type namespace struct {
	*limit[workload.Ref]
	line list.List // of workload.Ref, the first to ask first
}

// place is where a workload stands.
type place struct {
	in    standing
	asked bool          // since the last look at it ended
	line  *list.Element // while it waits
	// The windows of the limits in which it got its permit.
	all, own int
}

type standing int

const (
	waits  standing = iota // in line
	called                 // it has a permit, and does not know yet
	begun                  // it has a permit
)

// New makes a Throttle of most permits, at least one.
func New(most int) *Throttle {
	most = max(most, 1)
	return &Throttle{most: most, all: newLimit[string](most), namespaces: map[string]*namespace{}, places: map[workload.Ref]place{}}
}

// Permits is how many there are in all now.
func (t *Throttle) Permits() int { return t.all.permits }

// Begin gives a workload a permit, to be given back by End. Without one it stands in line.
func (t *Throttle) Begin(ref workload.Ref) bool {
	in := t.namespaces[ref.Namespace]
	if in == nil {
		in = &namespace{limit: newLimit[workload.Ref](t.most)}
		t.namespaces[ref.Namespace] = in
	}
	at, known := t.places[ref]
	switch {
	case known && at.in == called:
		at.in, at.asked = begun, true
		t.places[ref] = at
		return true
	case !known && t.room(in):
		t.give(ref, in, begun)
		return true
	case !known:
		if in.line.Len() == 0 {
			t.turns = append(t.turns, ref.Namespace)
		}
		at.line = in.line.PushBack(ref)
		fallthrough
	default: // it stands in line
		at.asked = true
		t.places[ref] = at
		return false
	}
}

// give gives a permit.
func (t *Throttle) give(ref workload.Ref, in *namespace, to standing) {
	asked := to == begun || t.places[ref].asked
	t.places[ref] = place{in: to, asked: asked, all: t.all.window, own: in.window}
	t.all.out++
	in.out++
}

// room reports whether there is a permit for a namespace. One in which nobody has one, and
// was not late, does not wait for those that are late: one such has a permit beyond all.
func (t *Throttle) room(in *namespace) bool {
	return in.room() && (t.all.room() || in.out == 0 && !in.wasLate && t.all.out <= t.all.permits)
}

// End takes a permit back. late tells that nothing came of it, for want of time. Those who
// are called have a permit from now on, and should be looked at.
func (t *Throttle) End(ref workload.Ref, late bool, now time.Time) (next []workload.Ref) {
	at := t.places[ref]
	if at.in != begun {
		return nil
	}
	t.all.answered(ref.Namespace, at.all, late, now)
	t.namespaces[ref.Namespace].answered(ref, at.own, late, now)
	return t.release(ref, now)
}

// Looked tells that a look at a workload has ended. A permit to which it was called and
// which it did not want goes to the next, and who did not ask again leaves the line.
func (t *Throttle) Looked(ref workload.Ref, now time.Time) (next []workload.Ref) {
	at, known := t.places[ref]
	switch {
	case !known:
		return nil
	case at.in == called && !at.asked: // else it was called during the look, and comes again
		return t.release(ref, now)
	case at.in == waits && !at.asked:
		in := t.namespaces[ref.Namespace]
		in.line.Remove(at.line)
		if in.line.Len() == 0 {
			t.turns = slices.DeleteFunc(t.turns, func(name string) bool { return name == ref.Namespace })
		}
		delete(t.places, ref)
		return nil
	}
	at.asked = false
	t.places[ref] = at
	return nil
}

// release takes a permit from who has it, and gives it to who is next.
func (t *Throttle) release(ref workload.Ref, now time.Time) (next []workload.Ref) {
	delete(t.places, ref)
	t.all.out--
	t.namespaces[ref.Namespace].out--
	next = t.call()
	for name, in := range t.namespaces {
		if in.out == 0 && in.line.Len() == 0 && in.tellsNothing(now) {
			delete(t.namespaces, name)
		}
	}
	return next
}

// call gives permits to those in line, as far as there are any.
func (t *Throttle) call() (next []workload.Ref) {
	for more := true; more; {
		more = false
		for range len(t.turns) {
			name := t.turns[0]
			t.turns = t.turns[1:]
			in := t.namespaces[name]
			if t.room(in) {
				ref := in.line.Remove(in.line.Front()).(workload.Ref) //nolint:forcetypeassert // nothing else is put there
				t.give(ref, in, called)
				next, more = append(next, ref), true
			}
			if in.line.Len() > 0 {
				t.turns = append(t.turns, name)
			}
		}
	}
	return next
}

// Stands reports whether a workload stands in line.
func (t *Throttle) Stands(ref workload.Ref) bool {
	at, known := t.places[ref]
	return known && at.in == waits
}
