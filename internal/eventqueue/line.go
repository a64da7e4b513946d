package eventqueue

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
	tries  int // failed writes that count, see Queue.try
	after  int // Queue.written at the last of them
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

// lines are all waiting events of one type. The namespaces take turns, and so do the lines of each. At most one
// event of a namespace is written at a time.
type lines struct {
	of     map[subject]*line
	turns  map[string][]subject // the subjects of a namespace that have a line, the next one first
	spaces []string             // the namespaces that have lines, the next one first
	whole  int
	// busy has the namespaces that take no turn: one of their events is being written, or could not be.
	busy map[string]bool
	// failed counts the failed writes of a namespace since the last one that succeeded.
	failed map[string]int
	// writes counts the events being written.
	writes int
}

func newLines() *lines {
	return &lines{of: map[subject]*line{}, turns: map[string][]subject{}, busy: map[string]bool{}, failed: map[string]int{}}
}

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

// next returns the place in spaces of the namespace whose turn it is, -1 if there is none.
func (l *lines) next() int {
	return slices.IndexFunc(l.spaces, func(namespace string) bool { return !l.busy[namespace] })
}

// ready reports whether take returns an event.
func (l *lines) ready() bool { return l.writes < mostWrites && l.next() >= 0 }

// pop takes the next line out, nil when there is none.
func (l *lines) pop() (about subject, one *line) {
	next := l.next()
	if next < 0 {
		return subject{}, nil
	}
	namespace := l.spaces[next]
	l.spaces = slices.Delete(l.spaces, next, next+1)
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

// rest returns how long a namespace rests after one more failed write, at most longest.
func (l *lines) rest(namespace string, longest time.Duration) time.Duration {
	rest := min(firstRest<<min(l.failed[namespace], 10), longest)
	l.failed[namespace]++
	return rest
}

// take takes the next event, false when there is none. Its namespace is busy from then on.
func (l *lines) take() (about subject, w waiting, some bool) {
	if l.writes >= mostWrites {
		return subject{}, waiting{}, false
	}
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
	l.busy[about.about.Namespace] = true
	l.writes++
	return about, w, true
}

// folded takes everything, and returns lines with one event in place of each line. No namespace is busy in them.
func (l *lines) folded() *lines {
	clear(l.busy)
	all := newLines()
	for about, one := l.pop(); one != nil; about, one = l.pop() {
		all.line(about).whole = []waiting{one.folded(about.about)}
		all.whole++
	}
	l.whole = 0
	return all
}

// folded returns one event for the whole line.
func (one *line) folded(about corev1.ObjectReference) waiting {
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
	return f.event(about)
}
