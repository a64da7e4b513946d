package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller/internal/throttle"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

const (
	// lateAfter is how long an answer takes, at least, that is not true for want of time;
	// lateAgain is how soon such a re-admission is tried again, at the latest.
	lateAfter = 500 * time.Millisecond
	lateAgain = 5 * time.Second
	// permitAgain is how soon a workload that stands in line for a permit is looked at,
	// should nothing call it.
	permitAgain = 30 * time.Second
)

// errLate: a re-admission failed for want of time.
var errLate = errors.New("the API server or the webhook takes too long: reduce its load, or raise the webhook's timeoutSeconds")

// throttled has a workload re-admitted if it gets a permit; else it stands in line. There
// are fewer permits while re-admissions fail for want of time.
func (l *look) throttled(readmit func() (time.Duration, error)) (again time.Duration, err error) {
	permit := false
	l.permits(func(t *throttle.Throttle) []workload.Ref { permit = t.Begin(l.ref); return nil })
	if !permit {
		l.holds = reason.Turn
		l.planned(func(p *rollout.Planner) { p.Stands(l.ref, l.options.Clock.Now()) })
		return permitAgain, nil
	}
	defer func() {
		late := errors.Is(err, errLate)
		l.permits(func(t *throttle.Throttle) []workload.Ref { return t.End(l.ref, late, l.options.Clock.Now()) })
	}()
	return readmit()
}

// permits tells the throttle something, under its lock, and queues those whom it calls.
func (c *Controller) permits(do func(*throttle.Throttle) []workload.Ref) {
	called := func() []workload.Ref {
		c.throttleLock.Lock()
		defer c.throttleLock.Unlock()
		return do(c.throttle)
	}()
	for _, ref := range called {
		c.queue.Add(ref)
	}
}

// againWithin is how soon a re-admission is tried again that failed so, at the latest.
func againWithin(err error) time.Duration {
	if errors.Is(err, errLate) { // the throttle sees to it that this is no load
		return lateAgain
	}
	return lastRetry
}

// slow makes an error one of want of time, if the API server's answer, or that there is
// none, says so.
func slow(err error) error {
	var lost net.Error
	code := refusal.StatusOf(err).Code
	if code == http.StatusTooManyRequests || code == http.StatusGatewayTimeout || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &lost) && lost.Timeout() {
		return fmt.Errorf("%w: %w", errLate, err)
	}
	return err
}

// errAway: the answer to a re-admission is not true yet.
var errAway = errors.New("re-admission left checksums that are out of date: the webhook was not called, or had older content")

// roll has the webhook stamp a workload again, and checks that the answer is true. So a
// race between the caches of both processes does no harm.
func (l *look) roll(ctx context.Context) (time.Duration, error) {
	ref, was, changes := l.ref, l.s, l.review.Untrue
	l.note.changed, l.note.asked = changes, was.Records
	l.planned(func(p *rollout.Planner) { p.Sent(ref) })
	answer, err := l.readmit(ctx, ref, checksum.RollingManager, false)
	if fields := refusal.Blocked(err); len(fields) > 0 {
		l.plans(func(p *rollout.Planner) { p.Refused(ref, true, lastRetry, l.options.Clock.Now()) })
		return l.blocked(rolling, reason.Blocked, fmt.Sprintf("%s, but this workload does not roll out: configstamp's patch would let another webhook change %s as well; "+
			"to accept that and roll out, apply the manifest again or restart the workload", changed(changes), joined(fields)), changes...)
	}
	if err != nil {
		l.metrics.readmitted(rolling, resultOf(err))
		l.plans(func(p *rollout.Planner) { p.Refused(ref, refused(err), againWithin(err), l.options.Clock.Now()) })
		return 0, fmt.Errorf("rolling: %w", err)
	}
	l.index.Renew(ref, answer.workload)
	after := *answer.workload
	after.Sources = was.Sources // where the watch was first, the index did not take it
	l.s = &after
	rolled := rollout.RolledBetween(was.Records, after.Records)
	now := l.options.Clock.Now()
	l.planned(func(p *rollout.Planner) { l.mark = p.Mark() })
	l.review, err = l.reviewOf(ctx, ref, l.s)
	if rolled { // also when it is not known what it carries
		facts := l.facts()
		l.plans(func(p *rollout.Planner) { p.Look(ref, facts, now) })
	} else {
		l.plans(func(p *rollout.Planner) { p.Refused(ref, true, againWithin(answer.away()), now) })
	}
	l.noteRolled(ctx)
	l.note.held = nil
	dropped := func(s checksum.Selection) bool { return checksum.Among(changes, s.Source) }
	switch {
	case err != nil:
		return 0, err
	case !rolled && slices.ContainsFunc(l.review.ToRecord, dropped):
		return l.blocked(rolling, reason.Blocked, fmt.Sprintf("%s, but this workload does not roll out: the API server dropped the checksums that were put on its pod template. "+
			"Its CustomResourceDefinition must keep annotations there (controller-gen: generateEmbeddedObjectMeta=true)", changed(changes)), changes...)
	case len(l.review.Untrue) == 0:
		l.metrics.readmitted(rolling, reason.Done)
		l.settled()
		return 0, nil
	}
	return l.untrue(rolling, answer)
}

// blocked is about a re-admission that a person has to make possible.
func (l *look) blocked(manner string, why reason.Reason, text string, about ...checksum.Source) (time.Duration, error) {
	l.metrics.readmitted(manner, why)
	l.holds = why
	l.sayOnce(why, text, about...)
	return noHurry, nil
}

// untrue is about an answer that does not have everything on record.
func (l *look) untrue(manner string, answer answer) (time.Duration, error) {
	if len(reason.TooLarge.Among(answer.warnings)) > 0 {
		return l.blocked(manner, reason.TooLarge, reason.TooLarge.Sentence(reason.Values{}))
	}
	l.metrics.readmitted(manner, reason.WebhookAway)
	return 0, answer.away()
}

// noteRolled counts and tells of a roll that a workload shows: now, or, when the
// answer to the patch was lost, when the watch brings it.
func (l *look) noteRolled(ctx context.Context) {
	sources, adopted := l.note.rolled(l.s.Records)
	if len(sources) == 0 {
		return
	}
	l.planned(func(p *rollout.Planner) { p.Rolled(l.ref, string(l.s.UID), sources, l.options.Clock.Now()) })
	klog.FromContext(ctx).Info("Rolling out", "workload", l.ref.String(), "changed", list(sources))
	l.sayRolling(sources, adopted)
}

// answer is what came back of a re-admission.
type answer struct {
	body     []byte
	workload *Workload
	warnings []string
	took     time.Duration
}

// away is the failure of an answer that is not true.
func (a answer) away() error {
	if a.took >= lateAfter {
		return fmt.Errorf("%w: %w", errLate, errAway)
	}
	return errAway
}

// readmit has the webhook look at a workload again. That the workload is gone is
// believed when a read says so, which no webhook sees: one that denies a patch chooses
// the status code.
func (c *Controller) readmit(ctx context.Context, ref workload.Ref, manager string, dryRun bool) (answer, error) {
	began := c.options.Clock.Now()
	body, warnings, err := c.api.readmit(ctx, ref, manager, dryRun)
	took := c.options.Clock.Since(began)
	if apierrors.IsNotFound(err) {
		if _, readErr := c.api.get(ctx, ref); !apierrors.IsNotFound(readErr) {
			said := refusal.StatusOf(err)
			said.Code, said.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
			err = refusal.Plain(&apierrors.StatusError{ErrStatus: said})
		}
	}
	if err != nil {
		return answer{}, slow(err)
	}
	s, err := c.options.read(ref.Kind, body)
	return answer{body, s, warnings, took}, err
}

// refused reports whether it is certain that a patch was not stored: the API server
// said no. What it says of time or of itself leaves that open.
func refused(err error) bool {
	code := refusal.StatusOf(err).Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}

// resultOf is what came of a re-admission that failed.
func resultOf(err error) reason.Reason {
	switch {
	case apierrors.IsNotFound(err):
		return reason.Gone
	case refusal.OptedOut(err):
		return reason.OptedOut
	case refused(err):
		return reason.Refused
	}
	return reason.NoAnswer
}
