package lease_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/internal/lease"
)

// server is an API server with one Lease, as it stores it.
type server struct {
	mu      sync.Mutex
	stored  *coordinationv1.Lease
	version int
	writes  int
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// line is one process' way to the server; cut, it hangs until its context ends.
type line struct {
	*server
	cut atomic.Bool
}

func (l *line) reach(ctx context.Context) error {
	if l.cut.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return ctx.Err()
}

func (l *line) Get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	if err := l.reach(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stored == nil {
		return nil, apierrors.NewNotFound(leases, name)
	}
	return l.stored.DeepCopy(), nil
}

func (l *line) Create(ctx context.Context, made *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := l.reach(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stored != nil {
		return nil, apierrors.NewAlreadyExists(leases, made.Name)
	}
	return l.store(made), nil
}

func (l *line) Update(ctx context.Context, name string, changed *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := l.reach(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stored == nil || l.stored.ResourceVersion != changed.ResourceVersion {
		return nil, apierrors.NewConflict(leases, name, errors.New("it has changed"))
	}
	return l.store(changed), nil
}

func (s *server) store(object *coordinationv1.Lease) *coordinationv1.Lease {
	s.version++
	s.writes++
	s.stored = object.DeepCopy()
	s.stored.ResourceVersion = strconv.Itoa(s.version)
	return s.stored.DeepCopy()
}

// contender is a process that wants the Lease, and how many work at the moment.
type contender struct {
	line
	ended   chan error
	stop    context.CancelFunc
	working atomic.Bool
	slow    time.Duration // how long its work takes to end
}

func (s *server) contender(t *testing.T, name string, at *atomic.Int32) *contender {
	ctx, stop := context.WithCancel(t.Context())
	c := &contender{line: line{server: s}, ended: make(chan error, 1), stop: stop}
	lock := lease.New(&c.line, "leader", name, lease.Usual())
	go func() {
		c.ended <- lock.Hold(ctx, func(ctx context.Context) {
			if at.Add(1) > 1 {
				t.Error("two work at once")
			}
			c.working.Store(true)
			<-ctx.Done()
			time.Sleep(c.slow)
			c.working.Store(false)
			at.Add(-1)
		})
	}()
	return c
}

func TestOneOfManyWorksAndIsFollowedAtOnceWhenItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := &server{}, &atomic.Int32{}
		var all []*contender
		for i := range 4 {
			all = append(all, s.contender(t, strconv.Itoa(i), at))
		}
		for range all {
			time.Sleep(20 * time.Minute)
			synctest.Wait()
			var leader *contender
			for _, c := range all {
				if c.working.Load() {
					leader = c
				}
			}
			if leader == nil {
				t.Fatal("nobody works")
			}
			leader.slow = 3 * time.Second // the next waits for that too
			leader.stop()
			if err := <-leader.ended; err != nil {
				t.Errorf("it ended with %v", err)
			}
			time.Sleep(6 * time.Second) // 2.2 times the time between two tries
			synctest.Wait()
		}
		if n := *s.stored.Spec.LeaseTransitions; n != 3 {
			t.Errorf("%d transitions, want 3", n)
		}
		if holder := *s.stored.Spec.HolderIdentity; holder != "" {
			t.Errorf("the last one left it to %q", holder)
		}
	})
}

func TestADeadHolderIsFollowedAfterItsTimeAndNoSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := &server{}, &atomic.Int32{}
		first := s.contender(t, "first", at)
		time.Sleep(time.Minute)
		second := s.contender(t, "second", at)
		time.Sleep(time.Minute)
		synctest.Wait()
		first.cut.Store(true) // contender tells if two work at once
		begun := time.Now()
		if err := <-first.ended; !errors.Is(err, lease.ErrLost) {
			t.Errorf("it ended with %v", err)
		}
		for !second.working.Load() && time.Since(begun) < time.Hour {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(begun); took < 11*time.Second || took > 24*time.Second {
			t.Errorf("the second took over after %s", took)
		}
		second.stop()
		<-second.ended
	})
}

// The holder may still work for a while when it can reach nothing, and no longer than
// others wait.
func TestWhatCannotBeRenewedIsLostBeforeOthersMayTakeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := &server{}, &atomic.Int32{}
		c := s.contender(t, "only", at)
		time.Sleep(time.Minute)
		synctest.Wait()
		renewed := s.stored.Spec.RenewTime.Time
		c.cut.Store(true)
		<-c.ended
		if after := time.Since(renewed); after >= lease.Usual().Valid {
			t.Errorf("it went on for %s", after)
		}
	})
}

func TestABriefOutageCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := &server{}, &atomic.Int32{}
		c := s.contender(t, "only", at)
		for range 20 {
			time.Sleep(time.Minute)
			c.cut.Store(true)
			time.Sleep(4 * time.Second)
			c.cut.Store(false)
		}
		synctest.Wait()
		if !c.working.Load() || *s.stored.Spec.LeaseTransitions != 0 {
			t.Errorf("works: %t, %d transitions", c.working.Load(), *s.stored.Spec.LeaseTransitions)
		}
		if perMinute := s.writes / 21; perMinute > 31 {
			t.Errorf("%d writes a minute", perMinute)
		}
		c.stop()
		<-c.ended
	})
}

// What another has written, as after we stood still, is never overwritten.
func TestALeaseThatAnotherTookIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := &server{}, &atomic.Int32{}
		c := s.contender(t, "first", at)
		time.Sleep(time.Minute)
		synctest.Wait()
		s.mu.Lock()
		other := s.stored.DeepCopy()
		other.Spec.HolderIdentity = new("other")
		s.store(other)
		s.mu.Unlock()
		begun := time.Now()
		if err := <-c.ended; !errors.Is(err, lease.ErrLost) {
			t.Errorf("it ended with %v", err)
		}
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("it went on for %s", took)
		}
		if holder := *s.stored.Spec.HolderIdentity; holder != "other" {
			t.Errorf("the lease is %q's", holder)
		}
	})
}
