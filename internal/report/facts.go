package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Facts are what is true of a source now.
type Facts struct {
	EditedAt time.Time // when its data was last written; zero: not known
	Keys     []string  // changed keys that workloads use, sorted; nil: not known
	Halted   string    // what halts the edit, and what to do; "": nothing does
	// Workloads are the served workloads that the source concerns. Those that only observe are among them
	// if they would roll.
	Workloads []Workload
}

// Workload is how far one workload is with what the source holds.
type Workload struct {
	Name    string // such as deployment/web
	State   State
	Reason  string
	Message string
	Advice  string    // what to do about a failure
	Since   time.Time // when it entered the state; zero: not known
	Until   time.Time // when it may leave the state; zero: not known
	// Settles is true until the workload has been reconciled after the edit.
	Settles bool
	// Observes is true for mode observe: the workload never rolls, and does not count.
	Observes bool
}

// Rolls reports whether a workload has to roll, or rolls. A source without a report gets one then.
func (f *Facts) Rolls() bool {
	return slices.ContainsFunc(f.Workloads, func(w Workload) bool { return w.State != Done && !w.Observes })
}

// Print returns a fingerprint: equal facts have equal ones.
func (f *Facts) Print() [sha256.Size]byte {
	text, _ := json.Marshal(f) // nothing in it can fail
	return sha256.Sum256(text)
}

// State returns the state of the edit.
func (f *Facts) State() State {
	count, total, settles := map[State]int{}, 0, false
	for _, w := range f.Workloads {
		if !w.Observes {
			count[w.State]++
			total++
		}
		settles = settles || w.Settles
	}
	under := count[Waiting] + count[Rolling]
	switch {
	case f.Halted != "", count[Failed] > 0 && under == 0:
		return Halted
	case total == 0:
		return Unused
	case count[Done] == total:
		return Complete
	case count[Rolling]+count[Failed] > 0:
		return Rolling
	case settles:
		return Settling
	case count[Waiting] > 0:
		return Waiting
	}
	return Held
}

// Condition returns the type of the condition that is true in a state.
func (s State) Condition() string {
	switch s {
	case Complete, Unused:
		return Ready
	case Halted:
		return Stalled
	}
	return Reconciling
}

// entries groups workloads by state, reason and message. Where that makes too many entries, the least
// urgent ones of a state become one.
func (f *Facts) entries() (entries []Entry) {
	urgency := []State{Failed, Held, Waiting, Rolling, Done}
	all := slices.SortedFunc(slices.Values(f.Workloads), func(a, b Workload) int {
		return cmp.Or(cmp.Compare(slices.Index(urgency, a.State), slices.Index(urgency, b.State)),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Name, b.Name))
	})
	for _, w := range all {
		one := Entry{State: w.State, Reason: w.Reason, Message: shortened(w.Message), Since: timeOf(w.Since), Until: timeOf(w.Until), Count: 1, Names: []string{w.Name}}
		if last := len(entries) - 1; last >= 0 && entries[last].State == one.State && entries[last].Reason == one.Reason && entries[last].Message == one.Message {
			entries[last].add(&one)
		} else {
			entries = append(entries, one)
		}
	}
	for i := len(entries) - 1; len(entries) > mostEntries; i-- {
		if before := &entries[i-1]; before.State == entries[i].State {
			if before.Message = ""; before.Reason != entries[i].Reason {
				before.Reason = ""
			}
			before.add(&entries[i])
			entries = slices.Delete(entries, i, i+1)
		}
	}
	return entries
}

// add adds the workloads of another entry.
func (e *Entry) add(other *Entry) {
	e.Since, e.Until = earlier(e.Since, other.Since), earlier(e.Until, other.Until)
	e.Count += other.Count
	e.Names = append(e.Names, other.Names...)
	slices.Sort(e.Names)
	e.Names = e.Names[:min(len(e.Names), mostNames)]
}

// shortened returns a text that fits into a message.
func shortened(text string) string {
	if len(text) > longestMessage {
		return strings.ToValidUTF8(text[:longestMessage-3], "") + "..."
	}
	return text
}

// earlier returns the earlier of two times, either of which may be nil.
func earlier(a, b *metav1.Time) *metav1.Time {
	if a == nil || b != nil && b.Before(a) {
		return b
	}
	return a
}

// timeOf returns a time in whole seconds, as objects have it; nil for the zero time.
func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.Truncate(time.Second)}
}
