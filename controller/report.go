package controller

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// outcomes are what the last reconciles by this leader found. They only affect reports.
type outcomes struct {
	changed func(rollout.SourceRef) // queues a report; nil: none are written

	mu    sync.Mutex
	since time.Time                // when this process began to lead; zero: it does not
	last  map[workload.Ref]outcome // of served workloads
	edits map[rollout.SourceRef]*edit
}

// outcome is what the last reconcile of a workload found.
type outcome struct {
	sources []checksum.Source // that concern the workload
	keeps   obstacle          // what keeps it from rolling
	// With --step=off nothing is judged. rolls are then the sources for which this leader rolled the workload, until
	// its own controller has rolled it out, and phase is how far that is.
	rolls []checksum.Source
	phase workload.Phase
}

// rollsOut reports whether the workload's own controller has yet to roll it out.
func (o *outcome) rollsOut() bool {
	return o.phase == workload.Rolling || o.phase == workload.Suspended || o.phase == workload.Failed
}

// obstacle is what keeps a workload with changed sources from rolling. The zero value is nothing.
type obstacle struct {
	why     reason.Reason
	text    string
	until   time.Time
	settles bool // its sources are yet to rest
	since   time.Time
}

// edit is which keys of a ConfigMap changed, in all edits that settled together.
type edit struct {
	began time.Time
	keys  map[string]bool
}

// mostEdits bounds how many edits are known.
const mostEdits = 4096

// Reports sets changed, which is called with each source whose report may be out of date. Call it before Run,
// and WhileLeading with whatever writes the reports.
func (c *Controller) Reports(changed func(rollout.SourceRef)) { c.outcomes.changed = changed }

// report queues the reports on some sources of a namespace.
func (o *outcomes) report(namespace string, sources ...checksum.Source) {
	if o.changed == nil {
		return
	}
	for _, source := range sources {
		o.changed(rollout.SourceRef{Namespace: namespace, Source: source})
	}
}

// lead starts a leadership at now: no workload has been reconciled yet.
func (o *outcomes) lead(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since, o.last, o.edits = now, map[workload.Ref]outcome{}, map[rollout.SourceRef]*edit{}
}

// put stores the outcome of a reconcile, nil for a workload that was deleted or is not served. It queues the
// reports that the outcome affects.
func (o *outcomes) put(ref workload.Ref, is *outcome) {
	if o.changed == nil {
		return
	}
	o.mu.Lock()
	was, known := o.last[ref]
	switch {
	case is == nil:
		delete(o.last, ref)
		is = &outcome{}
	case o.last != nil:
		if is.keeps.why == was.keeps.why && !was.keeps.since.IsZero() {
			is.keeps.since = was.keeps.since
		}
		if is.rolls == nil && is.rollsOut() {
			is.rolls = was.rolls
		}
		o.last[ref] = *is
	}
	o.mu.Unlock()
	if !known || is.keeps != was.keeps || is.phase != was.phase || !slices.Equal(is.rolls, was.rolls) || !slices.Equal(is.sources, was.sources) {
		sources := slices.Concat(was.sources, is.sources)
		slices.SortFunc(sources, checksum.Source.Compare)
		o.report(ref.Namespace, slices.Compact(sources)...)
	}
}

// of returns what the last reconcile of a workload found; false if there was none.
func (o *outcomes) of(ref workload.Ref) (outcome, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	is, known := o.last[ref]
	return is, known
}

// settled reports whether this process leads for longer than sources settle.
func (o *outcomes) settled(settle time.Duration, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero() && !now.Before(o.since.Add(settle))
}

// edited stores the keys of a ConfigMap that an edit changed.
func (o *outcomes) edited(at rollout.SourceRef, was, is *checksum.Content, settle time.Duration, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.changed == nil || o.since.IsZero() || at.Source.Kind != checksum.ConfigMap || was.SameEntries(is):
		return
	case was == nil || is == nil:
		delete(o.edits, at)
		return
	case len(o.edits) >= mostEdits:
		clear(o.edits)
	}
	e := o.edits[at]
	if e == nil || now.Sub(e.began) > settle {
		e = &edit{now, map[string]bool{}}
		o.edits[at] = e
	}
	for _, two := range [][2]*checksum.Content{{was, is}, {is, was}} {
		for _, entry := range two[0].Entries {
			if other, there := two[1].Entry(entry.Name); !there || other != entry {
				e.keys[entry.Name] = true
			}
		}
	}
}

// keys returns the changed keys of a source, sorted; nil if no edit was seen.
func (o *outcomes) keys(at rollout.SourceRef) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.edits[at]; e != nil {
		return slices.Sorted(maps.Keys(e.keys))
	}
	return nil
}

// reconciled stores the outcome of a reconcile that ended with err. A reconcile without a verdict has none.
func (l *look) reconciled(err error) {
	switch {
	case l.s == nil, l.decided && !l.served, l.decided && l.s.Fault != "":
		l.outcomes.put(l.ref, nil)
	case l.decided:
		is := &outcome{sources: l.s.Sources, keeps: l.obstacle(err)}
		if l.options.Limits.Step == 0 {
			is.rolls, is.phase = slices.Clone(l.review.Untrue), l.s.Status.Phase
		}
		l.outcomes.put(l.ref, is)
	}
}

// obstacle returns the reason why the workload does not roll, after a reconcile that ended with err.
func (l *look) obstacle(err error) obstacle {
	r, v, now := &l.review, &l.verdict, l.options.Clock.Now()
	is := obstacle{why: l.holds, settles: v.Settles, since: now}
	switch {
	case len(r.Untrue)+len(r.Declined)+len(r.Missing) == 0:
		return obstacle{}
	case len(r.Untrue) > 0 && err != nil:
		is.why = reason.Retry
	case len(r.Missing) > 0:
		is.why, is.text = r.Missing[0].Reason, r.Missing[0].String()
		return is
	case len(r.Untrue) == 0:
		is.why = reason.DeclinedKept
		is.text = "an undo, or its own return, declined its present content; to take it: " + accept(l.ref)
		return is
	}
	switch is.why {
	case reason.NoReason:
	case reason.Paused, reason.OutsideWindow, reason.TooSoon:
		hold := v.Hold
		is.until, hold.Until = hold.Until, time.Time{}
		is.text = because(&r.policy, hold) + " holds it"
	case reason.UnreadableSetting:
		is.text = r.unreadable()
	case reason.Paced:
		is.until = now.Add(v.Wait).Truncate(time.Second)
		fallthrough
	default:
		is.text = checksum.Finding{Reason: is.why}.String()
	}
	return is
}

// unreadable describes a setting that cannot be read; "" if all can be.
func (r *review) unreadable() string {
	switch {
	case len(r.policy.Faults) > 0:
		return r.policy.Faults[0].Finding().String()
	case len(r.Faults) > 0:
		return r.Faults[0].String()
	}
	return ""
}

// accept returns the command that takes content that an undo declined.
func accept(ref workload.Ref) string {
	_, command := rollout.Failure{}.Advice(ref)
	return command
}

// Sources lists the sources that workloads use.
func (c *Controller) Sources() []rollout.SourceRef { return c.index.Sources() }

// Facts returns how far each workload is with what a source holds. It sends no request. It returns false until
// this leader has reconciled each workload that uses the source.
func (c *Controller) Facts(at rollout.SourceRef) (facts report.Facts, known bool) {
	defer c.caught(klog.Background(), inReport, "Computing a report panicked", func() { known = false }, "source", at)
	ring := c.keys.Ring()
	if ring == nil || !c.leads.Load() || !c.outcomes.settled(c.options.Settle, c.options.Clock.Now()) {
		return facts, false
	}
	facts.EditedAt, _ = c.sources.Written(at.Namespace, at.Source) // before the content: it is never newer than that
	changed, used := c.outcomes.keys(at), map[string]bool{}
	for _, ref := range slices.SortedFunc(slices.Values(c.index.Using(at.Namespace, at.Source)), workload.Ref.Compare) {
		s := c.index.Get(ref)
		if s == nil || s.Fault != "" || !c.serves(ref, s) {
			continue
		}
		policy := c.policy(ref, s)
		content := c.sources.Content(at.Namespace, at.Source)
		selections := slices.DeleteFunc(checksum.Selections(s.References, policy), func(s checksum.Selection) bool {
			return s.Source != at.Source || !s.Counts(content)
		})
		if len(selections) == 0 {
			continue
		}
		w, known := c.factsOf(ref, at.Source, &policy, &s.Status, c.compare(ring, ref, &policy, selections, s.Records))
		if !known {
			return facts, false
		}
		if !w.Observes || w.State != report.Done {
			facts.Workloads = append(facts.Workloads, w)
		}
		for _, key := range changed {
			used[key] = used[key] || uses(&selections[0], content, key)
		}
	}
	if changed != nil {
		facts.Keys = slices.DeleteFunc(changed, func(key string) bool { return !used[key] })
	}
	c.planned(func(p *rollout.Planner) {
		if news, halted := p.HaltOf(at); halted {
			facts.Halted = haltOf(&news)
		}
	})
	return facts, true
}

// uses reports whether a selection has a key of a source.
func uses(s *checksum.Selection, content *checksum.Content, key string) bool {
	var policy *checksum.SourcePolicy
	if content != nil {
		policy = content.Policy
	}
	return s.Differs(&checksum.Content{Policy: policy}, &checksum.Content{Policy: policy, Entries: []checksum.Entry{{Name: key}}})
}

// factsOf returns how far one workload is with what a source holds, by a review of that source alone.
func (c *Controller) factsOf(ref workload.Ref, source checksum.Source, policy *checksum.Policy, status *workload.Status, review checksum.Review) (w report.Workload, known bool) {
	w = report.Workload{Name: ref.Text(), State: report.Done, Observes: policy.Observe}
	last, reconciled := c.outcomes.of(ref)
	var progress rollout.Progress
	c.planned(func(p *rollout.Planner) { progress, known = p.ProgressOf(ref, source) })
	if !known || !reconciled {
		return w, false
	}
	if len(review.Untrue)+len(review.Declined)+len(review.Missing) > 0 {
		w.State, w.Settles = report.Waiting, last.keeps == (obstacle{}) || last.keeps.settles
		if !w.Settles {
			w.State, w.Reason, w.Message, w.Since, w.Until = stateOf(last.keeps.why), last.keeps.why.String(), last.keeps.text, last.keeps.since, last.keeps.until
		}
		return w, true
	}
	switch progress.State {
	case rollout.Unseen, rollout.Held, rollout.Waiting: // the planner has not been told of its stamp yet
		w.State, w.Settles = report.Waiting, true
	case rollout.OnTrial, rollout.Standing:
		w.State, w.Since = report.Rolling, progress.Since
	case rollout.Failed:
		w.State, w.Since, w.Message = report.Failed, progress.Since, progress.Why.String()
		w.Advice, _ = progress.Why.Advice(ref)
	case rollout.Current, rollout.Proven, rollout.Untold:
		switch {
		case !slices.Contains(last.rolls, source) || !last.rollsOut():
		case last.phase == workload.Failed:
			shown := (&rollout.Facts{Status: *status}).Shown(c.options.Clock.Now())
			shown.Verdict = "its controller reports " + cmp.Or(status.Why, "that it has failed")
			w.State, w.Message = report.Failed, shown.String()
			w.Advice, _ = shown.Advice(ref)
		default:
			w.State = report.Rolling
		}
	}
	return w, true
}

// stateOf returns the state of a workload that a reason keeps from rolling.
func stateOf(why reason.Reason) report.State {
	switch why {
	case reason.NoReason, reason.Turn, reason.Halted, reason.Retry, reason.Blocked, reason.TooLarge:
		return report.Waiting
	default:
		return report.Held
	}
}

// haltOf describes what halts a change, and what to do.
func haltOf(news *rollout.News) string {
	if news.Foreign {
		return failedElsewhere
	}
	advice, _ := news.Why.Advice(news.By)
	return news.Why.HaltReason(news.By, "it") + ". " + advice
}
