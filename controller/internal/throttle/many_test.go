package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// One workload in each of 500 namespaces, 16 workers, an API server on which every
// re-admission takes 10 s and is late; a late one asks again after 5 s.
func TestManyNamespacesAreThrottledToo(t *testing.T) {
	const workers, namespaces, takes, again = 16, 500, 10, 5
	th := New(workers)
	type running struct {
		u   workload.Ref
		end int
	}
	due := map[workload.Ref]int{}
	var queue []workload.Ref
	for i := range namespaces {
		queue = append(queue, ref(fmt.Sprint("team-", i), 0))
	}
	var out []running
	sum, worst := 0, 0
	for s := range 900 {
		now := moment().Add(time.Duration(s) * time.Second)
		var still []running
		for _, r := range out {
			if r.end > s {
				still = append(still, r)
				continue
			}
			queue = append(queue, th.End(r.u, true, now)...)
			queue = append(queue, th.Looked(r.u, now)...)
			due[r.u] = s + again
		}
		out = still
		for u, at := range due {
			if at <= s {
				delete(due, u)
				queue = append(queue, u)
			}
		}
		for len(queue) > 0 && len(out) < workers {
			u := queue[0]
			queue = queue[1:]
			if th.Begin(u) {
				out = append(out, running{u, s + takes})
			} else {
				queue = append(queue, th.Looked(u, now)...)
			}
		}
		if s >= 60 {
			sum += len(out)
			worst = max(worst, len(out))
		}
	}
	if avg := float64(sum) / 840; avg > 4 {
		t.Errorf("%.1f under way at once on average though all are late since the first minute, %d at worst", avg, worst)
	}
}

// Who is called while it looks (its answer is no; its look is not over) loses its place to all who came later.
func TestWhoIsCalledWhileItLooksKeepsItsPermit(t *testing.T) {
	th := New(1)
	a, b := ref("shop", 0), ref("shop", 1)
	th.Begin(a)
	th.Begin(b)                // b's look: no permit, it goes on to follow its rollout
	th.End(a, false, moment()) // b is called
	th.Begin(ref("shop", 2))   // others come
	th.Looked(a, moment())
	th.Looked(b, moment()) // b's look ends
	if !th.Begin(b) {
		t.Error("b was called, looks, and gets nothing")
	}
}
