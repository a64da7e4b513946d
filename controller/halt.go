package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// What keeps a halt. It ends when the source changes again, when the workload that
// has failed is healthy with what the change brought, or is deleted, and when somebody
// resumes. Nothing else ends it, whatever becomes of that workload.

// lookOn looks at a workload for which nothing is done, because it is not opted in or
// its template cannot be read. What it has failed with stays halted.
func (c *Controller) lookOn(ctx context.Context, user ref, s *subject, served bool) (time.Duration, error) {
	c.steps.withdraw(user)
	if served {
		c.sayOnce(user, s, checksum.TemplateUnreadable, s.fault)
	} else {
		c.notes.leave(user)
		c.others.forget(user)
	}
	wait, err := c.follow(ctx, user, s)
	if !served && err == nil && c.steps.of(user) == nil {
		c.notes.forget(user)
	}
	return wait, err
}

// carries reports whether a workload's template has a stamp of what a source holds
// now, whatever its policy says, and whether it is served or not.
func (c *Controller) carries(user ref, s *subject, source checksum.Source) bool {
	stamp, stamped := checksum.Records{Stamps: s.records.Stamps}.Of(source)
	ring := c.keys.Ring()
	if !stamped || ring == nil {
		return false
	}
	policy := checksum.DefaultPolicy()
	policy.SecretProviderClasses = true
	policy.Also = []checksum.Source{source} // it counts, whoever names it
	references := slices.DeleteFunc(slices.Clone(s.references), func(r checksum.Reference) bool { return r.Source != source })
	selections := checksum.Selections(references, policy)
	if len(selections) == 0 {
		return false
	}
	verdict := ring.Assess(user.namespace, selections[0], stamp, true, c.sources.Content(user.namespace, source))
	return verdict == checksum.True || verdict == checksum.Reselected
}

// carried are the sources of which a workload's template has a stamp of what they
// hold now.
func (c *Controller) carried(user ref, s *subject) []checksum.Source {
	return slices.DeleteFunc(slices.Clone(s.sources), func(source checksum.Source) bool { return !c.carries(user, s, source) })
}

// findMute looks for a rollout of a workload that has become unable to tell its
// health since what changed was written: somebody has scaled it to nothing, or paused
// it. Unless it was healthy before, it has failed.
func (c *Controller) findMute(ctx context.Context, user ref, s *subject, concerned map[place]time.Time, known *rollout) (*rollout, error) {
	if known != nil {
		return known, nil
	}
	body, err := c.api.get(ctx, user)
	if err != nil {
		return nil, fmt.Errorf("looking why it does not tell how its rollout is: %w", err)
	}
	muted := user.kind.Muted(body)
	maps.DeleteFunc(concerned, func(_ place, written time.Time) bool { return muted.Since.Before(written) })
	if len(concerned) == 0 {
		return nil, nil
	}
	var state health
	pods, blind, err := c.podsSeen(ctx, user, s, &state)
	if err != nil {
		return nil, fmt.Errorf("looking for a rollout: %w", err)
	}
	soak := c.options.Limits.soak(s)
	trouble, _, _ := troubleOf(made(pods, s.records.Stamps), c.options.Clock.Now(), soak)
	began, proves := beginning(pods, s.records.Stamps)
	switch {
	case blind:
		return nil, nil
	case trouble != "":
		maps.DeleteFunc(concerned, func(_ place, written time.Time) bool { return began.Before(written) })
	case slices.ContainsFunc(pods, func(pod workload.Pod) bool { return alive(&pod) }):
		return nil, nil
	case wasHealthy(&muted, soak) || muted.RolledOut.After(muted.Since.Add(afterMuting)):
		return nil, nil // so it was before that, or it has rolled since
	default:
		trouble = s.rollout.Waits + ", and nothing shows that it was healthy before"
		for _, written := range concerned {
			if written.After(began) {
				began = written // nobody knows when it began, but for that
			}
		}
	}
	if len(concerned) == 0 {
		return nil, nil
	}
	rollout := c.steps.board(user, began, slices.Collect(maps.Keys(concerned)), proves && !c.steps.wasUnwell(user, s.records))
	rollout.health = state
	c.steps.halt(user, trouble, s.records)
	return rollout, nil
}

// wasHealthy reports whether a workload was rolled out, and available for long enough,
// when somebody scaled or paused it.
func wasHealthy(muted *workload.Muted, soak time.Duration) bool {
	return !muted.RolledOut.IsZero() && muted.RolledOut.Before(muted.Since) && !muted.Available.After(muted.Since.Add(-soak))
}

// afterMuting is how long the status of a workload that was scaled to nothing takes
// to say that it is rolled out, as nothing is left to roll.
const afterMuting = 10 * time.Second

// settle ends a rollout: it is healthy with the present content of some sources, or
// cannot tell. What its workload has failed with stays halted until it is healthy
// with that. It reports whether anything has ended.
func (t *steps) settle(user ref, healthy bool, carried []checksum.Source) (ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rollouts[user]
	if r == nil {
		return false
	}
	if healthy {
		maps.DeleteFunc(r.holds, func(c *change, was hold) bool { return c.root().carriedBy(carried, was.places) })
	}
	delete(t.unwell, user)
	for c, proves := range r.evidence {
		c.root().settled++
		if over := healthy && c.root().carriedBy(carried, r.places); r.failed && proves && !over {
			r.holds[c] = hold{r.began, r.places}
		}
	}
	for _, at := range r.places {
		if c := t.changes[at]; healthy && c != nil && slices.Contains(carried, at.source) {
			if _, counts := r.evidence[c.root()]; counts {
				c.root().proven[at]++
			}
		}
	}
	ended = len(r.evidence) > 0 || len(r.holds) == 0
	if len(r.holds) == 0 {
		delete(t.rollouts, user)
	} else {
		r.failed = true
		clear(r.evidence)
	}
	t.stir()
	return ended
}

// fallen is a rollout that has failed with some contents, and for which nobody waits:
// all others are opted out, or paused. Who waits later may not find it in the
// cluster, as its workload may not tell any more.
type fallen struct {
	rollout  *rollout
	contents map[place]*checksum.Content
}

// fall puts a failure aside.
func (t *steps) fall(user ref, r *rollout) {
	delete(t.rollouts, user)
	f := &fallen{r, map[place]*checksum.Content{}}
	add := func(c *change, places []place) {
		for _, at := range places {
			if content, its := c.root().contents[at]; its {
				f.contents[at] = content
			}
		}
	}
	for c, proves := range r.evidence {
		if proves {
			add(c, r.places)
		}
	}
	for c, was := range r.holds {
		add(c, was.places)
	}
	if len(f.contents) > 0 {
		t.fallen[user] = f
	}
}

// rise has the failures with the present content of a source count again: somebody
// waits for what it brought.
func (t *steps) rise(at place) {
	c := t.changes[at].root()
	for user, f := range t.fallen {
		content, its := f.contents[at]
		if !its || !content.SameEntries(c.contents[at]) {
			continue
		}
		r := t.rollouts[user]
		if r == nil {
			r = f.rollout
			r.evidence, r.holds, r.places = map[*change]bool{}, map[*change]hold{}, nil
			t.rollouts[user] = r
		}
		if r.holds == nil {
			r.holds = map[*change]hold{}
		}
		r.holds[c] = hold{f.rollout.began, append(r.holds[c].places, at)}
		if delete(f.contents, at); len(f.contents) == 0 {
			delete(t.fallen, user)
		}
		t.look(user)
	}
}

// forget drops a workload that is gone, but for its rollout, which is kept for a
// while: it may be made again, with what it has failed with. It returns for how long
// yet.
func (t *steps) forget(user ref, keep time.Duration, now time.Time) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.see(user, t.unseen[user])
	delete(t.unwell, user)
	delete(t.fallen, user)
	r := t.rollouts[user]
	if t.waiting[user] == nil && r == nil && t.missed[user] == nil {
		return 0
	}
	delete(t.waiting, user)
	delete(t.missed, user)
	if r != nil && r.gone.IsZero() {
		r.gone = now
	}
	if r != nil {
		wait = max(0, keep-now.Sub(r.gone))
	}
	if wait == 0 {
		delete(t.rollouts, user)
	}
	t.stir()
	return wait
}

// present notes that there is the workload of a rollout. Where it is another one of its
// name, the rollout goes on where that of its predecessor was.
func (t *steps) present(r *rollout, uid types.UID, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.uid != "" && r.uid != uid {
		r.health = health{progressed: now, best: noExtent()}
	}
	r.uid, r.gone = uid, time.Time{}
}
