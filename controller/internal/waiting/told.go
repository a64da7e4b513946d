package waiting

import (
	"maps"
	"slices"
	"sync"

	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Subject is what people are told of: a workload, a source, or, where the source has no name, its
// Namespace.
type Subject struct {
	workload workload.Ref
	source   rollout.SourceRef
}

// Of is the subject that a workload is.
func Of(ref workload.Ref) Subject { return Subject{workload: ref} }

// OfSource is the subject that a source is, or its Namespace.
func OfSource(at rollout.SourceRef) Subject { return Subject{source: at} }

// Told remembers what people were told last, so that they are told once. Losing it (a restart)
// costs events that are repeated. Its methods may be called at any time, from any goroutine.
type Told struct {
	mu    sync.Mutex
	texts map[Subject]map[string]words // by the reason of the event
}

// words are what people were told, and what they mean.
type words struct{ sense, text string }

// First reports whether a text is news, and remembers it.
func (t *Told) First(about Subject, why reason.Reason, text string) bool {
	return t.News(about, why, text, text)
}

// News reports whether the sense of a text is news, and remembers them.
func (t *Told) News(about Subject, why reason.Reason, sense, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, known := t.texts[about][why.Event()]
	if !known && t.texts[about] == nil {
		t.texts[about] = map[string]words{}
	}
	t.texts[about][why.Event()] = words{sense, text}
	return !known || was.sense != sense
}

// Over forgets what has ended, unless it says but.
func (t *Told) Over(about Subject, why reason.Reason, but string) {
	t.drop(about, func(event, text string) bool { return event == why.Event() && text != but })
}

// Forget forgets what people were told, but for some reasons.
func (t *Told) Forget(about Subject, but ...reason.Reason) {
	t.drop(about, func(event, _ string) bool {
		return !slices.ContainsFunc(but, func(why reason.Reason) bool { return why.Event() == event })
	})
}

func (t *Told) drop(about Subject, ended func(event, text string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if maps.DeleteFunc(t.texts[about], func(event string, was words) bool { return ended(event, was.text) }); len(t.texts[about]) == 0 {
		delete(t.texts, about)
	}
}
