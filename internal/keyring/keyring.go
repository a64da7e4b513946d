package keyring

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/objects"
)

const (
	// recheck is how often the Secret is looked at when no event says so.
	recheck = 5 * time.Minute
	// firstBackoff and lastBackoff are the waits after a failure, and after
	// something had to be put back.
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
)

// Keyring follows the Secret and keeps it. Its methods may be called at any
// time and from anywhere, unless they say otherwise.
type Keyring struct {
	secrets         *objects.Client[*corev1.Secret]
	namespace, name string
	grace           time.Duration
	clock           clock.Clock
	onChange        []func()
	poke            chan struct{}
	lookups         lookups

	ring atomic.Pointer[checksum.Ring]

	mu       sync.Mutex // for what follows
	keys     []known    // sorted by name
	ringIDs  []string   // of ring: the signing key first
	next     time.Time  // when another key begins to sign, zero if none
	reported string     // names of unreadable entries that were logged
}

// New makes a Keyring of the Secret name in namespace, which is that of the client; it is
// empty until Run.
// grace is how long a newer key only verifies after it appeared; when only one
// is stored it signs at once.
func New(secrets *objects.Client[*corev1.Secret], namespace, name string, grace time.Duration, clock clock.Clock) *Keyring {
	return &Keyring{secrets: secrets, namespace: namespace, name: name, grace: grace, clock: clock, poke: make(chan struct{}, 1)}
}

// OnChange has call called, outside all locks, whenever Ring has become another
// ring. It must return soon, and must be registered before Run.
func (k *Keyring) OnChange(call func()) { k.onChange = append(k.onChange, call) }

// Ring is the ring of now, nil while no key is known to be stored: then
// nothing may be stamped.
func (k *Keyring) Ring() *checksum.Ring { return k.ring.Load() }

// HasSynced reports whether there is a ring.
func (k *Keyring) HasSynced() bool { return k.Ring() != nil }

// Run makes the Secret if need be, follows it and puts it back, until ctx ends.
// What fails is logged and tried again. It must be called once.
func (k *Keyring) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	watching.Go(func() { k.watch(ctx) })
	defer watching.Wait()
	var backoff time.Duration
	for {
		wait, poke := recheck, k.poke
		if k.keep(ctx) {
			backoff = 0
		} else {
			backoff = min(max(2*backoff, firstBackoff), lastBackoff)
			wait, poke = backoff, nil
		}
		timer := k.clock.NewTimer(k.sooner(wait))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-poke:
		case <-timer.C():
		}
		timer.Stop()
		k.publish(ctx)
	}
}

// keep looks at the Secret once and reports whether all was well.
func (k *Keyring) keep(ctx context.Context) bool {
	wrote, err := k.reconcile(ctx)
	k.publish(ctx)
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot keep the digest keys, will try again",
			"secret", klog.KRef(k.namespace, k.name), "haveRing", k.HasSynced())
	}
	return err == nil && !wrote
}

// sooner shortens a wait to when another key begins to sign.
func (k *Keyring) sooner(wait time.Duration) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next.IsZero() {
		return wait
	}
	return min(wait, max(k.next.Sub(k.clock.Now()), 0))
}

// learn takes in what the Secret holds. complete tells that it is the state to
// follow; else only new keys are taken from it.
func (k *Keyring) learn(ctx context.Context, c contents, complete bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	logger := klog.FromContext(ctx).WithValues("secret", klog.KRef(k.namespace, k.name))
	if complete {
		k.forget(logger, c.retired)
		for i := range k.keys {
			k.keys[i].stored = false
		}
		k.report(logger, c.unreadable)
	}
	now := k.clock.Now()
	for _, e := range c.entries {
		i := slices.IndexFunc(k.keys, func(key known) bool { return key.key.ID() == e.key.ID() })
		if i < 0 {
			logger.Info("Found a digest key", "entry", e.name, "keyID", e.key.ID())
			k.keys = append(k.keys, known{entry: e, appeared: earlier(e.made, now), stored: true})
			continue
		}
		k.keys[i].entry, k.keys[i].stored = e, true
	}
	slices.SortFunc(k.keys, func(a, b known) int { return cmp.Compare(a.name, b.name) })
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// forget drops retired keys.
func (k *Keyring) forget(logger klog.Logger, retired []string) {
	k.keys = slices.DeleteFunc(k.keys, func(key known) bool {
		if !slices.Contains(retired, key.name) {
			return false
		}
		logger.Info("A digest key was retired: values made with it can no longer be compared", "entry", key.name, "keyID", key.key.ID())
		return true
	})
}

// unstore notes that the Secret could be neither read as it should be nor put
// back: no key is known to be stored.
func (k *Keyring) unstore() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.keys {
		k.keys[i].stored = false
	}
}

// missing lists the keys that this process knows and c does not hold.
func (k *Keyring) missing(c contents) []entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	var missing []entry
	for _, key := range k.keys {
		stored := slices.ContainsFunc(c.entries, func(e entry) bool { return e.key.ID() == key.key.ID() })
		if !stored && !slices.Contains(c.retired, key.name) {
			missing = append(missing, key.entry)
		}
	}
	return missing
}

// publish makes the ring of now and tells of it when it is another one.
func (k *Keyring) publish(ctx context.Context) {
	if !k.choose(klog.FromContext(ctx)) {
		return
	}
	for _, call := range k.onChange {
		call()
	}
}

func (k *Keyring) choose(logger klog.Logger) (changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	signing, next, ok := choose(k.keys, k.clock.Now(), k.grace)
	k.next = next
	var ids []string
	var ring *checksum.Ring
	if ok {
		ids = append(ids, signing.key.ID())
		var others []checksum.Key
		for _, key := range k.keys {
			if key.key.ID() != signing.key.ID() {
				ids = append(ids, key.key.ID())
				others = append(others, key.key)
			}
		}
		ring = checksum.NewRing(signing.key, others...)
	}
	if slices.Equal(ids, k.ringIDs) {
		return false
	}
	k.ringIDs = ids
	k.ring.Store(ring)
	logger.Info("The digest keys changed", "secret", klog.KRef(k.namespace, k.name), "keyIDs", ids, "signs", ok)
	return true
}
