package keyring

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/internal/refusal"
)

const (
	// lookupTimeout bounds the request of one lookup.
	lookupTimeout = 2 * time.Second
	// lookupInterval is the least time between two requests, whoever asks.
	lookupInterval = 100 * time.Millisecond
	// absentFor is how long an id that was not found is not looked for again;
	// a key that is added meanwhile comes by the watch.
	absentFor = time.Minute
	// absentIDs bounds what is remembered of ids that were not found.
	absentIDs = 1024
)

// lookups shares requests among those who wait for one.
type lookups struct {
	mu      sync.Mutex
	waiting *lookup // not begun yet
	last    time.Time
	absent  map[string]time.Time
}

type lookup struct {
	done chan struct{}
	err  error
}

// Refresh looks for the key of a value that the ring cannot verify, in the
// Secret as it is now. Afterwards Ring holds the key if found. A false without
// an error means that the key is lost: it is neither known nor stored. An error
// means that this could not be told (ctx ended, or the API server did not
// answer within 2 s), and nothing may be concluded.
//
// Calls share requests, at most ten a second, whatever ids are asked for; an id
// that was not found is not looked for again for a minute.
func (k *Keyring) Refresh(ctx context.Context, keyID string) (found bool, err error) {
	if k.has(keyID) {
		return true, nil
	}
	l, absent := k.join(ctx, keyID)
	if absent {
		return false, nil
	}
	select {
	case <-ctx.Done():
		return false, fmt.Errorf("looking for digest key %s in Secret %s/%s: %w", keyID, k.namespace, k.name, ctx.Err())
	case <-l.done:
	}
	if l.err != nil {
		return false, fmt.Errorf("looking for digest key %s: %w", keyID, l.err)
	}
	if k.has(keyID) {
		return true, nil
	}
	k.lookups.notFound(keyID, k.clock.Now())
	return false, nil
}

func (k *Keyring) has(keyID string) bool {
	ring := k.Ring()
	if ring == nil {
		return false
	}
	_, ok := ring.Key(keyID)
	return ok
}

// join returns the lookup that is about to begin, or that keyID is known to be
// absent.
func (k *Keyring) join(ctx context.Context, keyID string) (l *lookup, absent bool) {
	k.lookups.mu.Lock()
	defer k.lookups.mu.Unlock()
	if since, ok := k.lookups.absent[keyID]; ok && k.clock.Since(since) < absentFor {
		return nil, true
	}
	if l = k.lookups.waiting; l != nil {
		return l, false
	}
	l = &lookup{done: make(chan struct{})}
	k.lookups.waiting = l
	wait := max(lookupInterval-k.clock.Since(k.lookups.last), 0)
	go k.look(context.WithoutCancel(ctx), l, wait)
	return l, false
}

// look reads the Secret after wait. It only adds keys: an answer that comes
// late must not undo what Run knows.
func (k *Keyring) look(ctx context.Context, l *lookup, wait time.Duration) {
	defer close(l.done)
	if wait > 0 {
		<-k.clock.After(wait)
	}
	k.lookups.begin(k.clock.Now())
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	secret, err := k.secrets.Get(ctx, k.name)
	switch {
	case err == nil:
		k.learn(ctx, parse(secret.Data), false)
		k.publish(ctx)
	case !apierrors.IsNotFound(err):
		l.err = fmt.Errorf("reading Secret %s/%s: %w", k.namespace, k.name, refusal.Plain(err))
	}
}

// begin notes that those who come from now on need another lookup.
func (l *lookups) begin(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting, l.last = nil, now
}

func (l *lookups) notFound(keyID string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.absent == nil || len(l.absent) >= absentIDs {
		l.absent = map[string]time.Time{}
	}
	l.absent[keyID] = now
}
