package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// due tells whether a workload with changed sources may roll now; else how long
// to wait before looking again (zero: until something happens).
func (c *Controller) due(ctx context.Context, user ref, s *subject, r review) (wait time.Duration, rolls bool, err error) {
	if !r.MayRoll() || len(r.policy.Faults) > 0 {
		c.steps.withdraw(user)
		if len(r.Missing) == 0 {
			c.waits.hold(user, checksum.UnreadableSetting)
		} else {
			c.waits.hold(user, r.Missing[0].Reason)
			c.sayOnce(user, s, r.Missing[0].Reason, fmt.Sprintf("%s, but nothing rolls while %s", changed(r.Untrue), r.Missing[0]),
				append(slices.Clone(r.Untrue), r.Missing[0].Source)...)
		}
		return 0, false, nil
	}
	now := c.options.Clock.Now()
	settles := c.settled(user, r.Untrue)
	if why, wait, hold := c.held(ctx, user, s, &r, now); why != checksum.NoReason {
		c.steps.withdraw(user)
		c.waits.hold(user, why)
		if settles > 0 {
			return settles, false, nil
		}
		c.notes.hold(user, now.Add(-c.options.Settle), r.Untrue, s.records)
		hold()
		return wait, false, nil
	}
	return c.turn(ctx, user, s, r, settles, now)
}

// held tells what holds a workload, of settings and the pace of its sources
// (nothing: ""), for how long (zero: until something happens), and how to say so.
func (c *Controller) held(ctx context.Context, user ref, s *subject, r *review, now time.Time) (why checksum.Reason, wait time.Duration, say func()) {
	if r.policy.Observe {
		return checksum.ObserveMode, 0, func() { c.sayObserved(user, s, r) }
	}
	if hold, held := r.policy.HoldAt(now, c.current(user, s)); held {
		if !hold.Until.IsZero() {
			wait = hold.Until.Sub(now)
		}
		return hold.Reason, wait, func() {
			// While it rolls, the end of an interval moves on: that is not news.
			if why := changed(r.Untrue) + ", and rolls out later: "; c.notes.first(user, hold.Reason, why+hold.Reason.String()) {
				c.say.event(user, s, hold.Reason, why+c.because(&r.policy, hold), r.Untrue...)
			}
		}
	}
	if r.policy.MinInterval > 0 {
		return checksum.NoReason, 0, nil
	}
	if wait = c.storm.wait(user, s.uid, now); wait <= 0 {
		return checksum.NoReason, 0, nil
	}
	return checksum.Paced, wait, func() { c.sayStorm(ctx, user, s, r, now.Add(wait)) }
}

// sayStorm tells that a workload rolls less and less often, and of the sources that
// are to blame: those that it has rolled for again and again.
func (c *Controller) sayStorm(ctx context.Context, user ref, s *subject, r *review, until time.Time) {
	hot, whose := c.storm.hot(user, s.uid), "its sources"
	if len(hot) > 0 {
		whose = list(hot)
	}
	c.sayOnce(user, s, checksum.Paced, fmt.Sprintf("%s changed again and again: the next rollout waits until %s, and longer each time, up to %s; "+
		"configstamp.dev/min-interval sets a pace of your own", whose, until.UTC().Format(time.RFC3339), longestPause), r.Untrue...)
	for _, source := range hot {
		if at := (place{user.namespace, source}); c.storm.tells(at, c.options.Clock.Now()) {
			c.onSource(ctx, at, checksum.SourceChangesOften, "it is written again and again: what uses it rolls less and less often, and once an hour at last; "+
				"configstamp.dev/min-interval on the workload sets a pace of your own, configstamp.dev/ignore-keys on this leaves out keys that do not matter", "")
		}
	}
}

// turn waits for the workload's turn.
func (c *Controller) turn(ctx context.Context, user ref, s *subject, r review, settles time.Duration, now time.Time) (wait time.Duration, rolls bool, err error) {
	if c.steps.off() {
		return settles, settles == 0, nil
	}
	order := unordered
	if r.policy.Order.Given {
		order = r.policy.Order.Place
	}
	stands := now.Sub(s.still)
	phase, wait, err := c.beforeTurn(ctx, user, s, stands)
	if err != nil {
		return 0, false, err
	}
	rolling, calm := phase == workload.Rolling, now.Sub(s.calm)
	fell := phase == workload.RolledOut && s.relapsed && calm < calmAfter
	if fell {
		wait = calmAfter - calm
	}
	turn := c.steps.wait(candidate{
		user: user, sources: r.Untrue, records: s.records, due: now.Add(settles),
		mute:    phase == workload.Unreported && s.rollout.Waits != "",
		silent:  phase == workload.Unreported && s.rollout.Waits == "",
		unready: rolling,
		busy:    rolling && stands < unwellAfter || fell,
		last:    rolling && stands >= unwellAfter || phase == workload.Failed,
		careful: !s.rollout.Gentle, order: order,
	}, now)
	if settles > 0 {
		return settles, false, nil
	}
	if turn.granted {
		return 0, true, nil
	}
	c.notes.hold(user, now.Add(-c.options.Settle), r.Untrue, s.records)
	later := changed(r.Untrue) + ", and rolls out later: it waits for its turn, as a change rolls in steps and " +
		"few rollouts may be unsettled at once (--step, --max-unsettled)"
	c.notes.over(user, checksum.Turn, later) // no setting does any more
	if turn.halted != (ref{}) {
		c.waits.hold(user, checksum.Halted)
		text := fmt.Sprintf("%s, but it does not roll: %s has failed with it: %s. Any pod that starts meanwhile reads the new content. "+
			"It goes on when the source changes again, when that one is healthy with it or deleted, or by the annotation configstamp.dev/resume on the source",
			changed(r.Untrue), turn.halted.people(), turn.why)
		if c.notes.first(user, checksum.Halted, text) {
			c.say.eventAbout(user, s, checksum.Halted, text, list(r.Untrue)+" by "+turn.halted.people(), r.Untrue...)
		}
		return wait, false, nil // while it is busy, another may wait for it that could end the halt
	}
	c.notes.over(user, checksum.Halted, "")
	c.waits.hold(user, checksum.Turn)
	if waited := now.Sub(turn.since); waited < longTurn {
		return sooner(wait, longTurn-waited), false, nil
	}
	c.sayOnce(user, s, checksum.Turn, later, r.Untrue...)
	return wait, false, nil
}

// unwellAfter is how long a workload may roll for another reason, without any
// progress, before it counts as not healthy.
const unwellAfter = time.Minute

// longTurn is how long a workload waits for its turn before people are told.
const longTurn = 30 * time.Second

// because says what holds a workload, and who said so.
func (c *Controller) because(policy *checksum.Policy, hold checksum.Hold) string {
	text := "configstamp.dev/" + hold.Reason.String()
	switch origin, _ := policy.OriginOf(hold.Reason.String()); origin {
	case checksum.OfNamespace:
		text += " on the Namespace"
	case checksum.OfFlag:
		text = "--" + hold.Reason.String()
	case checksum.OfWorkload, checksum.OfSource:
	}
	if hold.Until.IsZero() {
		return text
	}
	return text + " holds it until " + hold.Until.UTC().Format(time.RFC3339)
}

// current is when the newest revision of a workload became current: as its status
// tells, and no sooner than we last rolled it, which its controller may not have
// seen yet. (Its managedFields do not tell: the API server notes nobody for what a
// webhook writes in an empty patch.)
func (c *Controller) current(user ref, s *subject) time.Time {
	if last := c.storm.last(user, s.uid); last.After(s.rollout.Current) {
		return last
	}
	return s.rollout.Current
}

// sayUnreadable tells of settings that nobody can read.
func (c *Controller) sayUnreadable(user ref, s *subject, r review) {
	texts := make([]string, 0, len(r.policy.Faults))
	var sources []checksum.Source
	for _, fault := range r.policy.Faults {
		texts = append(texts, fault.Finding().String())
	}
	for _, finding := range r.Faults {
		texts = append(texts, finding.String())
		sources = append(sources, finding.Source)
	}
	if len(texts) == 0 {
		c.notes.over(user, checksum.UnreadableSetting, "")
		return
	}
	c.sayOnce(user, s, checksum.UnreadableSetting, strings.Join(texts, ". "), sources...)
}

// sayAhead tells on a source of a time to resume that cannot be read, once for each.
func (c *Controller) sayAhead(ctx context.Context, user ref, s *subject) {
	for _, source := range s.sources {
		at, text := place{user.namespace, source}, ""
		if content := c.contentOf(at); content != nil {
			if fault, found := content.Policy.Unread(); found {
				text = fault.Error()
			}
		}
		if c.notes.firstOn(at, text) {
			c.onSource(ctx, at, checksum.UnreadableSetting, text, "")
		}
	}
}

// sayObserved tells, once for each content, what would roll.
func (c *Controller) sayObserved(user ref, s *subject, r *review) {
	text := changed(r.Untrue) + ": it would roll out, but for mode: observe"
	contents := make(map[checksum.Source]*checksum.Content, len(r.Untrue))
	for _, source := range r.Untrue {
		contents[source] = c.sources.Content(user.namespace, source)
	}
	if c.notes.observes(user, contents) {
		c.metrics.observed.Inc()
		c.say.event(user, s, checksum.ObserveMode, text, r.Untrue...)
	}
}

// A workload rolls stormRolls times within stormWindow before it has to wait
// between rolls: twice as long as sources may take to settle, twice as long each
// time, and longestPause at most.
const (
	stormRolls   = 3
	stormWindow  = 10 * time.Minute
	longestPause = time.Hour
	// remembered is how long a roll is known of, where many workloads roll.
	remembered = 24 * time.Hour
)

// storm knows when we last rolled workloads, and slows down those whose sources
// somebody writes all the time. It is forgotten at a restart, which costs some
// rolls.
type storm struct {
	settle time.Duration // the longest

	mu    sync.Mutex
	pasts map[ref]*past
	told  map[place]time.Time // of which sources people were told
}

// past is how a workload has rolled.
type past struct {
	uid   types.UID        // another workload of its name has another past
	rolls [stormRolls]roll // a ring: next is the oldest
	next  int
	pause time.Duration // before the next roll; 0: none
}

// roll is one of them, and what it was for.
type roll struct {
	at      time.Time
	sources []checksum.Source
}

func newStorm(settle time.Duration) *storm {
	return &storm{settle: settle, pasts: map[ref]*past{}, told: map[place]time.Time{}}
}

// of is the past of a workload, nil when it has none.
func (s *storm) of(user ref, uid types.UID) *past {
	if p := s.pasts[user]; p != nil && p.uid == uid {
		return p
	}
	return nil
}

// rolled notes a roll for some sources.
func (s *storm) rolled(user ref, uid types.UID, sources []checksum.Source, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.of(user, uid)
	if p == nil {
		s.sweep(now)
		p = &past{uid: uid}
		s.pasts[user] = p
	}
	last := p.last()
	p.rolls[p.next] = roll{now, sources}
	p.next = (p.next + 1) % stormRolls
	switch oldest := p.rolls[p.next].at; {
	case p.pause > 0 && now.Sub(last) > max(2*p.pause, stormWindow):
		p.pause = 0 // it has calmed down
	case p.pause > 0:
		p.pause = min(2*p.pause, longestPause)
	case !oldest.IsZero() && now.Sub(oldest) < stormWindow:
		p.pause = min(2*s.settle, longestPause)
	}
}

// wait is how long the next roll has to wait yet.
func (s *storm) wait(user ref, uid types.UID, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.of(user, uid)
	if p == nil || p.pause == 0 {
		return 0
	}
	return max(0, p.last().Add(p.pause).Sub(now))
}

// tells reports whether people are to be told that a source is written again and
// again: not more often than once in longestPause.
func (s *storm) tells(at place, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.told, func(_ place, when time.Time) bool { return now.Sub(when) >= longestPause })
	if _, told := s.told[at]; told {
		return false
	}
	s.told[at] = now
	return true
}

// last is when we last rolled a workload, zero when that is not known.
func (s *storm) last(user ref, uid types.UID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.of(user, uid); p != nil {
		return p.last()
	}
	return time.Time{}
}

func (p *past) last() time.Time { return p.rolls[(p.next+stormRolls-1)%stormRolls].at }

// hot are the sources for which a workload has rolled more than once of late, sorted.
func (s *storm) hot(user ref, uid types.UID) (hot []checksum.Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.of(user, uid)
	if p == nil {
		return nil
	}
	times := map[checksum.Source]int{}
	for _, roll := range p.rolls {
		for _, source := range roll.sources {
			if times[source]++; times[source] == 2 {
				hot = append(hot, source)
			}
		}
	}
	slices.SortFunc(hot, checksum.Source.Compare)
	return hot
}

func (s *storm) forget(user ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pasts, user)
}

// sweep forgets who has long been calm, now and then.
func (s *storm) sweep(now time.Time) {
	const enough = 1024
	if len(s.pasts) < enough {
		return
	}
	for user, p := range s.pasts {
		if now.Sub(p.last()) > remembered {
			delete(s.pasts, user)
		}
	}
}
