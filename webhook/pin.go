package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/panics"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/watchdog"
	"github.com/configstamp/configstamp/internal/workload"
	"github.com/configstamp/configstamp/webhook/internal/pinning"
)

// PodPath is where the API server calls for Pods that are created.
const PodPath = "/pods"

// Archive gives what snapshots hold.
type Archive interface {
	// Content is what a snapshot holds that is ours, nil when there is none.
	Content(ctx context.Context, namespace, name string, of checksum.Source) (*checksum.Content, error)
}

// Pods gives Pods that are about to be created the content that their template was stamped
// with. It asks nobody but the archive, and what it cannot pin starts with what is there.
// Its fields do not change while it serves.
type Pods struct {
	Archive Archive
	Metrics *PodMetrics
	// Serves is Handler's.
	Serves func(namespace string) bool
	// Announce hears of references that could not be pinned; nil: nobody does.
	Announce Announcer
	// Owners are asked for before Announce is told of one.
	Owners Stored
	// Now is the clock; nil is the real one.
	Now func() time.Time

	underWay watchdog.Work
	told     rarely
	bodies   bodies
}

// ServeHTTP implements the admission protocol, as Handler's does.
func (p *Pods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serve(w, r, &p.bodies, p.Metrics.refused, p.Admit)
}

// Admit answers one request. It never denies.
func (p *Pods) Admit(ctx context.Context, request *admissionv1.AdmissionRequest) (response *admissionv1.AdmissionResponse) {
	start := time.Now()
	defer p.underWay.Begin(start)()
	var result string
	defer func() {
		if value := recover(); value != nil {
			logOf(ctx, request).Error(nil, "Pinning panicked; the Pod is admitted unchanged", "panic", panics.What(value), "stack", panics.Where())
			result, response = podUnpinned, allow(request, podUnpinned, nil, []string{reason.Panicked.Warning(reason.Values{})})
		}
		if result != "" {
			p.Metrics.answered(result, time.Since(start))
		}
	}()
	response, result = p.admit(ctx, request)
	return response
}

// Healthy says why the process should be started anew, nil when that would not help.
func (p *Pods) Healthy(now time.Time) error { return hanging(&p.underWay, now) }

// admit gives the answer, and the result to count, "" for none.
func (p *Pods) admit(ctx context.Context, request *admissionv1.AdmissionRequest) (response *admissionv1.AdmissionResponse, result string) {
	isPod := request.Resource.Group == "" && request.Resource.Resource == "pods" && request.SubResource == ""
	if !isPod || request.Operation != admissionv1.Create || p.Serves != nil && !p.Serves(request.Namespace) {
		return allow(request, reason.NotServed.Label(), nil, nil), ""
	}
	pod, err := workload.DecodeNewPod(request.Object.Raw)
	if err != nil {
		logOf(ctx, request).Error(err, "A Pod is admitted unchanged")
		return allow(request, podUnpinned, nil, []string{reason.NotPinned.Warning(reason.Values{Text: err.Error()})}), podUnpinned
	}
	owner := pod.Controller()
	text, pinned := pod.Annotations[checksum.PinsAnnotation]
	if owner == nil || !pinned {
		return allow(request, reason.NotServed.Label(), nil, nil), ""
	}
	pins, err := checksum.ParsePins(text)
	contents := p.contents(ctx, request, pins)
	found := pinning.Pin(pod.Spec, pins, func(source checksum.Source) *checksum.Content { return contents[source] })
	findings := notPinned(found.NotPinned)
	result = resultOf(&found)
	if err != nil {
		findings, result = []checksum.Finding{{Reason: reason.NotPinned, Text: err.Error()}}, podUnpinned
	}
	p.tell(ctx, request, owner, findings)
	return allow(request, result, patchOf(pod, &found), said(findings)), result
}

// contents asks for what all snapshots hold at once. What cannot be told in time is none.
func (p *Pods) contents(ctx context.Context, request *admissionv1.AdmissionRequest, pins checksum.Pins) checksum.Contents {
	contents := make(checksum.Contents, len(pins))
	ask := func(source checksum.Source) (content *checksum.Content) {
		defer func() { // Admit's own does not reach other goroutines
			if value := recover(); value != nil {
				logOf(ctx, request).Error(nil, "Reading a snapshot panicked; the Pod starts with what its source holds", "panic", panics.What(value), "stack", panics.Where())
				content = nil
			}
		}()
		content, err := p.Archive.Content(ctx, request.Namespace, pins[source].Snapshot, source)
		if err != nil {
			logOf(ctx, request).Info("A snapshot could not be read; the Pod starts with what its source holds", "source", source.String(), "reason", err.Error())
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

// What comes of a Pod that names snapshots.
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

// patchOf are the operations that pin, and that say on the Pod what is pinned.
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
	return annotate(patch, "/metadata/annotations", was, is)
}

// notPinned are the findings of what could not be pinned, each told once.
func notPinned(all []pinning.NotPinned) (findings []checksum.Finding) {
	told := map[checksum.Finding]bool{}
	for _, one := range all {
		text := "its snapshot is gone, is not ours, or could not be read in time"
		switch one.Why {
		case pinning.NoSnapshot:
		case pinning.OtherUse:
			text = "a container mounts a volume that serves another use, too"
		case pinning.LacksKey:
			text = fmt.Sprintf("a container names key %q, which its snapshot lacks", one.Key)
		case pinning.TooMany:
			text = "containers read ConfigMaps in more than 100,000 places: mount volumes of many sources less often"
		}
		finding := checksum.Finding{Reason: reason.NotPinned, Source: one.Source, Text: text}
		if !told[finding] {
			told[finding] = true
			findings = append(findings, finding)
		}
	}
	return findings
}

// tell says on a Pod's owner what could not be pinned, now and then: who creates the Pod is
// a controller, which reads no warnings.
func (p *Pods) tell(ctx context.Context, request *admissionv1.AdmissionRequest, owner *metav1.OwnerReference, findings []checksum.Finding) {
	now := time.Now()
	if p.Now != nil {
		now = p.Now()
	}
	if len(findings) == 0 || p.Announce == nil || isDryRun(request) || !p.told.again(owner.UID, 1, 0, now) || !p.pins(ctx, request, owner) {
		return
	}
	sentences := make([]string, 0, len(findings))
	for _, finding := range findings[:min(len(findings), 3)] {
		sentences = append(sentences, finding.String())
	}
	p.Announce(corev1.ObjectReference{
		APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: request.Namespace, Name: owner.Name, UID: owner.UID,
	}, reason.NotPinned, "a new Pod: "+strings.Join(sentences, "; "))
}

// pins reports whether there is an owner of that uid whose template has pins: a review may
// be invented.
func (p *Pods) pins(ctx context.Context, request *admissionv1.AdmissionRequest, owner *metav1.OwnerReference) bool {
	for _, kind := range workload.Builtin() {
		if kind.GroupVersionKind() != schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, storedWithin)
		defer cancel()
		stored, err := p.Owners.Stored(ctx, kind, request.Namespace, owner.Name)
		if err != nil {
			logOf(ctx, request).Info("The owner of a Pod could not be read; nobody is told that it is not pinned", "reason", err.Error())
		}
		return err == nil && stored != nil && stored.UID == owner.UID && stored.TemplateAnnotations()[checksum.PinsAnnotation] != ""
	}
	return false
}
