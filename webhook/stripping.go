package webhook

import (
	"context"
	"fmt"
	"sync"
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
	announceEvery   = time.Hour
	// strippedKept bounds how many workloads are remembered.
	strippedKept = 4096
)

// stripping remembers which workloads lost our records to updates. Its zero
// value is empty. There are two generations: when the young one is full the
// old one is forgotten, so what is seen often stays and nothing grows.
type stripping struct {
	mu         sync.Mutex
	young, old map[types.UID]*stripped
}

type stripped struct {
	times     [strippingLimit]time.Time // a ring: next is the oldest
	next      int
	announced time.Time
}

// count counts one for a workload and reports whether people should be told.
func (t *stripping) count(uid types.UID, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of(uid)
	one.times[one.next] = now
	one.next = (one.next + 1) % strippingLimit
	if now.Sub(one.times[one.next]) > strippingWindow || now.Sub(one.announced) < announceEvery {
		return false
	}
	one.announced = now
	return true
}

func (t *stripping) of(uid types.UID) *stripped {
	if one, ok := t.young[uid]; ok {
		return one
	}
	one, ok := t.old[uid]
	if !ok {
		one = new(stripped)
	}
	if t.young == nil || len(t.young) >= strippedKept/2 {
		t.old, t.young = t.young, map[types.UID]*stripped{}
	}
	t.young[uid] = one
	return one
}

// watchStripping counts an update that lacked records which were put back, and
// announces the client that does so again and again.
func (h *Handler) watchStripping(ctx context.Context, request *admissionv1.AdmissionRequest, known *witness, sent, held checksum.Records) {
	if h.Announce == nil || isDryRun(request) || !lacks(sent, held) || !h.stripping.count(known.old.UID, h.now()) || !known.serves(ctx) {
		return
	}
	h.Announce(workloadOf(request, known.stored.UID), reason.ChecksumsTakenAway, fmt.Sprintf("%s removes configstamp's annotations again and again, and configstamp puts them back each time: configure it to keep annotations that it does not know, or opt this workload out with the label %s: %s",
		clientOf(request), checksum.InjectLabel, checksum.InjectDisabled))
}

// workloadOf is the object of a request, for events.
func workloadOf(request *admissionv1.AdmissionRequest, uid types.UID) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: schema.GroupVersion{Group: request.Kind.Group, Version: request.Kind.Version}.String(),
		Kind:       request.Kind.Kind,
		Namespace:  request.Namespace,
		Name:       request.Name,
		UID:        uid,
	}
}

// clientOf names who sends a request.
func clientOf(request *admissionv1.AdmissionRequest) string {
	if manager := fieldManager(request); manager != "" {
		return fmt.Sprintf("field manager %q", manager)
	}
	return fmt.Sprintf("user %q", request.UserInfo.Username)
}

// lacks reports whether a request leaves out something that is on record.
func lacks(sent, held checksum.Records) bool {
	onTemplate := sent.OnTemplate()
	for key := range held.OnTemplate() {
		if _, ok := onTemplate[key]; !ok {
			return true
		}
	}
	for source := range held.Baseline {
		if _, ok := sent.Baseline[source]; !ok {
			return true
		}
	}
	onWorkload := sent.OnWorkload()
	for key := range held.OnWorkload() {
		if _, ok := onWorkload[key]; !ok {
			return true
		}
	}
	return false
}
