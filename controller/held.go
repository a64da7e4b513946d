package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// tellHeld tells, on the workload and in metrics, what it waits for.
func (c *Controller) tellHeld(ctx context.Context, user workload.Ref, s *Workload, r *review, v rollout.Verdict) (wait time.Duration) {
	now := c.options.Clock.Now()
	if v.Why != checksum.NoReason {
		c.notes.of(user).holds = v.Why
	}
	if v.Settles {
		return v.Wait
	}
	missing := v.Why == checksum.MissingSource || v.Why == checksum.MissingKey
	if !missing && v.Why != checksum.UnreadableSetting {
		c.notes.of(user).hold(now.Add(-c.options.Settle), r.Untrue, s.Records)
	}
	switch v.Why {
	case checksum.UnreadableSetting:
	case checksum.MissingSource, checksum.MissingKey:
		c.sayOnce(user, s, r.Missing[0].Reason, fmt.Sprintf("%s, but nothing rolls while %s", changed(r.Untrue), r.Missing[0]),
			append(slices.Clone(r.Untrue), r.Missing[0].Source)...)
	case checksum.ObserveMode:
		c.sayObserved(user, s, r)
	case checksum.Paced:
		c.sayPace(ctx, user, s, r, now.Add(v.Wait))
	case checksum.Halted:
		c.told.over(user, checksum.Turn, later(r)) // no setting does any more
		text, about := changed(r.Untrue)+", but it does not roll: "+failedElsewhere+". Any pod that starts meanwhile reads the new content. "+
			"It goes on at once when the source changes again, or by the annotation configstamp.dev/resume on the source", list(r.Untrue)
		if v.Halted != (workload.Ref{}) {
			text, about = fmt.Sprintf("%s, but it does not roll: %s has failed with it: %s. Any pod that starts meanwhile reads the new content. "+
				"It goes on when the source changes again, when that one is healthy with it or deleted, or by the annotation configstamp.dev/resume on the source",
				changed(r.Untrue), v.Halted.People(), v.HaltedWhy), list(r.Untrue)+" by "+v.Halted.People()
		}
		if c.told.first(user, checksum.Halted, text) {
			c.sayAbout(user, s, checksum.Halted, text, about, r.Untrue...)
		}
	case checksum.Turn:
		c.told.over(user, checksum.Turn, later(r))
		c.told.over(user, checksum.Halted, "")
		if waited := now.Sub(v.Since); waited < longTurn {
			return sooner(v.Wait, longTurn-waited)
		}
		c.sayOnce(user, s, checksum.Turn, later(r), r.Untrue...)
	default: // a setting
		// While it rolls, the end of an interval moves on: that is not news.
		if why := changed(r.Untrue) + ", and rolls out later: "; c.told.first(user, v.Why, why+v.Why.String()) {
			c.say(user, s, v.Why, why+c.because(&r.policy, v.Hold), r.Untrue...)
		}
	}
	return v.Wait
}

// later is what is told of a workload that waits for its turn.
func later(r *review) string {
	return changed(r.Untrue) + ", and rolls out later: it waits for its turn, as a change rolls in steps and " +
		"few rollouts may be unsettled at once (--step, --max-unsettled)"
}

// longTurn is how long a workload waits for its turn before people are told.
const longTurn = 30 * time.Second

// sayPace tells that a workload rolls less and less often, and of the sources that
// are to blame: those that it has rolled for again and again.
func (c *Controller) sayPace(ctx context.Context, user workload.Ref, s *Workload, r *review, until time.Time) {
	var hot, tell []checksum.Source
	c.planned(func(p *rollout.Plan) { hot, tell = p.Hot(user, string(s.UID), c.options.Clock.Now()) })
	whose := "its sources"
	if len(hot) > 0 {
		whose = list(hot)
	}
	c.sayOnce(user, s, checksum.Paced, fmt.Sprintf("%s changed again and again: the next rollout waits until %s, and longer each time, up to %s; "+
		"configstamp.dev/min-interval sets a pace of your own", whose, until.UTC().Format(time.RFC3339), rollout.LongestPause), r.Untrue...)
	for _, source := range tell {
		c.onSource(ctx, rollout.SourceRef{Namespace: user.Namespace, Source: source}, checksum.SourceChangesOften, "it is written again and again: what uses it rolls less and less often, and once an hour at last; "+
			"configstamp.dev/min-interval on the workload sets a pace of your own, configstamp.dev/ignore-keys on this leaves out keys that do not matter", "")
	}
}

// because says which setting holds a workload, and where it is set.
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

// sayUnreadable tells of settings that cannot be read.
func (c *Controller) sayUnreadable(user workload.Ref, s *Workload, r review) {
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
		c.told.over(user, checksum.UnreadableSetting, "")
		return
	}
	c.sayOnce(user, s, checksum.UnreadableSetting, strings.Join(texts, ". "), sources...)
}

// sayAhead tells on a source of a time to resume that cannot be read, once for each.
func (c *Controller) sayAhead(ctx context.Context, user workload.Ref, s *Workload) {
	for _, source := range s.Sources {
		at, text := rollout.SourceRef{Namespace: user.Namespace, Source: source}, ""
		if content := c.sources.Content(user.Namespace, source); content != nil {
			if fault, found := content.Policy.Unread(); found {
				text = fault.Error()
			}
		}
		if text == "" {
			c.told.over(at, checksum.UnreadableSetting, "")
		} else if c.told.first(at, checksum.UnreadableSetting, text) {
			c.onSource(ctx, at, checksum.UnreadableSetting, text, "")
		}
	}
}

// sayObserved tells, once for each content, what would roll.
func (c *Controller) sayObserved(user workload.Ref, s *Workload, r *review) {
	contents := make(map[checksum.Source]*checksum.Content, len(r.Untrue))
	for _, source := range r.Untrue {
		contents[source] = c.sources.Content(user.Namespace, source)
	}
	if c.notes.of(user).observes(contents) {
		c.metrics.observed.Inc()
		c.say(user, s, checksum.ObserveMode, changed(r.Untrue)+": it would roll out, but for mode: observe", r.Untrue...)
	}
}

func (c *Controller) sayUnseen(user workload.Ref, s *Workload, why error) {
	c.sayOnce(user, s, checksum.PodsUnseen, "its pods cannot be looked at, so that its status alone tells whether it is healthy; give configstamp's service account the right to list pods: "+why.Error())
}

// withdrawn tells, of a workload that has waited and carries what is true again, of
// pods that started with content that has been taken back since.
func (c *Controller) withdrawn(ctx context.Context, user workload.Ref, s *Workload, r review) error {
	note := c.notes.of(user)
	if note.held == nil || len(r.Untrue) > 0 {
		return nil
	}
	if user.Kind.Restarts && !rollout.RolledBetween(note.held.records, s.Records) {
		if err := c.sayWithdrawn(ctx, user, s, note.held); err != nil {
			return fmt.Errorf("looking for pods that started with withdrawn content: %w", err)
		}
	}
	note.held = nil
	return nil
}

func (c *Controller) sayWithdrawn(ctx context.Context, user workload.Ref, s *Workload, was *held) error {
	var until time.Time
	for _, source := range was.sources {
		if written, _ := c.sources.Written(user.Namespace, source); written.After(until) {
			until = written
		}
	}
	seen, err := c.podsOf(ctx, user, nil)
	if seen.Access == rollout.Forbidden {
		c.sayUnseen(user, s, err)
		return nil
	}
	if err != nil {
		return err
	}
	var names []string
	pods := rollout.Made(seen.All, s.Records.Stamps)
	for i := range pods {
		// The times of pods and sources are whole seconds.
		if started := pods[i].Started; !started.Before(was.since.Truncate(time.Second)) && (until.IsZero() || !started.After(until)) {
			names = append(names, pods[i].Name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		c.say(user, s, checksum.PodsRunWithdrawnContent, fmt.Sprintf("%s was put back as it was, but %s started in between: "+
			"what it read then it keeps until it is restarted", list(was.sources), joined(names)), was.sources...)
	}
	return nil
}
