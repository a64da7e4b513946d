package rollout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// trial is a rollout that is watched, until it is known how its workload does.
type trial struct {
	began time.Time
	// unproven is since when the workload was not well for a whole soak, over all contents that it took.
	unproven time.Time
	// level is how many replicas were available when its turn came, or the fewest that were wanted since: it
	// is well when it has as many again. 0: only its own controller says so.
	level    int32
	found    bool // it was not begun by us
	failed   bool
	standing bool // at a pause of its own: neither under way nor proven
	fallen   bool // it was well before, and nothing is rolled
	health   health
}

// progressed is when a rollout last got further than ever.
func (t *trial) progressed() time.Time { return latest(t.began, t.health.progressed) }

// health is what is remembered of a rollout between two looks at it.
type health struct {
	selector *string // of its pods, nil while it is not known
	best     Extent
	// progressed is when it last got further than ever.
	progressed time.Time
	looks      looks
	well       time.Time // since when it is rolled out, or stands at a pause with its new pods up; zero: neither
	// soak is how long it has to be, as of the last look.
	soak     time.Duration
	lastWell time.Time // when it last was, for longer than Limits.Soak
	troubled time.Time // since when every new pod is in trouble; zero: not
	trouble  string    // and which
	started  time.Time // when a container last started, by its node's clock
	// status is workload.Status.StatusHash at the patch, until it changes.
	status uint64
	// doubt is when a source ceased to hold what the workload took, if it holds that again: containers that
	// started in between have read something else. outdated reports that pods are left that may have such
	// containers, of those in stale; they prove nothing. unlisted reports that pods could not be listed then.
	doubt              time.Time
	outdated, unlisted bool
	stale              map[string]bool // by name and creation
	current            time.Time       // workload.Status.Current when unlisted pods were outdated
	// crashed reports that a container has ended with an error. Its pods may look well between two crashes.
	crashed bool
}

// Extent is how far a rollout has been at best: the most replicas that were new, and
// available, and the fewest that were missing, as nodes and replicas may go away.
type Extent struct{ most, missing int32 }

// NoExtent is that of a rollout of which nothing is known yet.
func NoExtent() Extent { return Extent{missing: math.MaxInt32} }

// Grows takes what a status tells, and reports whether that is further than ever.
func (e *Extent) Grows(status *workload.Status) bool {
	was := *e
	e.most, e.missing = max(e.most, status.Updated+status.Available), min(e.missing, status.Missing)
	return *e != was
}

// wellFor is how long it has been well; 0: it is not.
func (h *health) wellFor(now time.Time) time.Duration {
	if h.well.IsZero() {
		return 0
	}
	return now.Sub(h.well)
}

// judgement is how a rollout is: OnTrial, Proven, Failed or Untold, and why it has failed; or what
// has to be read before that can be told.
type judgement struct {
	state State
	why   *Failure // Failed
	need  Needs
}

// A rollout that has failed is looked at less often than one under way.
const (
	soonestLook = 100 * time.Millisecond
	latestLook  = 2 * time.Second
	failedLooks = 5
)

func (l *Limits) lookEvery() time.Duration {
	return min(max(l.Soak/failedLooks, soonestLook), latestLook)
}

// soakOf is how long a workload has to stay well before that proves anything: its setting, or
// Limits.Soak; while nobody has proven a content that it carries, no less than the first soak of
// that. minReadySeconds is a lower bound of all.
func (p *Planner) soakOf(t *track) time.Duration {
	f, least := t.facts, time.Duration(0)
	if t.trial != nil && t.trial.health.crashed {
		least = crashSoak * p.limits.CrashDeadline
	}
	if its := f.Policy.Soak; its.Given {
		return max(its.For, f.Status.MinReady, least)
	}
	soak := max(p.limits.soak(f), least)
	for _, its := range t.parts {
		c, tries := its.change, its.unsure
		state, over := its.state()
		if state == OnTrial || state == Standing || state == Failed {
			tries = !its.declined
		}
		first := p.limits.firstSoak(c.all().concerns())
		switch {
		case !tries || !over && !f.carries(c.at.Source, c.content):
		case its.take != nil && its.fallen > 0:
			soak = max(soak, max(first, p.limits.soak(f))<<min(its.fallen, 5))
		case c.all().proven == 0 || c.ahead > 0:
			soak = max(soak, first)
		}
	}
	return soak
}

// crashSoak is for how many crash deadlines a workload has to stay well after a container has ended with
// an error: kubelets wait ever longer between two starts.
const crashSoak = 2

// judge tells how a rollout is. Its pods are listed only when the status asks for it: see looks.
func (t *trial) judge(f *Facts, limits *Limits, now time.Time) judgement {
	state, status := &t.health, &f.Status
	if state.progressed.IsZero() {
		state.progressed, state.best = t.began, NoExtent()
		if t.unproven.IsZero() {
			t.unproven = now
		}
		state.looks.begin(t, limits)
		if state.status == 0 && !t.found { // the answer to the patch was lost
			state.status = status.StatusHash
		}
	}
	// A status that is what it was at the patch may speak of the revision before.
	unchanged := status.StatusHash != 0 && status.StatusHash == state.status
	if !unchanged {
		state.status = 0 // nor does it when it is the same again later
	}
	if unchanged && status.Waits == "" && now.Sub(t.began) < limits.RolloutDeadline {
		return judgement{state: OnTrial}
	}
	if unchanged || status.Phase == workload.Unreported {
		state.well = time.Time{}
		return judgement{state: Untold}
	}
	if !state.well.IsZero() && state.wellFor(now) >= limits.Soak {
		state.lastWell = now
	}
	if status.Wanted > 0 {
		t.level = min(t.level, status.Wanted)
	}
	if status.Behind && !state.well.IsZero() && now.Sub(t.progressed()) < limits.RolloutDeadline {
		return judgement{state: OnTrial} // what it shows is of before it was scaled
	}
	if state.unlisted && state.replaced(status) {
		state.outdated = false
	}
	state.hear(status, t.level, limits, now)
	if status.Phase == workload.Suspended && t.standing {
		state.progressed, t.unproven = now, now // it waits for a user; its new pods may still crash
	}
	if f.Pods == nil {
		if !state.doubt.IsZero() || t.asksForPods(status, limits, now) || t.givenUp(status) && !t.failed && state.well.IsZero() && *status != state.looks.status {
			return judgement{need: Needs{Pods: true}}
		}
		return t.stuck(f, limits, now)
	}
	if f.Pods.Access != Unread { // else it is not known
		state.selector = &f.Pods.Selector
	}
	if f.Pods.Access == Unread && now.Sub(t.progressed()) < limits.RolloutDeadline {
		return judgement{need: Needs{Pods: true}}
	}
	return t.judgePods(f, limits, now)
}

// judgePods is judge with the pods at hand.
func (t *trial) judgePods(f *Facts, limits *Limits, now time.Time) judgement {
	state, status := &t.health, &f.Status
	all, rolledOut, stands := Made(f.Pods.All, f.Records.Stamps), status.Phase == workload.RolledOut, status.Phase == workload.Suspended
	pods := slices.DeleteFunc(slices.Clone(all), func(pod workload.Pod) bool { return pod.Node == "" }) // which no content can help
	if state.crashed = state.crashed || slices.ContainsFunc(pods, func(pod workload.Pod) bool { return pod.Crashed }); state.crashed {
		state.soak = max(state.soak, crashSoak*limits.CrashDeadline)
	}
	brief := min(state.soak, limits.CrashDeadline/2)
	trouble, started, up := troubleOf(pods, now, brief)
	if f.Pods.Access != Unread && t.asBefore(status, pods, len(all)-len(pods)+lost(f.Pods.All, f.Records.Stamps, now), now, brief) {
		rolledOut, up = true, true // pods beyond its level may yet start
	}
	if !rolledOut && status.PerNode && len(pods) > 0 && (trouble != "" || now.Sub(state.progressed) >= limits.soak(f)) {
		down, alone, ask := f.nodesOf()
		if len(ask) > 0 {
			return judgement{need: Needs{Pods: true, Nodes: ask}}
		}
		rolledOut = alone
		pods = slices.DeleteFunc(pods, func(pod workload.Pod) bool { return down[pod.Node] })
		trouble, started, up = troubleOf(pods, now, brief)
	}
	unknown := t.found && state.looks.last.IsZero() // it was not looked at until now
	state.looks.looked(status, pods, limits, now)
	if state.finds(f, pods); state.outdated {
		if up, state.well = false, (time.Time{}); rolledOut || stands {
			return judgement{state: Failed, why: &Failure{Cause: Outdated}}
		}
	}
	if slices.ContainsFunc(pods, func(pod workload.Pod) bool { return pod.Ready && now.Sub(pod.Started) < status.MinReady }) {
		state.progressed = now // it waits for minReadySeconds alone
	}
	if state.trouble = trouble; trouble == "" {
		state.troubled = time.Time{}
	} else if state.troubled.IsZero() {
		if state.troubled = now; unknown {
			state.troubled = t.began
		}
	}
	switch {
	case trouble != "" && now.Sub(state.troubled) >= limits.CrashDeadline:
		return judgement{state: Failed, why: f.fails(trouble, "", now)}
	case t.givenUp(status) && !rolledOut:
		return judgement{state: Failed, why: f.fails("", "its controller reports "+cmp.Or(status.Why, "that it has failed"), now)}
	}
	if len(pods) == 0 && f.Pods.Access == Seen && !stands {
		up = false // none has been made yet; a canary may stand before its first
	}
	switch {
	case !rolledOut && !stands || !up:
		state.well = time.Time{}
	case state.well.IsZero(), started.After(state.started), status.Current.After(state.well) && !status.Current.After(now):
		state.well = now // it is, or a container has restarted, or it has rolled once more meanwhile
	}
	state.started = latest(state.started, started)
	if !stands && !state.well.IsZero() && now.Sub(state.well) >= state.soak {
		return judgement{state: Proven}
	}
	return t.stuck(f, limits, now)
}

// givenUp reports whether its own controller says that the rollout has failed. What it said
// of a rollout before counts no more.
func (t *trial) givenUp(status *workload.Status) bool {
	return status.Phase == workload.Failed && (status.FailedAt.IsZero() || !status.FailedAt.Before(t.began.Truncate(time.Second)))
}

// asBefore reports whether a workload has as many replicas as when its turn came, or as are
// wanted by now: none is old, none that has a node is in trouble, and all that lack to the
// level wait for a node, from which no content keeps them. Controllers call those failed that lack a
// replica, whoever is to blame.
func (t *trial) asBefore(status *workload.Status, pods []workload.Pod, waiting int, now time.Time, brief time.Duration) bool {
	few := int(status.Available)+waiting < int(min(t.level, status.Wanted))
	if few || t.level <= 0 || status.Old || status.Available <= 0 {
		return false
	}
	for i := range pods {
		if trouble, _, _ := troubleOf(pods[i:i+1], now, brief); trouble != "" {
			return false
		}
	}
	return true
}

// stuck tells whether a rollout has failed because it makes no progress.
func (t *trial) stuck(f *Facts, limits *Limits, now time.Time) judgement {
	stands, carried := now.Sub(latest(t.health.progressed, t.health.lastWell)), now.Sub(t.began)
	if now.Sub(t.unproven) >= longestTrial*limits.RolloutDeadline+t.health.soak && now.Sub(t.health.progressed) >= limits.RolloutDeadline && !t.standing && !t.failed {
		return judgement{state: Failed, why: f.fails("", fmt.Sprintf("it has been well only intermittently for %s, and never for %s at a time", now.Sub(t.unproven).Round(time.Second), t.health.soak), now)}
	}
	if stands < limits.RolloutDeadline || carried < limits.CrashDeadline || t.failed || !t.health.well.IsZero() {
		return judgement{state: OnTrial}
	}
	if f.Pods == nil {
		return judgement{need: Needs{Pods: true}}
	}
	if carried < limits.RolloutDeadline && f.starts(limits.CrashDeadline, now) {
		return judgement{state: OnTrial} // what stood still for so long is older content
	}
	if f.Status.PerNode {
		down, _, ask := f.nodesOf()
		if len(ask) > 0 {
			return judgement{need: Needs{Pods: true, Nodes: ask}}
		}
		if f.stalledByNodes(down) {
			return judgement{state: Untold}
		}
	}
	return judgement{state: Failed, why: f.fails("", fmt.Sprintf("it has made no progress for %s", stands.Round(time.Second)), now)}
}

// longestTrial is for how many rollout deadlines a trial may last that makes no progress and is well now
// and then, but never for its soak.
const longestTrial = 6

// stands reports whether a rollout stands at a pause of its own, with new pods that have
// been up for the soak. Else one that crashes soon after it has come there would let the
// next one begin.
func (t *trial) stands(f *Facts, now time.Time) bool {
	return f.Status.Phase == workload.Suspended && (t.standing || t.health.wellFor(now) >= t.health.soak)
}
