package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// believed is how long a claim of another installation counts without asking its
// webhook again: so long after that installation is gone, what it kept is recorded
// anew.
const believed = noHurry

// believedWhereNamed is the same where the Namespace names us: the other one is
// about to hear of that.
const believedWhereNamed = 30 * time.Second

// renewedFor is how long we do not record the same workload anew over the same key.
// A key that is lost cannot come back; one that does is somebody's, even if no
// webhook says so.
const renewedFor = 24 * time.Hour

// others remembers what other installations of configstamp keep in the namespaces
// that we serve too, so that we neither write over it nor ask about it each time we
// look. Losing it (a new leader) costs one dry run for each namespace.
type others struct {
	mu      sync.Mutex
	claimed map[claimedKey]time.Time              // until when we believe it
	renewed map[workload.Ref]map[string]time.Time // when we recorded it anew, by key
}

type claimedKey struct{ namespace, id string }

// keep tells how long to leave a workload alone that has values under other keys; zero: ask
// about them now. back tells that one of them was recorded anew, and is there again.
func (o *others) keep(user workload.Ref, ids []string, now time.Time) (wait time.Duration, back bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range ids {
		wait = max(wait, o.claimed[claimedKey{user.Namespace, id}].Sub(now))
		if when, ok := o.renewed[user][id]; ok && now.Sub(when) < renewedFor {
			wait, back = max(wait, when.Add(renewedFor).Sub(now)), true
		}
	}
	return wait, back
}

// claim notes which of some keys are claimed in a namespace. by is who claims one of
// them, "" when none is claimed; lapsed tells that one was claimed and is not any more.
func (o *others) claim(namespace string, ids []string, claims []checksum.Claim, now, until time.Time) (by string, claimed, lapsed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.claimed, func(_ claimedKey, until time.Time) bool { return now.Sub(until) > believed })
	for _, id := range ids {
		key := claimedKey{namespace, id}
		_, was := o.claimed[key]
		delete(o.claimed, key)
		for _, c := range claims {
			if slices.Contains(c.KeyIDs, id) {
				o.claimed[key], by, claimed = until, c.Installation, true
			}
		}
		_, is := o.claimed[key]
		lapsed = lapsed || was && !is
	}
	return by, claimed, lapsed
}

// renew notes that values under some keys are recorded anew.
func (o *others) renew(user workload.Ref, ids []string, now time.Time) {
	if len(ids) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.renewed[user] == nil {
		o.renewed[user] = map[string]time.Time{}
	}
	maps.DeleteFunc(o.renewed[user], func(_ string, when time.Time) bool { return now.Sub(when) >= renewedFor })
	for _, id := range ids {
		o.renewed[user][id] = now
	}
}

// forget drops what is remembered of a workload.
func (o *others) forget(user workload.Ref) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.renewed, user)
}

// ask has us ask again about everything in a namespace.
func (o *others) ask(namespace string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.claimed {
		if key.namespace == namespace {
			o.claimed[key] = now
		}
	}
	maps.DeleteFunc(o.renewed, func(user workload.Ref, _ map[string]time.Time) bool { return user.Namespace == namespace })
}

// claimed reports whether another installation claims some keys that are on record,
// by the answer to a dry run, and for how long that counts.
func (c *Controller) claimed(user workload.Ref, ids []string, try answer) (wait time.Duration, claimed bool) {
	wait = believed
	if checksum.Names(c.namespaces.Get(user.Namespace).Settings, c.options.Installation) {
		wait = believedWhereNamed
	}
	var claims []checksum.Claim
	for _, warning := range try.warnings {
		if claim, ok := checksum.ParseClaim(warning); ok {
			claims = append(claims, claim)
		}
	}
	now := c.options.Clock.Now()
	by, claimed, lapsed := c.others.claim(user.Namespace, ids, claims, now, now.Add(wait))
	if lapsed {
		c.told.over(user.Namespace, checksum.OtherInstallation, "")
	}
	if claimed {
		c.tellOther(user, by)
	}
	return wait, claimed
}

// tellOther says, once for a Namespace, that another installation serves it too; by
// is its namespace, "" when that is not known.
func (c *Controller) tellOther(user workload.Ref, by string) {
	where := "in the namespace " + by
	if by == "" {
		where = "whose webhook does not answer us"
	}
	c.onNamespace(user.Namespace, checksum.OtherInstallation, "another installation of configstamp, "+where+", serves this Namespace too: "+
		user.People()+", and all that carries its checksums, is left to it. Have one installation serve the Namespace: annotate it with "+
		"configstamp.dev/installation, the value being the namespace of that installation, or uninstall the other")
}
