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
	"github.com/configstamp/configstamp/internal/reason"
)

// Announcer tells people something about a workload, as an event does that the reason
// has. It is called while a request waits, so it must not block.
type Announcer func(workload corev1.ObjectReference, why reason.Reason, sentence string)

// A client that takes our records away strippingLimit times within
// strippingWindow is a program that writes the whole object in a loop, not a
// person with kubectl replace. Each replica counts what reaches it.
const (
	strippingLimit  = 5
	strippingWindow = 10 * time.Minute
	// maxAnnounced bounds the sentences of one event.
	maxAnnounced = 3
)

// effects is what a decision causes beside the patch: events on the workload, which its owners should hear of
// even if somebody else sent the request. A dry run has none, and a creation has no workload yet.
func (h *Handler) effects(ctx context.Context, r *request, f *facts, decision *checksum.Decision) {
	if h.Announce == nil || r.dryRun || r.Change == checksum.Created {
		return
	}
	h.announcePins(ctx, r, f, decision.Findings)
	if decision.Outcome == reason.Restored && lacks(r.Sent, f.Held) && h.stripping.Again(r.old.UID, strippingLimit, strippingWindow, h.now()) && f.witness.serves(ctx) {
		h.announce(r, f, reason.ChecksumsTakenAway, fmt.Sprintf("%s removes configstamp's annotations again and again, and configstamp puts them back each time: configure it to keep annotations that it does not know, or opt this workload out with the label %s: %s",
			r.client(), checksum.InjectLabel, checksum.InjectDisabled))
	}
}

// announcePins announces an undo and the client that asked for it, declined content that is taken after all,
// and, now and then, what could not be pinned.
func (h *Handler) announcePins(ctx context.Context, r *request, f *facts, findings []checksum.Finding) {
	sentences := map[reason.Reason][]string{}
	for _, finding := range findings {
		sentences[finding.Reason] = append(sentences[finding.Reason], finding.String())
	}
	for _, why := range []reason.Reason{reason.UndoTaken, reason.DeclinedCleared, reason.NotPinned} {
		of := sentences[why]
		if len(of) == 0 || why == reason.NotPinned && !h.unpinned.Again(r.old.UID, 1, 0, h.now()) || !f.witness.serves(ctx) {
			continue
		}
		h.announce(r, f, why, r.client()+": "+strings.Join(of[:min(len(of), maxAnnounced)], "; "))
	}
}

func (h *Handler) announce(r *request, f *facts, why reason.Reason, sentence string) {
	h.Announce(workloadOf(r.review, f.witness.stored.UID), why, sentence)
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

// lacks reports whether a request leaves out something that is on record.
func lacks(sent, held checksum.Records) bool {
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
