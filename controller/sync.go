package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/panics"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// noHurry is how long to wait before something is tried again that only a
// person can mend.
const noHurry = 10 * time.Minute

var (
	errNoKey = errors.New("the digest key is not there yet")
	errMoved = errors.New("somebody else wrote the workload meanwhile")
	// errAway: the answer to a re-admission is not true yet.
	errAway = errors.New("re-admission left untrue checksums: the webhook was not called, or knew older content")
)

// sync does what is due for one workload. One that the API server does not know
// is forgotten.
func (c *Controller) sync(ctx context.Context, user workload.Ref) (wait time.Duration, err error) {
	err = errPanicked // unless it returns
	defer func() { c.waits.looked(user, err != nil, c.again(user)) }()
	s := c.index.get(user)
	if s == nil {
		return c.forget(user), nil
	}
	wait, err = c.look(ctx, user, s)
	if apierrors.IsNotFound(err) {
		c.index.gone(user, s)
		return c.forget(user), nil
	}
	return wait, err
}

// forget drops a workload that is gone, and returns how long to wait before its
// rollout is dropped as well.
func (c *Controller) forget(user workload.Ref) time.Duration {
	c.notes.forget(user)
	c.others.forget(user)
	var wait time.Duration
	c.planned(func(p *rollout.Plan) { wait = p.Forget(user, c.options.Clock.Now()) })
	return wait
}

// again reports whether a workload is to be tried again.
func (c *Controller) again(user workload.Ref) (again bool) {
	c.planned(func(p *rollout.Plan) { again = p.Again(user) })
	return again
}

// look looks at one workload and does what is due: nothing, a recording, or a
// roll. It returns how long to wait before looking again (zero: until
// something happens), or an error: then it is tried again with backoff, for ever.
func (c *Controller) look(ctx context.Context, user workload.Ref, s *subject) (time.Duration, error) {
	var uncertain bool
	if c.planned(func(p *rollout.Plan) { uncertain = p.Uncertain(user) }); uncertain { // the watch may not have told of it yet
		var err error
		if s, err = c.reread(ctx, user, s); err != nil {
			return 0, fmt.Errorf("looking whether it rolls: %w", err)
		}
		c.planned(func(p *rollout.Plan) { p.Confirmed(user, s.records, s.sources, c.options.Clock.Now()) })
	}
	if served := c.serves(user, s); !served || s.fault != "" {
		return c.lookOn(ctx, user, s, served)
	}
	review, err := c.review(ctx, user, s)
	if err != nil {
		return 0, err
	}
	c.noteRolled(ctx, user, s)
	c.noteRecorded(ctx, user, s)
	c.sayUnreadable(user, s, review)
	c.sayAhead(ctx, user, s)
	c.notes.missed(user, review.Missing)
	for i := range review.ToRecord {
		source := review.ToRecord[i].Source
		c.notes.came(user, source, c.sources.Content(user.Namespace, source))
	}
	withdrawnErr := c.withdrawn(ctx, user, s, review)
	wait, err := c.act(ctx, user, s, review)
	if next := c.index.get(user); next != nil {
		s = next // as it is after a re-admission
	}
	again, followErr := c.follow(ctx, user, s)
	if err = errors.Join(err, withdrawnErr, followErr); err == nil && review.rests() && !c.follows(user) {
		c.notes.settle(user)
	}
	return sooner(wait, again), err
}

// reread is a workload as the API server has it now.
func (c *Controller) reread(ctx context.Context, user workload.Ref, was *subject) (*subject, error) {
	body, err := c.api.get(ctx, user)
	if err != nil {
		return nil, err
	}
	now, err := c.answerOf(user, body)
	if err != nil {
		return nil, err
	}
	if now.subject.uid != was.uid {
		return nil, errMoved
	}
	c.index.renew(user, now.subject)
	return now.subject, nil
}

// act does what a review asks for.
func (c *Controller) act(ctx context.Context, user workload.Ref, s *subject, review review) (time.Duration, error) {
	var wait time.Duration
	var rolls bool
	var err error
	if len(review.Untrue) > 0 {
		wait, rolls, err = c.due(ctx, user, s, review)
	} else {
		facts := c.facts(user, s)
		c.planned(func(p *rollout.Plan) { p.RolledByOthers(user, facts, c.options.Clock.Now()) })
	}
	switch {
	case rolls:
		return c.roll(ctx, user, s, review)
	case len(review.ToRecord) > 0:
		wait, recordErr := c.record(ctx, user, s, review, wait)
		return wait, errors.Join(err, recordErr)
	}
	return wait, err
}

// serves reports whether a workload is ours, and tells of a Namespace that is left to
// another installation.
func (c *Controller) serves(user workload.Ref, s *subject) bool {
	namespace := c.namespaces.Get(user.Namespace)
	served, why := checksum.Served(checksum.Candidate{
		Inject: s.inject, Foreign: s.foreign, Owned: s.owned,
		Ending:   s.deleting || namespace.Ending,
		Excluded: slices.Contains(c.options.Excluded, user.Namespace),
	}, namespace, c.options.Installation)
	switch {
	case served:
		c.others.over(user.Namespace, checksum.ServedElsewhere)
	case why == checksum.ServedElsewhere:
		c.tellElsewhere(user.Namespace)
	}
	return served
}

// review is the state of a workload's references under its policy.
type review struct {
	checksum.Review
	policy checksum.Policy
}

// rests reports whether nothing is due, and nothing to be mended.
func (r *review) rests() bool {
	return len(r.Untrue) == 0 && len(r.ToRecord) == 0 && len(r.Faults) == 0 && len(r.policy.Faults) == 0
}

// policy is what counts for a workload, and what holds it.
func (c *Controller) policy(user workload.Ref, s *subject) checksum.Policy {
	return c.options.Policy.With(
		checksum.Level{Origin: checksum.OfWorkload, Annotations: s.settings},
		checksum.Level{Origin: checksum.OfNamespace, Annotations: c.namespaces.Get(user.Namespace).Settings},
	).Translated(s.foreign, func(kind checksum.Kind) []string { return c.sources.Names(user.Namespace, kind) })
}

// concern gives the sources that concern a workload: by its policy, and those that
// it carries stamps of, as it may have failed with them; none when that panics, as the
// next look at it will tell.
func (c *Controller) concern(user workload.Ref, s *subject) (sources []checksum.Source) {
	defer func() {
		if value := recover(); value != nil {
			c.panicked(klog.Background(), inWatch, "Finding the sources of a workload panicked", value, panics.Where(), "workload", user.String())
			sources = nil
		}
	}()
	selections := checksum.Selections(s.references, c.policy(user, s))
	sources = make([]checksum.Source, len(selections))
	for i := range selections {
		sources[i] = selections[i].Source
	}
	chosen := sources
	for key := range s.records.Stamps {
		if source, ok := checksum.StampedSource(key); ok && !isAmong(chosen, source) {
			sources = append(sources, source)
		}
	}
	if len(sources) > len(chosen) {
		slices.SortFunc(sources, checksum.Source.Compare)
	}
	return sources
}

// review compares what is on record with what the sources hold, by memory.
func (c *Controller) review(ctx context.Context, user workload.Ref, s *subject) (review, error) {
	ring := c.keys.Ring()
	if ring == nil {
		return review{}, errNoKey
	}
	policy := c.policy(user, s)
	selections := checksum.Selections(s.references, policy)
	for i := range selections {
		if value, ok := s.records.Of(selections[i].Source); ok {
			if id, unknown := ring.UnknownKey(value); unknown {
				if _, err := c.keys.Refresh(ctx, id); err != nil {
					return review{}, err
				}
				if ring = c.keys.Ring(); ring == nil {
					return review{}, errNoKey
				}
			}
		}
	}
	return review{policy: policy, Review: ring.Review(user.Namespace, &policy, selections, s.records, func(source checksum.Source) *checksum.Content {
		return c.sources.Content(user.Namespace, source)
	})}, nil
}

// roll has the webhook stamp a workload anew, and checks that the answer is
// true. That closes every race between the caches without trusting any.
func (c *Controller) roll(ctx context.Context, user workload.Ref, s *subject, review review) (time.Duration, error) {
	c.notes.rolling(user, review.Untrue, s.records)
	c.planned(func(p *rollout.Plan) { p.Sent(user, c.options.Clock.Now()) })
	answer, err := c.readmit(ctx, user, checksum.RollingManager, false)
	if fields := forbidden(err); len(fields) > 0 {
		c.metrics.readmitted(rolling, checksum.Blocked)
		c.waits.hold(user, checksum.Blocked)
		c.refuse(user, true)
		c.sayOnce(user, s, checksum.Blocked, rollBlockedNote(review.Untrue, fields), review.Untrue...)
		return noHurry, nil
	}
	if err != nil {
		c.metrics.readmitted(rolling, resultOf(err))
		c.refuse(user, refused(err))
		return 0, fmt.Errorf("rolling: %w", err)
	}
	after := answer.subject
	c.index.renew(user, after)
	now := c.options.Clock.Now()
	rolled := rollout.RolledBetween(s.records, after.records)
	if rolled {
		facts := c.facts(user, after)
		c.planned(func(p *rollout.Plan) { p.Answered(user, facts, now) })
	} else {
		c.refuse(user, true)
	}
	c.noteRolled(ctx, user, after)
	c.notes.waited(user)
	left, err := c.review(ctx, user, after)
	switch {
	case err != nil:
		return 0, err
	case len(left.Untrue) == 0:
		c.metrics.readmitted(rolling, checksum.Done)
		c.notes.settle(user)
		return 0, nil
	case answer.warned(checksum.TooLarge):
		c.metrics.readmitted(rolling, checksum.TooLarge)
		c.waits.hold(user, checksum.TooLarge)
		c.sayOnce(user, s, checksum.TooLarge, checksum.Finding{Reason: checksum.TooLarge}.String())
		return noHurry, nil
	default:
		c.metrics.readmitted(rolling, checksum.WebhookAway)
		if rolled {
			c.planned(func(p *rollout.Plan) { p.Postpone(user.Namespace, left.Untrue, now) })
		}
		return 0, errAway
	}
}

// refuse has the plan know that what was sent did not come, or, unless that is certain,
// that nobody knows.
func (c *Controller) refuse(user workload.Ref, certain bool) {
	c.planned(func(p *rollout.Plan) { p.Refused(user, certain, c.options.Clock.Now()) })
}

// noteRolled counts and tells of a roll that a workload shows: now, or, when the
// answer to the patch was lost, when the watch brings it.
func (c *Controller) noteRolled(ctx context.Context, user workload.Ref, s *subject) {
	if sources, adopted := c.notes.rolled(user, s.records); len(sources) > 0 {
		c.planned(func(p *rollout.Plan) { p.Rolled(user, string(s.uid), sources, c.options.Clock.Now()) })
		klog.FromContext(ctx).Info("Rolling out", "workload", user.String(), "changed", list(sources))
		c.say.rolling(user, s, sources, adopted)
	}
}

// answer is what came back of a re-admission.
type answer struct {
	body     []byte
	object   *workload.Object
	subject  *subject
	warnings []string
}

// warned reports whether the webhook gave a reason in a warning.
func (a answer) warned(reason checksum.Reason) bool {
	return slices.Contains(a.warnings, checksum.Finding{Reason: reason}.Warning())
}

// readmit has the webhook look at a workload again. That the workload is gone is
// believed when a read says so, which no webhook sees: one that denies a patch chooses
// the status code.
func (c *Controller) readmit(ctx context.Context, user workload.Ref, manager string, dryRun bool) (answer, error) {
	body, warnings, err := c.api.readmit(ctx, user, manager, dryRun)
	if apierrors.IsNotFound(err) {
		if _, readErr := c.api.get(ctx, user); !apierrors.IsNotFound(readErr) {
			err = denial(err)
		}
	}
	if err != nil {
		return answer{}, err
	}
	read, err := c.answerOf(user, body)
	read.warnings = warnings
	return read, err
}

// answerOf reads a workload as the API server writes it.
func (c *Controller) answerOf(user workload.Ref, body []byte) (answer, error) {
	object, err := user.Kind.Decode(body)
	if err != nil {
		return answer{}, err
	}
	status, err := user.Kind.Status(body)
	if err != nil {
		return answer{}, err
	}
	return answer{body: body, object: object, subject: c.options.newSubject(object, status)}, nil
}
