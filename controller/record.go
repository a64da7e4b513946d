package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// record has the webhook write baselines for what has no comparable record. It returns
// how long to wait before the next try, zero when all is on record.
func (c *Controller) record(ctx context.Context, ref workload.Ref, s *Workload, review review) (again time.Duration, err error) {
	if len(review.OtherKeys) > 0 {
		if keep := c.notes.of(ref).renewed.Add(renewEvery).Sub(c.options.Clock.Now()); keep > 0 {
			return keep, nil
		}
	}
	before, err := c.api.get(ctx, ref)
	if err != nil {
		return 0, fmt.Errorf("reading the workload before recording checksums: %w", err)
	}
	if again, err = c.tryRecording(ctx, ref, s, review, before); err != nil || again > 0 {
		return again, err
	}
	written, _ := ref.Kind.TemplateWritten(before)
	c.planned(func(p *rollout.Planner) {
		if last := p.LastRoll(ref, string(s.UID)); last.After(written) { // managedFields do not tell of our own rolls
			written = last
		}
	})
	c.notes.of(ref).record = &toRecord{s, review, written}
	answer, err := c.readmit(ctx, ref, checksum.RecordingManager, false)
	if err != nil {
		c.metrics.readmitted(recording, resultOf(err))
		return 0, fmt.Errorf("recording checksums: %w", err)
	}
	c.renewed(ref, review, answer)
	c.index.Renew(ref, answer.workload)
	left, err := c.review(ctx, ref, answer.workload)
	if err != nil {
		return 0, err
	}
	if left.Records() {
		return c.untrue(ref, s, recording, answer)
	}
	c.metrics.readmitted(recording, checksum.Done)
	c.noteRecorded(ctx, ref, answer.workload)
	if left.rests() { // else what people were told is true yet
		c.atRest(ref)
	}
	return 0, nil
}

// tryRecording is the dry run before a recording, as any patch runs everybody's mutating
// webhooks: if anything but our annotations would change, it is not to be sent, and again
// is not zero.
func (c *Controller) tryRecording(ctx context.Context, ref workload.Ref, s *Workload, review review, before []byte) (again time.Duration, err error) {
	try, err := c.readmit(ctx, ref, checksum.RecordingManager, true)
	if fields := refusal.Forbidden(err); len(fields) > 0 {
		return c.recordingBlocked(ref, s, fields)
	}
	if err != nil {
		c.metrics.readmitted(recording, resultOf(err))
		return 0, fmt.Errorf("recording checksums, as a dry run: %w", err)
	}
	others, err := ref.Kind.OtherChanges(before, try.body)
	if err != nil {
		return 0, err
	}
	if len(others) > 0 {
		if was, err := ref.Kind.DecodeMetadata(before); err != nil || was.ResourceVersion != try.workload.ResourceVersion {
			return 0, errors.Join(errMoved, err) // the differences may be somebody's own write
		}
		return c.recordingBlocked(ref, s, others)
	}
	left, err := c.review(ctx, ref, try.workload)
	if err == nil && left.Records() {
		c.renewed(ref, review, try) // others who were asked after us took it back
		return c.untrue(ref, s, recording, try)
	}
	return 0, err
}

// renewEvery is how often a record is written anew whose key we lack: two installations would for ever.
const renewEvery = time.Hour

// renewed notes that our webhook says that it has recorded a workload anew over such a key.
func (c *Controller) renewed(ref workload.Ref, review review, answer answer) {
	if len(review.OtherKeys) > 0 && slices.ContainsFunc(review.Lost, func(source checksum.Source) bool {
		return slices.Contains(answer.warnings, checksum.Finding{Reason: checksum.LostRecord, Source: source}.Warning())
	}) {
		c.notes.of(ref).renewed = c.options.Clock.Now()
	}
}

// recordingBlocked tells of a recording along which another webhook would change fields.
func (c *Controller) recordingBlocked(ref workload.Ref, s *Workload, fields []string) (time.Duration, error) {
	return c.blocked(ref, s, recording, checksum.RecordingBlocked, fmt.Sprintf("checksums are not recorded: configstamp's patch would let another webhook change %s as well; "+
		"to accept that and get the checksums, apply the manifest again or restart the workload", joined(fields)))
}

// sooner is the shorter of two waits. Zero is no wait.
func sooner(wait, other time.Duration) time.Duration {
	if wait == 0 || other == 0 {
		return max(wait, other)
	}
	return min(wait, other)
}

// noteRecorded tells of a recording that a workload shows: now, or, when the answer
// was lost, when the watch brings it. It tells what was adopted, what could not be
// compared any more, and which sources were edited after the pods' template was
// written: their pods may have started before that.
func (c *Controller) noteRecorded(ctx context.Context, ref workload.Ref, now *Workload) {
	asked := c.notes.of(ref).recorded(now.Records)
	if asked == nil {
		return
	}
	s := asked.of
	klog.FromContext(ctx).Info("Recorded", "workload", ref.String(), "references", len(asked.review.ToRecord))
	var adopted, stale, lost []checksum.Source
	for _, selection := range asked.review.ToRecord {
		source := selection.Source
		_, known := s.Records.Of(source)
		switch {
		case !asked.has(source, now.Records):
		case slices.Contains(asked.review.Lost, source):
			lost = append(lost, source)
		case !known: // else recorded for another selection, and still true
			adopted = append(adopted, source)
			if c.mayBeStale(ref, source, asked.written) {
				stale = append(stale, source)
			}
		}
	}
	for _, source := range adopted {
		delete(c.notes.of(ref).missing, source)
	}
	if len(lost) > 0 {
		klog.FromContext(ctx).Info("Recorded anew", "workload", ref.String(), "sources", list(lost), "why", checksum.LostRecord.String())
	}
	c.sayRecorded(ref, s, adopted, stale, lost)
	c.metrics.lost.Add(float64(len(lost)))
}

// mayBeStale reports whether pods may have started with other content of a
// source than what was just recorded.
func (c *Controller) mayBeStale(ref workload.Ref, source checksum.Source, templateWritten time.Time) bool {
	if !ref.Kind.Restarts {
		return false // every later run reads what is there then
	}
	if first, was := c.notes.of(ref).missing[source]; was {
		// No pod has started before it came; but it may have changed since.
		return first != nil && !first.Equal(c.sources.Content(ref.Namespace, source))
	}
	written, created := c.sources.Written(ref.Namespace, source)
	return written.After(created) && !templateWritten.IsZero() && written.After(templateWritten)
}
