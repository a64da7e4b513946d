package pins

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/panics"
	"github.com/configstamp/configstamp/internal/pins/pinning"
	"github.com/configstamp/configstamp/internal/rarely"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// PodPath is where the API server calls for Pods that are created.
const PodPath = "/pods"

// Stored reads objects as they are at this moment.
type Stored interface {
	// Stored is an object of a kind; nil without an error: there is none of that name.
	Stored(ctx context.Context, kind *workload.Kind, namespace, name string) (*workload.Object, error)
}

// StoredWithin bounds the read of a stored object.
const StoredWithin = 500 * time.Millisecond

// Reporter emits the event of a reason about a workload. It is called while a request waits, so it must not block.
type Reporter func(workload corev1.ObjectReference, why reason.Reason, sentence string)

// Pods gives new Pods the content that their template was stamped with. It reads nothing but the archive;
// references that it cannot pin keep the present content. Its fields do not change while it serves.
type Pods struct {
	Archive Archive
	Metrics *Metrics
	// Serves reports whether anything in a namespace can be opted in; nil: in each.
	Serves func(namespace string) bool
	// Report receives references that could not be pinned; nil: they are not reported.
	Report Reporter
	// Owners reads the owner of a Pod before Report is called.
	Owners Stored
	// Now is the clock; nil is the real one.
	Now func() time.Time

	reported rarely.Limit
}

// Pinned is the result of one Pod.
type Pinned struct {
	// Result is one of podPinned, podPartly and podUnpinned; "": it names no snapshots.
	Result   string
	Patch    []jsonpatch.Operation
	Warnings []string
}

// Endpoint serves the Pods.
func (p *Pods) Endpoint() *admission.Endpoint[Pinned] {
	return &admission.Endpoint[Pinned]{
		Decide:   p.Admit,
		Panicked: Pinned{Result: podUnpinned, Warnings: []string{reason.Panicked.Warning(reason.Values{})}},
		Respond: func(review *admissionv1.AdmissionRequest, pod Pinned, took time.Duration) *admissionv1.AdmissionResponse {
			if pod.Result != "" {
				p.Metrics.answered(pod.Result, took)
			}
			return admission.Allow(review, cmp.Or(pod.Result, reason.NotServed.Label()), pod.Patch, pod.Warnings)
		},
		Refused: p.Metrics.refused,
	}
}

// Admit decides on one request. It never denies.
func (p *Pods) Admit(ctx context.Context, review *admissionv1.AdmissionRequest) Pinned {
	isPod := review.Resource.Group == "" && review.Resource.Resource == "pods" && review.SubResource == ""
	if !isPod || review.Operation != admissionv1.Create || p.Serves != nil && !p.Serves(review.Namespace) {
		return Pinned{}
	}
	pod, err := workload.DecodeNewPod(review.Object.Raw)
	if err != nil {
		admission.LogOf(ctx, review).Error(err, "A Pod is admitted unchanged")
		return Pinned{Result: podUnpinned, Warnings: []string{reason.NotPinned.Warning(reason.Values{Text: err.Error()})}}
	}
	owner := pod.Controller()
	text, pinned := pod.Annotations[checksum.PinsAnnotation]
	if owner == nil || !pinned {
		return Pinned{}
	}
	pins, err := checksum.ParsePins(text)
	contents := p.contents(ctx, review, pins)
	found := pinning.Pin(pod.Spec, pins, func(source checksum.Source) *checksum.Content { return contents[source] })
	findings, result := notPinned(found.NotPinned), resultOf(&found)
	if err != nil {
		findings, result = []checksum.Finding{{Reason: reason.NotPinned, Text: err.Error()}}, podUnpinned
	}
	p.report(ctx, review, owner, findings)
	return Pinned{result, patchOf(pod, &found), checksum.Warnings(findings)}
}

// contents reads all snapshots at once. A snapshot that cannot be read in time is missing from the result.
func (p *Pods) contents(ctx context.Context, review *admissionv1.AdmissionRequest, pins checksum.Pins) checksum.Contents {
	contents := make(checksum.Contents, len(pins))
	ask := func(source checksum.Source) (content *checksum.Content) {
		defer func() { // Admit's own does not reach other goroutines
			if value := recover(); value != nil {
				admission.LogOf(ctx, review).Error(nil, "Reading a snapshot panicked; the Pod starts with what its source holds", "panic", panics.What(value), "stack", panics.Where())
				content = nil
			}
		}()
		content, err := p.Archive.Content(ctx, review.Namespace, pins[source].Snapshot, source)
		if err != nil {
			admission.LogOf(ctx, review).Info("A snapshot could not be read; the Pod starts with what its source holds", "source", source.String(), "reason", err.Error())
			return nil
		}
		return content
	}
	var asking sync.WaitGroup
	var mu sync.Mutex
	for source := range pins {
		if len(pins) == 1 {
			contents[source] = ask(source)
			break
		}
		asking.Go(func() {
			content := ask(source)
			mu.Lock()
			defer mu.Unlock()
			contents[source] = content
		})
	}
	asking.Wait()
	return contents
}

// The results of a Pod whose template names snapshots.
const (
	podPinned   = "pinned"
	podPartly   = "partly"
	podUnpinned = "unpinned"
)

func resultOf(found *pinning.Result) string {
	switch {
	case len(found.NotPinned) == 0:
		return podPinned
	case len(found.Pinned) > 0:
		return podPartly
	}
	return podUnpinned
}

// patchOf returns the operations that pin the Pod, and record in an annotation what is pinned.
func patchOf(pod *workload.NewPod, found *pinning.Result) []jsonpatch.Operation {
	patch := make([]jsonpatch.Operation, 0, len(found.Changes)+1)
	for _, change := range found.Changes {
		patch = append(patch, jsonpatch.NewOperation("replace", change.Path, change.Value))
	}
	was, is := map[string]string{}, map[string]string{}
	if text, ok := pod.Annotations[checksum.PinnedAnnotation]; ok {
		was[checksum.PinnedAnnotation] = text
	}
	if len(found.Pinned) > 0 {
		is[checksum.PinnedAnnotation] = checksum.FormatBaseline(found.Pinned)
	}
	return admission.Annotate(patch, "/metadata/annotations", was, is)
}

// notPinned returns the findings for references that could not be pinned, each once.
func notPinned(all []pinning.NotPinned) (findings []checksum.Finding) {
	seen := map[checksum.Finding]bool{}
	for _, one := range all {
		text := reason.UnpinnedLost
		switch one.Why {
		case pinning.NoSnapshot:
		case pinning.OtherUse:
			text = reason.UnpinnedOtherUse
		case pinning.LacksKey:
			text = reason.UnpinnedKey(one.Key)
		case pinning.TooMany:
			text = reason.UnpinnedTooMany
		}
		finding := checksum.Finding{Reason: reason.NotPinned, Source: one.Source, Text: text}
		if !seen[finding] {
			seen[finding] = true
			findings = append(findings, finding)
		}
	}
	return findings
}

// report emits an event on the owner of a Pod for references that could not be pinned, at most once an hour: Pods
// are created by controllers, which read no warnings.
func (p *Pods) report(ctx context.Context, review *admissionv1.AdmissionRequest, owner *metav1.OwnerReference, findings []checksum.Finding) {
	now := time.Now()
	if p.Now != nil {
		now = p.Now()
	}
	if len(findings) == 0 || p.Report == nil || review.DryRun != nil && *review.DryRun || !p.reported.Again(owner.UID, 1, 0, now) {
		return
	}
	if !p.pins(ctx, review, owner) {
		p.reported.Unreported(owner.UID)
		return
	}
	sentences := make([]string, 0, len(findings))
	for _, finding := range findings[:min(len(findings), 3)] {
		sentences = append(sentences, finding.String())
	}
	p.Report(corev1.ObjectReference{
		APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: review.Namespace, Name: owner.Name, UID: owner.UID,
	}, reason.NotPinned, "a new Pod: "+strings.Join(sentences, "; "))
}

// pins reports whether the owner exists, with that UID and with pins in its template: a review may be forged.
func (p *Pods) pins(ctx context.Context, review *admissionv1.AdmissionRequest, owner *metav1.OwnerReference) bool {
	for _, kind := range workload.Builtin() {
		if kind.GroupVersionKind() != schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, StoredWithin)
		defer cancel()
		stored, err := p.Owners.Stored(ctx, kind, review.Namespace, owner.Name)
		if err != nil {
			admission.LogOf(ctx, review).Info("The owner of a Pod could not be read; it is not reported that it is not pinned", "reason", err.Error())
		}
		return err == nil && stored != nil && stored.UID == owner.UID && stored.TemplateAnnotations()[checksum.PinsAnnotation] != ""
	}
	return false
}
