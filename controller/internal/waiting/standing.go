package waiting

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Every is how often people are reminded of what still waits. The API server keeps an event
// for an hour, unless it is told otherwise.
const Every = 30 * time.Minute

// mostNamed is of how many things in one namespace people are told at once.
const mostNamed = 20

// cause is what workloads wait for, and because of what: they are told of together.
type cause struct {
	label, event string // of the reason
	about        rollout.SourceRef
}

func (c cause) compare(other cause) int {
	return cmp.Or(cmp.Compare(c.about.Namespace, other.about.Namespace), c.about.Source.Compare(other.about.Source), cmp.Compare(c.label, other.label), cmp.Compare(c.event, other.event))
}

// Standing is what people are to be told: workloads that wait for one thing, because of one
// source or Namespace.
type Standing struct {
	Why       reason.Reason
	About     rollout.SourceRef // of the zero Source: a Namespace
	Workloads []workload.Ref    // in order
	Since     time.Time         // when the first of them began to wait
	Text      string            // what people were told of the first of Workloads
	// Again tells that it has stood for a while since they were last told; else it is new.
	Again bool
}

// Standing tells what stands that people do not know yet, or were told of half an hour ago,
// in order. It is to be asked more often than that. A workload of which they were told nothing is
// left out. Of a namespace it tells twenty things, as who may write there could fill the log: the
// others stay due, and those of which people know least come first.
func (w *Waits) Standing(now time.Time) (due []Standing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stands := map[cause]*Standing{}
	texts := map[workload.Ref]string{}
	for ref, one := range w.all {
		why, since := one.now()
		if texts[ref] = w.Told.Text(Of(ref), why); texts[ref] == "" {
			continue
		}
		about := one.about
		if len(about) == 0 {
			about = []rollout.SourceRef{{Namespace: ref.Namespace}}
		}
		for _, at := range about {
			of := cause{why.Label(), why.Event(), at}
			s := stands[of]
			if s == nil {
				s = &Standing{Why: why, About: at, Since: since}
				stands[of] = s
			}
			if s.Workloads = append(s.Workloads, ref); since.Before(s.Since) {
				s.Since = since
			}
		}
	}
	for of := range w.reminded {
		if stands[of] == nil {
			delete(w.reminded, of)
		}
	}
	causes := slices.SortedFunc(maps.Keys(stands), func(a, b cause) int {
		return cmp.Or(w.reminded[a].Compare(w.reminded[b]), a.compare(b))
	})
	named := map[string]int{}
	for _, of := range causes {
		s, namespace := stands[of], of.about.Namespace
		told, known := w.reminded[of]
		if known && now.Sub(told) < Every || named[namespace] == mostNamed {
			continue
		}
		named[namespace]++
		slices.SortFunc(s.Workloads, workload.Ref.Compare)
		s.Text, s.Again = texts[s.Workloads[0]], known
		w.reminded[of] = now
		due = append(due, *s)
	}
	return due
}
