// Package claims remembers what other installations of configstamp keep in the namespaces that
// we serve too, so that we neither write over it nor ask about it each time.
//
// It must not know who asks whom: it has no client and no clock.
package claims

import (
	"maps"
	"sync"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// Believed is how long a claim counts without asking the other's webhook again.
const Believed = 10 * time.Minute

// BelievedWhereNamed is Believed where the Namespace names us: the other one is about to hear
// of that.
const BelievedWhereNamed = 30 * time.Second

// renewedFor is how long a workload is not recorded again over the same key. A lost key
// cannot come back: one that does belongs to another installation, even if its webhook
// is silent.
const renewedFor = 24 * time.Hour

// Claims are those of other installations. Losing them (a new leader) costs one dry run for
// each namespace. The methods may be called at any time, from any goroutine.
type Claims struct {
	mu      sync.Mutex
	claimed map[claimedKey]time.Time              // until when we believe it
	renewed map[workload.Ref]map[string]time.Time // when it was recorded again, by key
}

// New remembers nothing.
func New() *Claims {
	return &Claims{claimed: map[claimedKey]time.Time{}, renewed: map[workload.Ref]map[string]time.Time{}}
}

type claimedKey struct{ namespace, id string }

// Keep tells how long to leave a workload alone that has values under other keys; zero: ask
// about them now. back tells that a value was recorded again, and its key has come back.
func (c *Claims) Keep(user workload.Ref, ids []string, now time.Time) (wait time.Duration, back bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		wait = max(wait, c.claimed[claimedKey{user.Namespace, id}].Sub(now))
		if when, ok := c.renewed[user][id]; ok && now.Sub(when) < renewedFor {
			wait, back = max(wait, when.Add(renewedFor).Sub(now)), true
		}
	}
	return wait, back
}

// Claim notes which of some keys are claimed in a namespace, by which installation. by is
// one of those; lapsed tells that a key was claimed and is not any more.
func (c *Claims) Claim(namespace string, ids []string, claims map[string]string, now, until time.Time) (by string, claimed, lapsed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.claimed, func(_ claimedKey, until time.Time) bool { return now.Sub(until) > Believed })
	for _, id := range ids {
		key := claimedKey{namespace, id}
		_, was := c.claimed[key]
		if installation, is := claims[id]; is {
			c.claimed[key], by, claimed = until, installation, true
		} else {
			delete(c.claimed, key)
			lapsed = lapsed || was
		}
	}
	return by, claimed, lapsed
}

// Renew notes that values under some keys were recorded again, under ours.
func (c *Claims) Renew(user workload.Ref, ids []string, now time.Time) {
	if len(ids) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.renewed[user] == nil {
		c.renewed[user] = map[string]time.Time{}
	}
	maps.DeleteFunc(c.renewed[user], func(_ string, when time.Time) bool { return now.Sub(when) >= renewedFor })
	for _, id := range ids {
		c.renewed[user][id] = now
	}
}

// Forget drops what is remembered of a workload.
func (c *Claims) Forget(user workload.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.renewed, user)
}

// Ask has us ask again about everything in a namespace.
func (c *Claims) Ask(namespace string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.claimed {
		if key.namespace == namespace {
			c.claimed[key] = now
		}
	}
	maps.DeleteFunc(c.renewed, func(user workload.Ref, _ map[string]time.Time) bool { return user.Namespace == namespace })
}
