package eventqueue

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// most is how many events of one type wait. Each takes about one KiB.
const most = 5000

// waiting is an event that waits to be written.
type waiting struct {
	*eventsv1.Event
	tries int // failed writes that count, see Queue.try
	after int // Queue.written at the last of them
}

// subject is what the events of one line have in common.
type subject struct {
	reason string
	about  corev1.ObjectReference // a source or a Namespace
}

// lines are all waiting events of one type. The namespaces take turns, and so do the lines of each. At most one
// event of a namespace is written at a time.
type lines struct {
	of     map[subject][]waiting
	turns  map[string][]subject // the subjects of a namespace that have a line, the next one first
	spaces []string             // the namespaces that have lines, the next one first
	count  map[string]int       // the events of each namespace
	total  int
	// busy has the namespaces that take no turn: one of their events is being written, or could not be.
	busy map[string]bool
	// failed counts the failed writes of a namespace since the last one that succeeded.
	failed map[string]int
	// writes counts the events being written.
	writes int
}

func newLines() *lines {
	return &lines{of: map[subject][]waiting{}, turns: map[string][]subject{}, count: map[string]int{}, busy: map[string]bool{}, failed: map[string]int{}}
}

// add puts an event at the end of the line of its subject. If too many wait, it returns the one that is given up.
func (l *lines) add(about subject, w waiting) (lost *waiting) {
	namespace := about.about.Namespace
	if l.of[about] == nil {
		l.push(about)
	}
	l.of[about] = append(l.of[about], w)
	l.count[namespace]++
	if l.total++; l.total > most {
		return l.giveUp()
	}
	return nil
}

// giveUp takes out the newest event of the longest line, in the namespace that has most events.
func (l *lines) giveUp() *waiting {
	namespace := ""
	for one, count := range l.count {
		if count > l.count[namespace] {
			namespace = one
		}
	}
	longest := slices.MaxFunc(l.turns[namespace], func(a, b subject) int { return cmp.Compare(len(l.of[a]), len(l.of[b])) })
	line := l.of[longest]
	lost := line[len(line)-1]
	if l.of[longest] = line[:len(line)-1]; len(line) == 1 {
		l.turns[namespace] = slices.DeleteFunc(l.turns[namespace], func(about subject) bool { return about == longest })
		delete(l.of, longest)
	}
	l.less(namespace)
	return &lost
}

// less counts an event that a namespace no longer has. Its line was taken out of turns if it was the last.
func (l *lines) less(namespace string) {
	l.total--
	if l.count[namespace]--; l.count[namespace] == 0 {
		delete(l.count, namespace)
		delete(l.turns, namespace)
		l.spaces = slices.DeleteFunc(l.spaces, func(one string) bool { return one == namespace })
	}
}

// push puts a new line behind the others of its namespace.
func (l *lines) push(about subject) {
	namespace := about.about.Namespace
	if len(l.turns[namespace]) == 0 {
		l.spaces = append(l.spaces, namespace)
	}
	l.turns[namespace] = append(l.turns[namespace], about)
}

// next returns the place in spaces of the namespace whose turn it is, -1 if there is none.
func (l *lines) next() int {
	return slices.IndexFunc(l.spaces, func(namespace string) bool { return !l.busy[namespace] })
}

// ready reports whether take returns an event.
func (l *lines) ready() bool { return l.writes < mostWrites && l.next() >= 0 }

// rest returns how long a namespace rests after one more failed write, at most longest.
func (l *lines) rest(namespace string, longest time.Duration) time.Duration {
	rest := min(firstRest<<min(l.failed[namespace], 10), longest)
	l.failed[namespace]++
	return rest
}

// take takes the next event, false when there is none. Its namespace is busy from then on.
func (l *lines) take() (about subject, w waiting, some bool) {
	if !l.ready() {
		return subject{}, waiting{}, false
	}
	next := l.next()
	namespace := l.spaces[next]
	about = l.turns[namespace][0]
	line := l.of[about]
	w, line[0] = line[0], waiting{}
	l.turns[namespace] = l.turns[namespace][1:]
	if l.of[about] = line[1:]; len(line) > 1 {
		l.turns[namespace] = append(l.turns[namespace], about)
	} else {
		delete(l.of, about)
	}
	l.spaces = append(slices.Delete(l.spaces, next, next+1), namespace)
	l.less(namespace)
	l.busy[namespace] = true
	l.writes++
	return about, w, true
}
