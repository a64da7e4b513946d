package webhook

import (
	"context"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rarely"
	"github.com/configstamp/configstamp/internal/reason"
)

// A client that removes our annotations strippingLimit times within strippingWindow is a program that writes the
// whole object in a loop, not a user with kubectl replace. Each replica counts its own requests.
const (
	strippingLimit  = 5
	strippingWindow = 10 * time.Minute
	// maxReported bounds the sentences of one event.
	maxReported = 3
)

// effects emits the events that a decision causes: the owners of a workload should see them even if another client
// sent the request. A dry run has no effects, and a creation has no stored workload yet.
func (h *Handler) effects(ctx context.Context, r *request, f *facts, decision *checksum.Decision) {
	if h.Report == nil || r.dryRun || r.Change == checksum.Created {
		return
	}
	h.reportPins(ctx, r, f, decision.Findings)
	if decision.Outcome == reason.Restored && removes(r.Sent, f.Held) && h.stripping.Again(r.old.UID, strippingLimit, strippingWindow, h.now()) {
		h.report(ctx, r, f, &h.stripping, reason.ChecksumsTakenAway, fmt.Sprintf("%s keeps removing configstamp's annotations, and configstamp restores them each time: configure it to keep unknown annotations, or opt this workload out with the label %s: %s",
			r.client(), checksum.InjectLabel, checksum.InjectDisabled))
	}
}

// reportPins reports an undo with its client, declined content that is used after all, and, at most once an hour,
// references that could not be pinned.
func (h *Handler) reportPins(ctx context.Context, r *request, f *facts, findings []checksum.Finding) {
	sentences := map[reason.Reason][]string{}
	for _, finding := range findings {
		sentences[finding.Reason] = append(sentences[finding.Reason], finding.String())
	}
	for _, why := range []reason.Reason{reason.UndoTaken, reason.DeclinedCleared, reason.ReturnImpossible, reason.NotPinned} {
		of := sentences[why]
		if len(of) == 0 || why == reason.NotPinned && !h.unpinned.Again(r.old.UID, 1, 0, h.now()) {
			continue
		}
		h.report(ctx, r, f, &h.unpinned, why, r.client()+": "+strings.Join(of[:min(len(of), maxReported)], "; "))
	}
}

// report emits an event if the stored workload is served. Otherwise it takes back what limit has counted.
func (h *Handler) report(ctx context.Context, r *request, f *facts, limit *rarely.Limit, why reason.Reason, sentence string) {
	if !f.stored.serves(ctx) {
		limit.Unreported(r.old.UID)
		return
	}
	h.Report(workloadOf(r.review, f.stored.object.UID), why, sentence)
}

// workloadOf is the object of a request, for events.
func workloadOf(review *admissionv1.AdmissionRequest, uid types.UID) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: schema.GroupVersion{Group: review.Kind.Group, Version: review.Kind.Version}.String(),
		Kind:       review.Kind.Kind,
		Namespace:  review.Namespace,
		Name:       review.Name,
		UID:        uid,
	}
}

// client names the client that sends the request.
func (r *request) client() string {
	if r.manager != "" {
		return fmt.Sprintf("field manager %q", r.manager)
	}
	return fmt.Sprintf("user %q", r.review.UserInfo.Username)
}

// removes reports whether a request leaves out recorded annotations.
func removes(sent, held checksum.Records) bool {
	return without(sent.OnTemplate(), held.OnTemplate()) || without(sent.Baseline, held.Baseline) || without(sent.OnWorkload(), held.OnWorkload())
}

func without[K comparable](sent, held map[K]string) bool {
	for key := range held {
		if _, ok := sent[key]; !ok {
			return true
		}
	}
	return false
}
