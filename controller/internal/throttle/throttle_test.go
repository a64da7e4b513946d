package throttle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// moment is when everything happens that does not say otherwise.
func moment() time.Time { return time.Unix(1e9, 0) }

func ref(namespace string, i int) workload.Ref {
	return workload.Ref{Namespace: namespace, Name: fmt.Sprint("app-", i)}
}

// rounds has n workloads of a namespace begin and end, as many at once as may, and reports
// how many permits there were for them at the most in the last round.
func rounds(t *Throttle, namespace string, rounds, n int, late func(i int) bool) (permits int) {
	for range rounds {
		var out []int
		for i := range n {
			if t.Begin(ref(namespace, i)) {
				out = append(out, i)
			}
		}
		permits = len(out)
		for _, i := range out {
			t.End(ref(namespace, i), late(i), moment())
		}
		for i := range n {
			leave(t, ref(namespace, i))
		}
	}
	return permits
}

// leave has a workload look and look away, so that it leaves the line.
func leave(t *Throttle, u workload.Ref) {
	t.Looked(u, moment())
	t.Looked(u, moment())
}

func always(int) bool { return true }
func never(int) bool  { return false }

func TestWhoIsLateGetsFewerAndComesBack(t *testing.T) {
	throttle := New(16)
	if n := rounds(throttle, "shop", 1, 50, never); n != 16 {
		t.Fatalf("%d at once, want 16", n)
	}
	if n := rounds(throttle, "shop", 6, 50, always); n != 1 {
		t.Errorf("%d at once after six rounds in which all were late, want 1", n)
	}
	if n := rounds(throttle, "shop", 16, 50, never); n != 16 {
		t.Errorf("%d at once after sixteen rounds in which none was, want 16", n)
	}
}

func TestOneThatIsAlwaysLateSlowsNobodyDown(t *testing.T) {
	throttle := New(16)
	if n := rounds(throttle, "shop", 100, 16, func(i int) bool { return i == 0 }); n != 16 {
		t.Errorf("%d at once beside one that is always late, want 16", n)
	}
	if n := rounds(throttle, "alone", 100, 1, always); n != 1 || !throttle.Begin(ref("alone", 1)) || !throttle.Begin(ref("alone", 2)) {
		t.Error("one that is alone, and always late, keeps others of its namespace from a permit")
	}
}

// TestANamespaceThatIsLateSlowsNoOtherDown: somebody's webhook there may be slow.
func TestANamespaceThatIsLateSlowsNoOtherDown(t *testing.T) {
	throttle := New(16)
	rounds(throttle, "slow", 20, 50, always)
	if n := rounds(throttle, "slow", 1, 50, always); n != 1 {
		t.Errorf("%d at once in the slow one, want 1", n)
	}
	if n := rounds(throttle, "shop", 1, 50, never); n != 16 || throttle.Permits() != 16 {
		t.Errorf("%d at once in another, %d in all; want 16", n, throttle.Permits())
	}
}

// TestWhereSeveralNamespacesAreLateThereAreFewerInAll: each with two workloads. But one
// in which nobody was late has a permit in any case.
func TestWhereSeveralNamespacesAreLateThereAreFewerInAll(t *testing.T) {
	throttle := New(16)
	for range 20 {
		var out []workload.Ref
		for i := range 40 {
			if u := ref(fmt.Sprint("team-", i/2), i); throttle.Begin(u) {
				out = append(out, u)
			}
		}
		for _, u := range out {
			throttle.End(u, true, moment())
		}
		for i := range 40 {
			leave(throttle, ref(fmt.Sprint("team-", i/2), i))
		}
	}
	if throttle.Permits() != 1 {
		t.Errorf("%d permits, want 1", throttle.Permits())
	}
	throttle.Begin(ref("team-1", 2))
	if throttle.Begin(ref("team-2", 4)) {
		t.Error("a second permit for those who were late")
	}
	if !throttle.Begin(ref("shop", 1)) || throttle.Begin(ref("shop", 2)) {
		t.Error("a namespace in which nobody was late wants one permit, and no second")
	}
}

// TestWhatWasFoundOutIsForgotten: what was an hour ago tells nothing of now.
func TestWhatWasFoundOutIsForgotten(t *testing.T) {
	throttle := New(16)
	rounds(throttle, "shop", 10, 50, always)
	throttle.Begin(ref("shop", 1))
	throttle.End(ref("shop", 1), false, moment().Add(time.Hour))
	if n := rounds(throttle, "shop", 1, 50, never); n != 16 {
		t.Errorf("%d at once an hour later, want 16", n)
	}
}

// TestAnswersFromBeforeADecreaseAreNotCounted: they were begun when there were more.
func TestAnswersFromBeforeADecreaseAreNotCounted(t *testing.T) {
	throttle := New(16)
	for i := range 16 {
		throttle.Begin(ref("shop", i))
	}
	for i := range 16 { // as one ends, another begins
		throttle.End(ref("shop", i), true, moment())
		throttle.Begin(ref("shop", i+16))
	}
	for i := 16; i < 32; i++ {
		throttle.End(ref("shop", i), true, moment())
	}
	if n := rounds(throttle, "shop", 1, 50, always); n != 8 {
		t.Errorf("%d at once after one window, want 8", n)
	}
}

// TestNobodyIsForgotten: whoever stands in line is called, whatever the others do; who is
// called has a permit, and there are never more than there may be.
func TestNobodyIsForgotten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	throttle := New(4)
	now, out, line := moment(), map[workload.Ref]bool{}, map[workload.Ref]bool{}
	var look func(u workload.Ref, wants bool)
	call := func(next []workload.Ref) {
		for _, u := range next {
			if !line[u] {
				t.Fatalf("%s is called and does not stand in line", u)
			}
			delete(line, u)
			wants := random.IntN(4) > 0
			if wants && !throttle.Begin(u) {
				t.Fatalf("%s is called in vain", u)
			}
			if out[u] = wants; !wants {
				delete(out, u)
			}
			look(u, wants)
		}
	}
	look = func(u workload.Ref, wants bool) {
		if !wants {
			delete(line, u)
		}
		call(throttle.Looked(u, now))
	}
	for range 20000 {
		now = now.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
		u := ref(fmt.Sprint("team-", random.IntN(3)), random.IntN(8))
		if wants := random.IntN(4) > 0; !out[u] {
			if wants && throttle.Begin(u) {
				out[u] = true
			} else if wants {
				line[u] = true
			}
			look(u, wants)
		}
		if len(out) > 4+3 { // one in each namespace, in any case
			t.Fatalf("%d are out", len(out))
		}
		if len(line) > 0 && len(out) == 0 {
			t.Fatal("somebody stands in line, and nobody is out to call")
		}
		for u := range out {
			if random.IntN(2) == 0 {
				delete(out, u)
				call(throttle.End(u, random.IntN(3) == 0, now))
			}
		}
	}
	for u := range out {
		call(throttle.End(u, false, now))
	}
	if len(throttle.namespaces) > 3 || len(throttle.places) > len(line)+len(out) {
		t.Errorf("%d namespaces and %d workloads are remembered", len(throttle.namespaces), len(throttle.places))
	}
}

// TestNamespacesTakeTurns: a thousand of one do not stand before those of another.
func TestNamespacesTakeTurns(t *testing.T) {
	throttle := New(2)
	for i := range 1000 {
		throttle.Begin(ref("big", i))
	}
	for i := range 2 { // the first has a permit in any case
		throttle.Begin(ref("small", i))
	}
	next := throttle.End(ref("big", 0), false, moment())
	next = append(next, throttle.End(ref("big", 1), false, moment())...)
	next = append(next, throttle.End(ref("small", 0), false, moment())...)
	if !slices.Contains(next, ref("small", 1)) {
		t.Errorf("%d are called, and none of them is of the other namespace", len(next))
	}
}

// TestAnEndWithoutABeginIsNothing: nor is a second permit.
func TestAnEndWithoutABeginIsNothing(t *testing.T) {
	throttle := New(1)
	if called := throttle.End(ref("shop", 1), true, moment()); called != nil {
		t.Error(called)
	}
	throttle.Begin(ref("shop", 1))
	if throttle.Begin(ref("shop", 1)) || throttle.Begin(ref("shop", 2)) {
		t.Error("a second permit of one")
	}
}
