package timeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Roll is one rollout that a changed stamp began.
type Roll struct {
	// Workload is namespace/kind/name.
	Workload string
	Version  int64
	// Begun is when that was seen: who watches on a busy machine may be late. At
	// NotBefore it had not begun yet, by what was written before it; zero: unknown.
	Begun, NotBefore time.Time
	// Done is when it was rolled out, and stayed so for the time asked for;
	// zero: never. It is the time of the write, where that is known, so that
	// nobody's lateness makes what began after it too early.
	Done time.Time
	// Over is when another roll of the same workload began, or it was deleted;
	// zero: never.
	Over time.Time
	// Reports tells that Done can be seen at all.
	Reports bool
}

// String implements fmt.Stringer.
func (r Roll) String() string {
	text := fmt.Sprintf("%s at %s (version %d)", r.Workload, clock(r.Begun), r.Version)
	switch {
	case !r.Reports:
		return text + ", cannot report"
	case !r.Done.IsZero():
		return text + ", rolled out after " + r.Done.Sub(r.Begun).Round(time.Millisecond).String()
	}
	return text + ", not rolled out"
}

// Rolls are the rollouts that began after a moment, in their order. One is done
// when it stays so for soak.
func (e Events) Rolls(since Since, soak time.Duration) Rolls {
	var all []*Roll
	under, stamps, done := map[string]*Roll{}, map[string]map[string]string{}, map[string]time.Time{}
	over := func(key string, at time.Time) {
		if roll := under[key]; roll != nil {
			roll.end(done[key], at, soak)
			roll.Over = at
		}
		delete(under, key)
		delete(done, key)
	}
	var written time.Time
	for _, event := range e {
		if event.Written.After(written) {
			written = event.Written
		}
		object := event.Object
		if !isWorkload(object) {
			continue
		}
		key := nameOf(object) + string(object.GetUID())
		was, known := stamps[key]
		stamps[key] = harness.Stamps(object)
		switch {
		case event.Type == watch.Deleted:
			over(key, event.Seen)
			continue
		case known && !maps.Equal(was, stamps[key]):
			over(key, event.Seen)
			if event.Version > int64(since) {
				under[key] = &Roll{Workload: nameOf(object), Version: event.Version, Begun: event.Seen, NotBefore: written, Reports: Reports(object)}
				all = append(all, under[key])
			}
		}
		roll := under[key]
		if roll == nil {
			continue
		}
		switch at, is := done[key]; {
		case RolledOut(object) && !is:
			done[key] = event.Seen
			if !event.Written.IsZero() {
				done[key] = event.Written
			}
		case !RolledOut(object) && is:
			roll.end(at, event.Seen, soak)
			delete(done, key)
		}
	}
	rolls := make(Rolls, len(all))
	for key, roll := range under {
		roll.end(done[key], time.Time{}, soak)
	}
	for i, roll := range all {
		rolls[i] = *roll
	}
	return rolls
}

// end notes a span in which a workload was rolled out.
func (r *Roll) end(from, to time.Time, soak time.Duration) {
	if r.Done.IsZero() && !from.IsZero() && (to.IsZero() || to.Sub(from) >= soak) {
		r.Done = from
	}
}

// Rolls are rollouts in their order.
type Rolls []Roll

// String implements fmt.Stringer.
func (r Rolls) String() string {
	lines := make([]string, len(r))
	for i, roll := range r {
		lines[i] = roll.String()
	}
	return strings.Join(lines, "\n")
}

// Times is how often each workload rolled.
func (r Rolls) Times() map[string]int {
	times := map[string]int{}
	for _, roll := range r {
		times[roll.Workload]++
	}
	return times
}

// In are the rollouts in a namespace.
func (r Rolls) In(namespace string) Rolls {
	return slices.DeleteFunc(slices.Clone(r), func(roll Roll) bool { return !strings.HasPrefix(roll.Workload, namespace+"/") })
}

// Unsettled are the rollouts of a workload that were not settled yet at a moment:
// begun, not over, and not done for soak.
func (r Rolls) Unsettled(at time.Time, soak time.Duration) Rolls {
	var found Rolls
	for _, roll := range r {
		switch {
		case !roll.Reports, roll.Begun.After(at):
		case !roll.Over.IsZero() && !roll.Over.After(at):
		case roll.Done.IsZero(), at.Before(roll.Done.Add(soak)):
			found = append(found, roll)
		}
	}
	return found
}

// MostAtOnce is the most rollouts that were not settled at the same time.
func (r Rolls) MostAtOnce(soak time.Duration) Rolls {
	var most Rolls
	for _, roll := range r {
		if now := r.Unsettled(roll.Begun, soak); len(now) > len(most) {
			most = now
		}
	}
	return most
}

// TooEarly lists the rollouts that began when not enough others of the same
// change had become healthy: with steps that double, as many are under way as
// have succeeded, and one more.
func (r Rolls) TooEarly(soak time.Duration) []string {
	var found []string
	for i, roll := range r {
		healthy := 0
		for _, earlier := range r[:i] {
			if earlier.Reports && !earlier.Done.IsZero() && !roll.Begun.Before(earlier.Done.Add(soak)) {
				healthy++
			}
		}
		if under := r[:i+1].Unsettled(roll.Begun, soak); len(under) > healthy+1 {
			found = append(found, fmt.Sprintf("%s: %d were under way then, and %d had succeeded", roll, len(under), healthy))
		}
	}
	return found
}
