package controller

// fair is a queue in which each namespace has a line of its own, and the lines
// take turns: a thousand workloads of one do not keep those of another waiting.
// It implements workqueue.Queue.
type fair struct {
	lines map[string][]ref
	turns []string // the namespaces that have a line, the next one first
	total int
}

func newFair() *fair { return &fair{lines: map[string][]ref{}} }

// Touch implements workqueue.Queue: who waits already keeps the place.
func (*fair) Touch(ref) {}

// Push implements workqueue.Queue.
func (f *fair) Push(user ref) {
	line, waiting := f.lines[user.namespace]
	if !waiting {
		f.turns = append(f.turns, user.namespace)
	}
	f.lines[user.namespace] = append(line, user)
	f.total++
}

// Len implements workqueue.Queue.
func (f *fair) Len() int { return f.total }

// Pop implements workqueue.Queue.
func (f *fair) Pop() ref {
	namespace := f.turns[0]
	f.turns = f.turns[1:]
	line := f.lines[namespace]
	user := line[0]
	line[0] = ref{}
	if line = line[1:]; len(line) > 0 {
		f.lines[namespace] = line
		f.turns = append(f.turns, namespace)
	} else {
		delete(f.lines, namespace)
	}
	f.total--
	return user
}
