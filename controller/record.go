package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/rollout"
)

// record has the webhook write baselines for what has no comparable record. It returns
// how long to wait before the next try, zero when all is on record.
func (l *look) record(ctx context.Context) (again time.Duration, err error) {
	ref, review := l.ref, l.review
	if review.KeyUnknown {
		if keep := l.note.renewed.Add(renewEvery).Sub(l.options.Clock.Now()); keep > 0 {
			return keep, nil
		}
	}
	before, err := l.api.get(ctx, ref)
	if err != nil {
		return 0, fmt.Errorf("reading the workload before recording checksums: %w", err)
	}
	if again, err = l.tryRecording(ctx, before); err != nil || again > 0 {
		return again, err
	}
	written, _ := ref.Kind.TemplateWritten(before)
	l.planned(func(p *rollout.Planner) {
		if last := p.LastRoll(ref, string(l.s.UID)); last.After(written) { // managedFields do not tell of our own rolls
			written = last
		}
	})
	l.note.record = &toRecord{l.s, review, written}
	answer, err := l.readmit(ctx, ref, checksum.RecordingManager, false)
	if err != nil {
		l.metrics.readmitted(recording, resultOf(err))
		return 0, fmt.Errorf("recording checksums: %w", err)
	}
	l.renewed(answer)
	l.index.Renew(ref, answer.workload)
	left, err := l.reviewOf(ctx, ref, answer.workload)
	if err != nil {
		return 0, err
	}
	if left.Records() {
		return l.untrue(recording, answer)
	}
	l.metrics.readmitted(recording, reason.Done)
	l.noteRecorded(ctx, answer.workload)
	if left.rests() { // else what people were told is true yet
		l.settled()
	}
	return 0, nil
}

// tryRecording is the dry run before a recording, as any patch runs everybody's mutating
// webhooks: if anything but our annotations would change, it is not to be sent, and again
// is not zero.
func (l *look) tryRecording(ctx context.Context, before []byte) (again time.Duration, err error) {
	try, err := l.readmit(ctx, l.ref, checksum.RecordingManager, true)
	if fields := refusal.Blocked(err); len(fields) > 0 {
		return l.recordingBlocked(fields)
	}
	if err != nil {
		l.metrics.readmitted(recording, resultOf(err))
		return 0, fmt.Errorf("recording checksums, as a dry run: %w", err)
	}
	others, err := l.ref.Kind.OtherChanges(before, try.body)
	if err != nil {
		return 0, err
	}
	if len(others) > 0 {
		if was, err := l.ref.Kind.DecodeMetadata(before); err != nil || was.ResourceVersion != try.workload.ResourceVersion {
			return 0, errors.Join(errMoved, err) // the differences may be somebody's own write
		}
		return l.recordingBlocked(others)
	}
	left, err := l.reviewOf(ctx, l.ref, try.workload)
	if err == nil && left.Records() {
		l.renewed(try) // others who were asked after us took it back
		return l.untrue(recording, try)
	}
	return 0, err
}

// renewEvery is how often a record of an unknown key is written anew. Two installations that serve the
// same namespace would otherwise take turns forever.
const renewEvery = time.Hour

// renewed remembers when our webhook recorded a workload anew over such a key.
func (l *look) renewed(answer answer) {
	if l.review.KeyUnknown && slices.ContainsFunc(reason.LostRecord.Among(answer.warnings), func(m reason.Message) bool {
		return slices.ContainsFunc(l.review.Lost, func(source checksum.Source) bool { return source.String() == m.Source })
	}) {
		l.note.renewed = l.options.Clock.Now()
	}
}

// recordingBlocked tells of a recording along which another webhook would change fields.
func (l *look) recordingBlocked(fields []string) (time.Duration, error) {
	return l.blocked(recording, reason.RecordingBlocked, fmt.Sprintf("checksums are not recorded: configstamp's patch would let another webhook change %s as well; "+
		"to accept that and get the checksums, apply the manifest again or restart the workload", joined(fields)))
}

// noteRecorded tells of a recording that a workload shows: now, or, when the answer
// was lost, when the watch brings it. It tells what was adopted, what could not be
// compared any more, and which sources were edited after the pods' template was
// written: their pods may have started before that.
func (l *look) noteRecorded(ctx context.Context, now *Workload) {
	asked := l.note.recorded(now.Records)
	if asked == nil {
		return
	}
	klog.FromContext(ctx).Info("Recorded", "workload", l.ref.String(), "references", len(asked.review.ToRecord))
	var adopted, stale, lost []checksum.Source
	for _, selection := range asked.review.ToRecord {
		source := selection.Source
		_, known := asked.of.Records.Of(source)
		switch {
		case !asked.has(source, now.Records):
		case checksum.Among(asked.review.Lost, source):
			lost = append(lost, source)
		case !known: // else recorded for another selection, and still true
			adopted = append(adopted, source)
			if l.mayBeStale(source, asked.written) {
				stale = append(stale, source)
			}
			delete(l.note.missing, source)
		}
	}
	if len(lost) > 0 {
		klog.FromContext(ctx).Info("Recorded anew", "workload", l.ref.String(), "sources", list(lost), "why", reason.LostRecord.String())
	}
	l.sayRecorded(adopted, stale, lost)
	l.metrics.lost.Add(float64(len(lost)))
}

// mayBeStale reports whether pods may have started with other content of a
// source than what was just recorded.
func (l *look) mayBeStale(source checksum.Source, templateWritten time.Time) bool {
	if !l.ref.Kind.Restarts {
		return false // every later run reads what is there then
	}
	if first, was := l.note.missing[source]; was {
		// No pod has started before it came; but it may have changed since.
		return first != (checksum.Fingerprint{}) && first != l.sources.Content(l.ref.Namespace, source).Fingerprint()
	}
	written, created := l.sources.Written(l.ref.Namespace, source)
	return written.After(created) && !templateWritten.IsZero() && written.After(templateWritten)
}
