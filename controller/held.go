package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller/internal/waiting"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// reportVerdict tells, on the workload and in metrics, what it waits for. It returns how long to
// wait before the next look, zero when something else will wake it.
func (l *look) reportVerdict(v rollout.Verdict) (wait time.Duration) {
	ref, s, r, now := l.ref, l.s, &l.review, l.options.Clock.Now()
	switch {
	case v.Roll:
		return 0
	case len(r.Untrue) == 0:
		return v.Wait
	case v.Why != reason.NoReason:
		l.holds = v.Why
	}
	if v.Settles {
		return v.Wait
	}
	if !slices.Contains([]reason.Reason{reason.MissingSource, reason.MissingKey, reason.UnreadableSetting}, v.Why) {
		l.note.hold(now.Add(-l.options.Settle), r.Untrue, s.Records)
	}
	switch v.Why {
	case reason.NoReason, reason.UnreadableSetting:
	case reason.MissingSource, reason.MissingKey:
		l.sayOnce(r.Missing[0].Reason, fmt.Sprintf("%s, but nothing rolls while %s", changed(r.Untrue), r.Missing[0]),
			append(slices.Clone(r.Untrue), r.Missing[0].Source)...)
	case reason.ObserveMode:
		l.sayObserved()
	case reason.Paced:
		l.sayPace(now.Add(v.Wait))
	case reason.Halted:
		l.told.Over(waiting.Of(ref), reason.Turn, later(r)) // no setting does any more
		why, about, when := failedElsewhere, list(r.Untrue), ""
		if v.Halted != (workload.Ref{}) {
			why, about, when = v.HaltedWhy.HaltReason(v.Halted, "this change"), about+" by "+v.Halted.People(), ", when the workload that failed becomes healthy with it or is deleted"
			if v.HaltedWhy.Cause == rollout.Declined {
				when = ", when somebody accepts the content there (kubectl configstamp accept)"
			}
		}
		text := fmt.Sprintf("%s, but this workload does not roll out: %s. %s. The change goes on when the source changes again%s, "+
			"or when somebody sets the annotation configstamp.dev/resume on the source", changed(r.Untrue), why, meanwhile(s.Records, r.Untrue), when)
		if l.told.First(waiting.Of(ref), reason.Halted, text) {
			l.sayAbout(reason.Halted, text, about, r.Untrue...)
		}
	case reason.Turn:
		l.told.Over(waiting.Of(ref), reason.Turn, later(r))
		l.told.Over(waiting.Of(ref), reason.Halted, "")
		if l.again(ref) { // it had its turn: what was refused then is told
			return v.Wait
		}
		if waited := now.Sub(v.Since); waited < longTurn {
			return sooner(v.Wait, longTurn-waited)
		}
		l.sayOnce(reason.Turn, later(r), r.Untrue...)
	case reason.Paused, reason.OutsideWindow, reason.TooSoon:
		// While it rolls, the end of an interval moves on: that is not news.
		why := changed(r.Untrue) + ", and this workload rolls out later: "
		if text := why + because(&r.policy, v.Hold); l.told.News(waiting.Of(ref), v.Why, why+v.Why.String(), text) {
			l.say(v.Why, text, r.Untrue...)
		}
	default:
		l.sayOnce(v.Why, changed(r.Untrue)+", and this workload rolls out later: "+checksum.Finding{Reason: v.Why}.String(), r.Untrue...)
	}
	return v.Wait
}

// meanwhile says what pods read that start before a workload rolls.
func meanwhile(records checksum.Records, untrue []checksum.Source) string {
	if len(unpinned(records, untrue)) > 0 {
		return "Any pod that starts meanwhile reads the new content"
	}
	return "While pins are on, a pod that starts meanwhile reads the old content"
}

// unpinned are those of some sources that no template pins: pods that start read what they hold.
func unpinned(records checksum.Records, sources []checksum.Source) []checksum.Source {
	pins := records.PinnedAt()
	return slices.DeleteFunc(slices.Clone(sources), func(source checksum.Source) bool { return pins[source].Snapshot != "" })
}

// sayGone tells of sources and keys that a workload requires and that are gone for longer
// than a replacement takes. It returns how long to wait until that is known.
func (l *look) sayGone() (wait time.Duration) {
	ref := l.ref
	var gone []checksum.Finding
	for _, finding := range l.review.Missing {
		if _, known := l.s.Records.Of(finding.Source); known { // else nothing could have started with it
			gone = append(gone, finding)
		}
	}
	if len(gone) == 0 {
		l.told.Over(waiting.Of(ref), reason.SourceGone, "")
		return 0
	}
	l.planned(func(p *rollout.Planner) { wait = p.Settles(ref, gone, l.options.Clock.Now()) })
	if wait > 0 {
		return wait
	}
	names, sources := make([]string, len(gone)), make([]checksum.Source, len(gone))
	for i, finding := range gone {
		sources[i] = finding.Source
		if names[i] = finding.Source.String() + " does not exist any more"; finding.Reason == reason.MissingKey {
			names[i] = fmt.Sprintf("%s has no key %s any more", finding.Source, finding.Key)
		}
	}
	l.holds = reason.SourceGone
	pods := "running pods keep running, but no new pod of this " + ref.Kind.Name + " can start"
	if l.options.SnapshotOf != nil && len(unpinned(l.s.Records, sources)) == 0 {
		pods = "pods read what is pinned, new ones too"
	}
	l.sayOnce(reason.SourceGone, joined(names)+": "+pods+", and nothing rolls out. "+
		"If "+one(sources, "it comes", "they come")+" back with the same content, nothing restarts; other content rolls out", sources...)
	return 0
}

// later is what is told of a workload that waits for its turn.
func later(r *review) string {
	return changed(r.Untrue) + ", and this workload rolls out later: it waits for its turn, because a change rolls out in steps and " +
		"only a limited number of workloads may roll at once (--step, --max-unsettled)"
}

// longTurn is how long a workload waits for its turn before people are told.
const longTurn = 30 * time.Second

// sayPace tells that a workload rolls less and less often, and of the sources that
// are to blame: those that it has rolled for again and again.
func (l *look) sayPace(until time.Time) {
	var hot, tell []checksum.Source
	l.planned(func(p *rollout.Planner) { hot, tell = p.Hot(l.ref, l.options.Clock.Now()) })
	whose := "its sources"
	if len(hot) > 0 {
		whose = list(hot)
	}
	l.sayOnce(reason.Paced, fmt.Sprintf("%s changed again and again: the next rollout waits until %s, and each later one waits longer, up to %s; "+
		"to set a pace of your own, use configstamp.dev/min-interval", whose, until.UTC().Format(time.RFC3339), rollout.LongestPause), l.review.Untrue...)
	for _, source := range tell {
		l.onSource(rollout.SourceRef{Namespace: l.ref.Namespace, Source: source}, reason.SourceChangesOften, "it keeps changing: workloads that use it roll less and less often, at worst once an hour; "+
			"to set a pace of your own, use configstamp.dev/min-interval on the workloads; to leave out keys that do not matter, use configstamp.dev/ignore-keys on this object", "")
	}
}

// because says which setting holds a workload, and where it is set.
func because(policy *checksum.Policy, hold checksum.Hold) string {
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

// sayUnreadable tells of settings that cannot be read: of those of the Namespace and of
// sources while they hold the workload. Where they stand, they are told of by tellNewFindings.
func (l *look) sayUnreadable() {
	r := &l.review
	texts := make([]string, 0, len(r.policy.Faults))
	var sources []checksum.Source
	held := len(r.Untrue) > 0
	for _, fault := range r.policy.Faults {
		if held || fault.Origin == checksum.OfWorkload {
			texts = append(texts, fault.Finding().String())
		}
	}
	for _, finding := range r.Faults {
		if held {
			texts = append(texts, finding.String())
			sources = append(sources, finding.Source)
		}
	}
	if len(texts) == 0 {
		l.told.Over(waiting.Of(l.ref), reason.UnreadableSetting, "")
		return
	}
	l.sayOnce(reason.UnreadableSetting, strings.Join(texts, ". "), sources...)
}

// sayObserved tells, once for each content, what would roll.
func (l *look) sayObserved() {
	r := &l.review
	contents := make(map[checksum.Source]checksum.Fingerprint, len(r.Untrue))
	for _, source := range r.Untrue {
		contents[source] = l.sources.Content(l.ref.Namespace, source).Fingerprint()
	}
	if !maps.Equal(l.note.observed, contents) {
		l.note.observed = contents
		l.metrics.observed.Inc()
		l.say(reason.ObserveMode, changed(r.Untrue)+": this workload would roll out, but its mode is observe", r.Untrue...)
	}
}

func (l *look) sayUnseen(why error) {
	l.sayOnce(reason.PodsUnseen, "its pods cannot be listed, so only its status shows whether it is healthy; give configstamp's service account the right to list pods: "+why.Error())
}

// withdrawn tells, of a workload that has waited and carries what is true again, of
// pods that started with content that has been taken back since.
func (l *look) withdrawn(ctx context.Context) error {
	if l.note.held == nil || len(l.review.Untrue) > 0 {
		return nil
	}
	if l.ref.Kind.Restarts && !rollout.RolledBetween(l.note.held.records, l.s.Records) {
		if err := l.sayWithdrawn(ctx, l.note.held); err != nil {
			return fmt.Errorf("looking for pods that started with withdrawn content: %w", err)
		}
	}
	l.note.held = nil
	return nil
}

func (l *look) sayWithdrawn(ctx context.Context, was *held) error {
	var until time.Time
	sources := was.sources
	if l.options.SnapshotOf != nil { // this process pins
		sources = unpinned(was.records, sources)
	}
	if len(sources) == 0 {
		return nil
	}
	for _, source := range sources {
		if written, _ := l.sources.Written(l.ref.Namespace, source); written.After(until) {
			until = written
		}
	}
	seen, err := l.pods(ctx, nil)
	if seen.Access == rollout.Forbidden {
		l.sayUnseen(err)
		return nil
	}
	if err != nil {
		return err
	}
	var names []string
	pods := rollout.Made(seen.All, l.s.Records.Stamps)
	for i := range pods {
		// The times of pods and sources are whole seconds.
		if started := pods[i].Started; !started.Before(was.since.Truncate(time.Second)) && (until.IsZero() || !started.After(until)) {
			names = append(names, pods[i].Name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		l.say(reason.PodsRunWithdrawnContent, fmt.Sprintf("%s %s, but pods started in between: %s. "+
			"These pods keep the withdrawn content until they are restarted", list(sources), one(sources, "was put back", "were put back"), joined(names)), sources...)
	}
	return nil
}
