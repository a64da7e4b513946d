// Package lease lets one process among several work at a time, by a Lease of Kubernetes
// (coordination.k8s.io/v1).
//
// It follows the rules of client-go's leaderelection, and may share a Lease with it: a Lease
// is valid for as long as its holder has promised, counted on our own clock from when we
// saw its last change, so that clocks need not agree. That package is not used because it
// links client-go's clientset: see package objects.
//
// As there, a process that stands still for longer than its Lease is valid may go on for
// a moment when it wakes up. What it does then must do no harm.
package lease

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/refusal"
)

// ErrLost is when a Lease could not be renewed in time, or another took it.
var ErrLost = errors.New("the leader's lease was lost")

// Times are how long things may take.
type Times struct {
	// Valid is after how long others follow a holder that is dead.
	Valid time.Duration
	// Renew is how long the holder tries to renew before it gives up; less than Valid.
	Renew time.Duration
	// Retry is the time between two tries.
	Retry time.Duration
}

// Usual are the times of Kubernetes' own components: a dead leader is followed after 15 s
// at the latest, one that stops at once.
func Usual() Times {
	return Times{Valid: 15 * time.Second, Renew: 10 * time.Second, Retry: 2 * time.Second}
}

// Leases reads and writes Leases, in one namespace. objects.Client does.
type Leases interface {
	Get(ctx context.Context, name string) (*coordinationv1.Lease, error)
	Create(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
	// Update fails with a conflict when the Lease is not what was read.
	Update(ctx context.Context, name string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
}

// Lock is one process' view of a Lease. Make it with New.
type Lock struct {
	leases         Leases
	name, identity string
	times          Times

	seen *coordinationv1.Lease // as last read or written
	at   time.Time             // when it was seen to change
}

// New makes a Lock on the Lease of a name; identity tells this process from all others.
func New(leases Leases, name, identity string, times Times) *Lock {
	return &Lock{leases: leases, name: name, identity: identity, times: times}
}

// Hold waits for the Lease, and works while it is ours: work's context ends when ctx does,
// or when the Lease is lost, and Hold waits for work to return. It returns ErrLost when the
// Lease was lost; when ctx ended it gives the Lease back and returns nil. It must be called once.
func (l *Lock) Hold(ctx context.Context, work func(context.Context)) error {
	for !l.try(ctx, l.times.Renew) {
		if !l.pause(ctx, wait.Jitter(l.times.Retry, 1.2)) {
			return nil
		}
	}
	klog.FromContext(ctx).Info("Took the lease", "lease", l.name, "identity", l.identity)
	held, drop := context.WithCancel(ctx)
	defer drop()
	var working sync.WaitGroup
	working.Go(func() { work(held) })
	l.renew(ctx)
	drop()
	working.Wait()
	if ctx.Err() == nil {
		return ErrLost
	}
	l.release(context.WithoutCancel(ctx))
	return nil
}

// renew renews the Lease until ctx ends or it is lost.
func (l *Lock) renew(ctx context.Context) {
	for l.pause(ctx, l.times.Retry) && l.renewOnce(ctx) {
	}
}

// renewOnce reports whether the Lease could be renewed in time. One request that hangs
// leaves time for another.
func (l *Lock) renewOnce(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, l.at.Add(l.times.Renew+l.times.Retry))
	defer cancel()
	for !l.try(ctx, l.times.Renew/2) {
		if !l.ours() || !l.pause(ctx, l.times.Retry) {
			return false
		}
	}
	return true
}

// pause waits, and reports false when ctx ended.
func (l *Lock) pause(ctx context.Context, span time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(span):
		return true
	}
}

// try takes or renews the Lease, and reports whether it is ours now.
func (l *Lock) try(ctx context.Context, within time.Duration) bool {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := l.take(bounded)
	if err != nil && !errors.Is(err, errHeld) && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		klog.FromContext(ctx).Error(refusal.Plain(err), "Cannot take or renew the lease, will try again", "lease", l.name)
	}
	return err == nil
}

// errHeld is when another holds the Lease.
var errHeld = errors.New("another process holds the lease")

func (l *Lock) take(ctx context.Context) error {
	// The holder does not read first: nobody else writes a Lease that is valid.
	if l.ours() && l.valid() {
		if err := l.write(ctx); err == nil {
			return nil
		}
	}
	lease, err := l.leases.Get(ctx, l.name)
	if apierrors.IsNotFound(err) {
		lease, err = l.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.name}, Spec: l.spec(nil)})
		if err == nil {
			l.see(lease)
		}
		return err
	} else if err != nil {
		return fmt.Errorf("reading lease %s: %w", l.name, err)
	}
	if l.seen == nil || !reflect.DeepEqual(l.seen.Spec, lease.Spec) {
		l.see(lease)
	}
	l.seen = lease
	if !l.ours() && l.valid() {
		return errHeld
	}
	return l.write(ctx)
}

func (l *Lock) write(ctx context.Context) error {
	lease := l.seen.DeepCopy()
	lease.Spec = l.spec(&l.seen.Spec)
	began := time.Now()
	written, err := l.leases.Update(ctx, l.name, lease)
	if err != nil {
		return fmt.Errorf("writing lease %s: %w", l.name, err)
	}
	l.seen, l.at = written, began
	return nil
}

// release gives the Lease back, so that another need not wait until it is over.
func (l *Lock) release(ctx context.Context) {
	if !l.ours() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.times.Renew)
	defer cancel()
	lease := l.seen.DeepCopy()
	lease.Spec.HolderIdentity = new("")
	lease.Spec.LeaseDurationSeconds = new(int32(1))
	lease.Spec.RenewTime = now()
	if _, err := l.leases.Update(ctx, l.name, lease); err != nil {
		klog.FromContext(ctx).Info("The lease could not be given back", "lease", l.name, "reason", refusal.Plain(err).Error())
	}
}

func (l *Lock) see(lease *coordinationv1.Lease) { l.seen, l.at = lease, time.Now() }

func (l *Lock) ours() bool { return l.seen != nil && holder(l.seen) == l.identity }

// valid reports whether somebody holds the Lease, for all that we can know.
func (l *Lock) valid() bool {
	if l.seen == nil || holder(l.seen) == "" {
		return false
	}
	promised := l.times.Valid
	if seconds := l.seen.Spec.LeaseDurationSeconds; seconds != nil {
		promised = time.Duration(*seconds) * time.Second
	}
	return time.Since(l.at) < promised
}

func holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// spec is a Lease that is ours from now on; before is what it was, nil when there was none.
func (l *Lock) spec(before *coordinationv1.LeaseSpec) coordinationv1.LeaseSpec {
	spec := coordinationv1.LeaseSpec{}
	if before != nil {
		spec = *before.DeepCopy()
	}
	if before == nil || spec.HolderIdentity == nil || *spec.HolderIdentity != l.identity {
		transitions := int32(0)
		if before != nil && spec.LeaseTransitions != nil {
			transitions = *spec.LeaseTransitions + 1
		}
		spec.AcquireTime, spec.LeaseTransitions = now(), &transitions
	}
	spec.HolderIdentity = &l.identity
	spec.LeaseDurationSeconds = new(int32(max(l.times.Valid/time.Second, 1))) //nolint:gosec // it is some seconds
	spec.RenewTime = now()
	return spec
}

func now() *metav1.MicroTime { return new(metav1.NowMicro()) }
