package harness

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

// alone are the clusters, each with a product in it, of tests that stop, hinder or
// reconfigure the product. Such a test waits most of its time, and would keep all
// others waiting if it had theirs.
type alone struct {
	mu    sync.Mutex
	given sync.Cond
	// free are those that nobody has now, runs all of them.
	free, runs []*Run
	made       int             // how many there are, or soon will be
	taken      map[string]*Run // by the name of the test that has it
	// working are the tests that have a namespace of the run that they share.
	working map[string]struct{}
}

func newAlone() *alone {
	a := &alone{taken: map[string]*Run{}, working: map[string]struct{}{}}
	a.given.L = &a.mu
	return a
}

// Long skips what the gate has no time for; make long runs it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long")
	}
}

// Exclusive gives a product to a test that stops, hinders or reconfigures it. What it
// did is undone at its end. Where the run has clusters for such tests (Wanted.Alone),
// the test is parallel, and its namespaces are in that cluster: whatever else it needs
// of the run, it takes from Of; and it is Long. Elsewhere it must not be parallel.
func (r *Run) Exclusive(t *testing.T) *Product {
	t.Helper()
	if r.shares() {
		Long(t)
	}
	return r.ExclusiveInGate(t)
}

// ExclusiveInGate is Exclusive for one of the few such tests that the gate has, too.
func (r *Run) ExclusiveInGate(t *testing.T) *Product {
	t.Helper()
	if !r.shares() {
		r.undoneAtTheEnd(t)
		return r.Product
	}
	r.alone.mu.Lock()
	works := r.alone.works(t)
	r.alone.mu.Unlock()
	if works {
		t.Fatal("Exclusive comes before Space: this test has a namespace of the cluster that all share")
	}
	t.Parallel()
	own, err := r.take(t.Context())
	Must(t, err)
	a := r.alone
	a.mu.Lock()
	a.taken[t.Name()] = own
	a.mu.Unlock()
	began := time.Now()
	t.Cleanup(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		t.Logf("worked for %.1fs; what go test says has the wait for its cluster in it", time.Since(began).Seconds())
		delete(a.taken, t.Name())
		a.free = append(a.free, own)
		a.given.Broadcast()
	})
	own.undoneAtTheEnd(t)
	return own.Product
}

// shares reports whether exclusive tests have clusters of their own.
func (r *Run) shares() bool { return r.wanted.Alone > 0 && !r.cluster.borrowed }

func (r *Run) undoneAtTheEnd(t *testing.T) {
	t.Cleanup(func() {
		if err := r.Product.usual(context.Background()); err != nil {
			t.Errorf("bringing the product back: %v", err)
		}
	})
}

// take gives a cluster that nobody has, and makes it if there may be one more.
func (r *Run) take(ctx context.Context) (*Run, error) {
	a := r.alone
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.free) == 0 && a.made == r.wanted.Alone {
		a.given.Wait()
	}
	if last := len(a.free) - 1; last >= 0 {
		own := a.free[last]
		a.free = a.free[:last]
		return own, nil
	}
	a.made++
	wanted := r.wanted.apart(a.made)
	a.mu.Unlock()
	own, err := Begin(context.WithoutCancel(ctx), wanted)
	a.mu.Lock()
	if err != nil {
		a.made--
		a.given.Broadcast()
		return nil, err
	}
	a.runs = append(a.runs, own)
	return own, nil
}

// all are the run and those of its exclusive tests.
func (r *Run) all() []*Run {
	r.alone.mu.Lock()
	defer r.alone.mu.Unlock()
	return append([]*Run{r}, r.alone.runs...)
}

// Of is the run that a test has: its own, or that of the test that it is a part of, if
// that is exclusive, else the one that all share.
func (r *Run) Of(t testing.TB) *Run {
	r.alone.mu.Lock()
	defer r.alone.mu.Unlock()
	for name, own := range r.alone.taken {
		if partOf(t, name) {
			return own
		}
	}
	return r
}

// partOf reports whether a test has a name, or is a subtest of what has it.
func partOf(t testing.TB, name string) bool {
	return t.Name() == name || strings.HasPrefix(t.Name(), name+"/")
}

// atOnce is how many tests work in the shared cluster at a time: more than there are
// cores, as waiting is most of what they do.
const atOnce = 14

// works reports whether a test, or one that it is a part of, has a namespace of the
// shared cluster.
func (a *alone) works(t testing.TB) bool {
	for name := range a.working {
		if partOf(t, name) {
			return true
		}
	}
	return false
}

// turn waits until a test may work in the shared cluster, where exclusive tests have
// others: then go test does not count, as tests that wait for a cluster would count
// as well. The subtests of one that works need no turn of their own.
func (r *Run) turn(t testing.TB) {
	a := r.alone
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.works(t) {
		return
	}
	for len(a.working) == atOnce {
		a.given.Wait()
	}
	a.working[t.Name()] = struct{}{}
	began := time.Now()
	t.Cleanup(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.working, t.Name())
		t.Logf("worked for %.1fs; what go test says has the wait for its turn in it", time.Since(began).Seconds())
		a.given.Broadcast()
	})
}
