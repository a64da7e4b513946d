package eventqueue

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// Bounds of what waits, for each of the two types. A whole event takes about one
// KiB, and so does a line.
const (
	mostWhole = 5000
	mostLines = 5000
	mostOfOne = 100 // lines of one namespace; a few more, of the Namespace itself
)

// waiting is an event that waits to be written.
type waiting struct {
	*eventsv1.Event
	stands int // for how many events
	tries  int
}

// subject is what the events of one line have in common.
type subject struct {
	reason string
	about  corev1.ObjectReference // a source or a Namespace
}

// line holds the events of one type and reason about one subject.
type line struct {
	whole []waiting
	rest  fold
}

// fold is what is kept of events that become one.
type fold struct {
	count int
	first *eventsv1.Event
	names []string
}

// named is how many objects a folded event names.
const named = 5

func (f *fold) add(w waiting) {
	if f.count == 0 {
		f.first = w.Event
	}
	f.count += w.stands
	name := w.Regarding.Kind + " " + w.Regarding.Name
	if len(f.names) < named && !slices.Contains(f.names, name) {
		f.names = append(f.names, name)
	}
}

// event is the one event that stands for all that were added.
func (f *fold) event(about corev1.ObjectReference) waiting {
	if f.count == 1 {
		return waiting{Event: f.first, stands: 1}
	}
	one := f.first.DeepCopy()
	one.Regarding, one.Related = about, nil
	one.Name = nameOf(about.Name, one.EventTime.Time)
	others := ""
	if f.count > named && len(f.names) == named {
		others = " and others"
	}
	one.Note = shorten(fmt.Sprintf("%d events in one, because they could not be sent one by one: about %s%s. The first said: %s",
		f.count, strings.Join(f.names, ", "), others, f.first.Note))
	return waiting{Event: one, stands: f.count}
}

// lines are all events of one type that wait. The namespaces take turns, and the lines of each.
type lines struct {
	of     map[subject]*line
	turns  map[string][]subject // those of a namespace that have a line, the next one first
	spaces []string             // those that have lines, the next one first
	whole  int
}

func newLines() *lines { return &lines{of: map[subject]*line{}, turns: map[string][]subject{}} }

// add has an event wait in the line of its subject, or in that of its Namespace where many
// have one, and reports false when there is no room, not even for a folded one.
func (l *lines) add(about subject, w waiting) bool {
	if namespace := about.about.Namespace; l.of[about] == nil && len(l.turns[namespace]) >= mostOfOne {
		about.about = aboutNamespace(namespace)
	}
	if l.of[about] == nil && len(l.of) >= mostLines {
		return false
	}
	one := l.line(about)
	if l.whole < mostWhole {
		one.whole = append(one.whole, w)
		l.whole++
	} else {
		one.rest.add(w)
	}
	return true
}

// line is that of a subject, the last of its namespace if it is new.
func (l *lines) line(about subject) *line {
	one := l.of[about]
	if one == nil {
		one = &line{}
		l.push(about, one)
	}
	return one
}

// push puts a line behind the others of its namespace.
func (l *lines) push(about subject, one *line) {
	namespace := about.about.Namespace
	if len(l.turns[namespace]) == 0 {
		l.spaces = append(l.spaces, namespace)
	}
	l.of[about], l.turns[namespace] = one, append(l.turns[namespace], about)
}

// pop takes the next line out, nil when there is none.
func (l *lines) pop() (about subject, one *line) {
	if len(l.spaces) == 0 {
		return subject{}, nil
	}
	namespace := l.spaces[0]
	l.spaces = l.spaces[1:]
	turns := l.turns[namespace]
	about, one = turns[0], l.of[turns[0]]
	delete(l.of, about)
	if l.turns[namespace] = turns[1:]; len(turns) > 1 {
		l.spaces = append(l.spaces, namespace)
	} else {
		delete(l.turns, namespace)
	}
	return about, one
}

// back puts an event that could not be written where it was.
func (l *lines) back(about subject, w waiting) {
	one, namespace := l.line(about), about.about.Namespace
	is := func(other subject) bool { return other == about }
	l.turns[namespace] = slices.Insert(slices.DeleteFunc(l.turns[namespace], is), 0, about)
	l.spaces = slices.Insert(slices.DeleteFunc(l.spaces, func(other string) bool { return other == namespace }), 0, namespace)
	one.whole = slices.Insert(one.whole, 0, w)
	l.whole++
}

// take takes the next event, false when there is none.
func (l *lines) take() (about subject, w waiting, some bool) {
	about, one := l.pop()
	if one == nil {
		return subject{}, waiting{}, false
	}
	if len(one.whole) > 0 {
		w, one.whole[0] = one.whole[0], waiting{}
		one.whole = one.whole[1:]
		l.whole--
	} else {
		w, one.rest = one.rest.event(about.about), fold{}
	}
	if len(one.whole) > 0 || one.rest.count > 0 {
		l.push(about, one)
	}
	return about, w, true
}

// folded takes everything, one event for each line.
func (l *lines) folded() (all []waiting) {
	for about, one := l.pop(); one != nil; about, one = l.pop() {
		var f fold
		for _, w := range one.whole {
			f.add(w)
		}
		if one.rest.count > 0 {
			f.count += one.rest.count
			if f.first == nil {
				f.first = one.rest.first
			}
			for _, name := range one.rest.names {
				if len(f.names) < named && !slices.Contains(f.names, name) {
					f.names = append(f.names, name)
				}
			}
		}
		all = append(all, f.event(about.about))
	}
	l.whole = 0
	return all
}
