package rollout

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// attempt records which workload was the first to take a content of a source that nothing has proven: it
// failed with it, or the source was edited before that was known. When that content comes again, such as
// from Git, the same workload takes it first, as if it had failed.
type attempt struct {
	content checksum.Fingerprint
	ref     workload.Ref
	began   time.Time // when it first took the content: a later resume counts each time the content comes
	seen    time.Time // when the source last held the content
}

// mostAttempts bounds what is kept of one source; the oldest is dropped first.
const mostAttempts = 16

// attemptOf returns what is known of a content of a source, or nil.
func (p *Planner) attemptOf(at SourceRef, content checksum.Fingerprint) *attempt {
	for i := range p.attempts[at] {
		if a := &p.attempts[at][i]; a.content == content {
			return a
		}
	}
	return nil
}

// firstTook returns when a workload first took what its source holds.
func (p *Planner) firstTook(c *opened, its *part) time.Time {
	if a := p.attemptOf(c.at, c.content); a != nil && a.ref == its.track.ref {
		return a.began
	}
	return its.began
}

// takenBefore returns what a workload is to take first, if it took what the source holds when that held it
// before, or nil.
func (p *part) takenBefore(now time.Time) *take {
	if p.track.ref != p.change.again {
		return nil
	}
	return &take{returned: true, state: Failed, began: now, since: now}
}

// remembers keeps that a workload took what its source holds, or has held until now: of several
// workloads the first, as long as it uses the source.
func (p *Planner) remembers(its *part, content checksum.Fingerprint, now time.Time) {
	at := its.change.at
	known, is := p.attemptOf(at, content), attempt{content, its.track.ref, its.began, now}
	switch {
	case known == nil:
		all := p.attempts[at]
		p.attempts[at] = append(all[max(0, len(all)+1-mostAttempts):], is)
	case known.ref == is.ref, slices.Contains(p.cluster.Using(at), known.ref):
		known.seen = now
	default:
		*known = is
	}
}

// goesAndReturns notes that a source has ceased, when it was written, to hold what a workload took and has not
// proven, or that it holds that again while the workload still carries it: then its containers may have read
// something else.
func (p *part) goesAndReturns(was checksum.Fingerprint, left, now time.Time) {
	t := p.track
	if p.take == nil || p.ahead != 0 || p.returned || p.declined || p.wentBack() || !t.gone.IsZero() || !p.tries() && !p.fell() {
		return
	}
	switch {
	case p.content != p.change.content:
		if p.supersededAt.IsZero() {
			p.supersededAt = left
		}
	case was == p.content:
	default:
		from := cmp.Or(p.supersededAt, now)
		if t.trial == nil { // it has failed, and was well with something else
			t.trial, from = &trial{began: now, level: p.level, failed: true}, p.began
		}
		t.trial.health.doubts(from)
	}
}

// keeps has a workload judged anew that carries what its source holds again, and has carried it all along
// without a failure.
func (p *Planner) keeps(t *track, f *Facts, its *part, now time.Time) {
	switch its.broken = false; {
	case t.trial == nil: // it was well with something else
		p.begins(t, f, []*take{its.take}, now)
		t.trial.found, t.trial.health.status = true, 0 // nothing has rolled
	case t.trial.failed:
		its.level = t.trial.level
		its.fails(now, t.whyFailed(), now)
	case t.trial.standing:
		its.level = t.trial.level
		its.enters(Standing, now)
	default:
		its.level = t.trial.level
	}
	t.trial.health.doubts(p.firstTook(its.change, its))
}

// doubts notes that the source may have held something else since some moment.
func (h *health) doubts(from time.Time) {
	if h.doubt.IsZero() || from.Before(h.doubt) {
		h.doubt = from
	}
}

// clockSkew is by how much the clocks of nodes may differ from ours, of which the objects have whole seconds.
const clockSkew = 2 * time.Second

// finds looks for pods with containers that may have read something else than what the workload carries:
// unless they have run since before the source held that. If pods cannot be listed, the workload has to have
// been well since then.
func (h *health) finds(f *Facts, pods []workload.Pod) {
	if !h.doubt.IsZero() {
		if h.stale == nil {
			h.stale = map[string]bool{}
		}
		for i := range pods {
			pod := &pods[i]
			if pod.Started.IsZero() && pod.Restarted || !pod.Started.Before(h.doubt.Add(-clockSkew)) {
				h.stale[identity(pod)] = true
			}
		}
		h.unlisted, h.current = f.Pods.Access != Seen, f.Status.Current
		h.outdated = h.unlisted && (h.outdated || h.well.IsZero() || !h.well.Before(h.doubt))
		if f.Pods.Access != Unread {
			h.doubt = time.Time{}
		}
	}
	if f.Pods.Access == Seen && !h.unlisted {
		h.outdated = slices.ContainsFunc(pods, func(pod workload.Pod) bool { return h.stale[identity(&pod)] })
	}
}

// identity tells a pod from another one of its name, such as of a StatefulSet.
func identity(pod *workload.Pod) string { return pod.Name + " " + pod.Created.String() }

// replaced reports whether the status shows that all pods are being replaced, or of a kind that counts none,
// that another revision is current.
func (h *health) replaced(status *workload.Status) bool {
	was := &h.looks.status
	if status.Wanted == 0 {
		return !status.Current.Equal(h.current)
	}
	return !status.Behind && (status.Old && !was.Old || status.Updated == 0 && was.Updated > 0)
}

// provesContent drops the attempt with a content that a workload has proven.
func (p *Planner) provesContent(c *opened) {
	if known, some := p.attempts[c.at]; some {
		p.attempts[c.at] = slices.DeleteFunc(known, func(a attempt) bool { return a.content == c.content })
	}
}

// forgetAttempts drops attempts with contents that no source has held for a day.
func (p *Planner) forgetAttempts(now time.Time) {
	for at, known := range p.attempts {
		p.attempts[at] = slices.DeleteFunc(known, func(a attempt) bool { return now.Sub(a.seen) >= remembered })
	}
	maps.DeleteFunc(p.attempts, func(_ SourceRef, known []attempt) bool { return len(known) == 0 })
}
