package lease_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/configstamp/configstamp/internal/lease"
)

// Somebody writes metadata of the Lease (a label, Argo CD's tracking) every 10 s; its holder is dead.
func TestADeadHolderIsFollowedThoughSomebodyAnnotatesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := &server{}, &atomic.Int32{}
		first := s.contender(t, "first", at)
		time.Sleep(time.Minute)
		first.cut.Store(true)
		<-first.ended
		second := s.contender(t, "second", at)
		begun := time.Now()
		for !second.working.Load() && time.Since(begun) < time.Hour {
			time.Sleep(10 * time.Second)
			s.mu.Lock()
			s.store(s.stored) // spec is the same
			s.mu.Unlock()
		}
		if took := time.Since(begun); took > 2*time.Minute {
			t.Errorf("nobody leads for %s", took)
		}
		second.stop()
		<-second.ended
	})
}

// late answers a write only after a while, though it was stored at once.
type late struct {
	*line
	after    time.Duration
	cutAfter atomic.Bool
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *late) Update(ctx context.Context, name string, changed *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	o, err := l.line.Update(ctx, name, changed)
	if err != nil {
		return nil, err
	}
	if !l.cutAfter.Load() {
		return o, nil
	}
	l.cut.Store(true)
	return o, wait(ctx, l.after)
}

// One answer comes 4.9 s late, then nothing comes any more.
func TestOneLeaderAfterALateAnswer(t *testing.T) {
	overlaps := 0
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			s := &server{}
			var at, worst atomic.Int32
			run := func(name string, leases lease.Leases, ended chan error) context.CancelFunc {
				ctx, stop := context.WithCancel(t.Context())
				lock := lease.New(leases, "leader", name, lease.Usual())
				go func() {
					ended <- lock.Hold(ctx, func(ctx context.Context) {
						if at.Add(1) > 1 {
							worst.Store(2)
						}
						<-ctx.Done()
						at.Add(-1)
					})
				}()
				return stop
			}
			l := &late{line: &line{server: s}, after: 4900 * time.Millisecond}
			e1, e2 := make(chan error, 1), make(chan error, 1)
			run("first", l, e1)
			time.Sleep(10 * time.Second)
			stop := run("second", &line{server: s}, e2)
			time.Sleep(time.Minute)
			l.cutAfter.Store(true)
			<-e1
			time.Sleep(time.Minute)
			if worst.Load() > 1 {
				overlaps++
			}
			stop()
			<-e2
		})
	}
	if overlaps > 0 {
		t.Errorf("two led at once in %d of 50", overlaps)
	}
}
