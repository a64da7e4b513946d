package controller

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller/internal/waiting"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// actionReadmit is the action of our events.
const actionReadmit = "Readmit"

// Recorder takes events. Its method is that of client-go's events.EventRecorder.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any)
}

// tell puts something into an event, in words. They never hold content or digests.
func (c *Controller) tell(regarding *corev1.ObjectReference, related runtime.Object, why reason.Reason, text string) {
	c.recorder.Eventf(regarding, related, why.EventType(), why.Event(), actionReadmit, "%s", text)
}

// say tells something about the workload, at its version. It names the sources, because our
// event queue and kubectl fold two events of one reason about one thing into one. told
// prevents that an event is repeated.
func (l *look) say(why reason.Reason, text string, about ...checksum.Source) {
	l.sayAbout(why, text, list(about), about...)
}

func (l *look) sayAbout(why reason.Reason, text, about string, sources ...checksum.Source) {
	var related runtime.Object // a nil pointer would not be nil
	if len(sources) == 1 {
		related = referenceTo(rollout.SourceRef{Namespace: l.ref.Namespace, Source: sources[0]})
	}
	l.tell(&corev1.ObjectReference{
		APIVersion:      l.ref.Kind.GroupVersionKind().GroupVersion().String(),
		Kind:            l.ref.Kind.Name,
		Namespace:       l.ref.Namespace,
		Name:            l.ref.Name,
		UID:             l.s.UID,
		ResourceVersion: l.s.ResourceVersion,
		FieldPath:       about,
	}, related, why, text)
}

// sayOnce tells something about the workload, once for each text.
func (l *look) sayOnce(why reason.Reason, text string, about ...checksum.Source) {
	if l.told.First(waiting.Of(l.ref), why, text) {
		l.say(why, text, about...)
	}
}

// onSource emits an event about a source, as it is now, or about a Namespace. The writer of events
// completes its metadata.uid.
func (c *Controller) onSource(at rollout.SourceRef, why reason.Reason, text, about string) {
	regarding := referenceTo(at)
	if at.Source != (checksum.Source{}) {
		regarding.ResourceVersion, regarding.FieldPath = c.sources.Version(at.Namespace, at.Source), about
	}
	c.tell(regarding, nil, why, text)
}

// referenceTo is how an event names a source, or a Namespace: in itself, where its users can read it.
func referenceTo(at rollout.SourceRef) *corev1.ObjectReference {
	if at.Source == (checksum.Source{}) {
		return &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: at.Namespace, Name: at.Namespace}
	}
	reference := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: at.Namespace, Name: at.Source.Name}
	switch at.Source.Kind {
	case checksum.Secret:
		reference.Kind = "Secret"
	case checksum.SecretProviderClass:
		reference.APIVersion, reference.Kind = "secrets-store.csi.x-k8s.io/v1", "SecretProviderClass"
	case checksum.ConfigMap:
	}
	return reference
}

func (l *look) sayRolling(sources []checksum.Source, adopted bool) {
	why, what := changed(sources), "rolling out"
	if adopted {
		why = "no checksums were recorded for " + list(sources) + ", and configstamp.dev/adopt is restart"
	}
	switch {
	case !l.ref.Kind.Restarts:
		what = "later runs start with it"
	case l.s.Status.Waits != "":
		what = "stamped, but no pod restarts: " + l.s.Status.Waits
	}
	l.say(reason.ConfigChanged, why+": "+what, sources...)
}

// sayRecorded tells of sources that are recorded for the first time, of those of them
// that pods may have older content of, and of those whose record could not be compared.
func (l *look) sayRecorded(adopted, stale, lost []checksum.Source) {
	if len(adopted) > 0 {
		when := "this workload rolls out when " + one(adopted, "it changes", "they change")
		if !l.ref.Kind.Restarts {
			when = "later runs are stamped again when " + one(adopted, "it changes", "they change")
		}
		l.say(reason.Recorded, list(adopted)+one(adopted, " is recorded as it is", " are recorded as they are")+" now: "+when, adopted...)
	}
	if len(stale) > 0 {
		l.say(reason.ConfigMaybeStale, fmt.Sprintf("%s %s edited after the newest revision of this %s: its pods may run older content; "+
			"kubectl rollout restart makes them read the new content", list(stale), one(stale, "was", "were"), l.ref.Kind.Name), stale...)
	}
	if len(lost) > 0 {
		l.say(reason.LostRecord, fmt.Sprintf("the recorded checksum of %s can no longer be compared (its digest key is lost, or other keys of the source count now): "+
			"the present content is recorded, and nothing restarts; whether it changed in the meantime is unknown. If this repeats, two installations of configstamp serve this namespace: "+
			"their namespaces must be disjoint, by namespaces or excludedNamespaces", list(lost)), lost...)
	}
}

// patience is how many tries of one workload fail before people are told: some
// 25 seconds, in which a webhook that restarts is back.
const patience = 8

// reportFailure warns of a workload that keeps failing, once for each reason.
func (c *Controller) reportFailure(ref workload.Ref, err error) {
	s := c.index.Get(ref)
	if s == nil || refusal.OptedOut(err) || c.queue.NumRequeues(ref)+1 < patience {
		return // nothing is told of a workload that has opted out
	}
	text := err.Error()
	var lost *url.Error
	switch status := refusal.StatusOf(err); {
	case status.Code != 0 || status.Status != "":
		if text = refusal.Words(&status); refused(err) {
			text += fmt.Sprintf(". The whole answer: kubectl --namespace %s patch %s %s --field-manager=configstamp --type=merge --patch={} --dry-run=server",
				ref.Namespace, ref.Kind, ref.Name)
		}
	case errors.As(err, &lost): // the words of each have the number of a port, or of a stream
		text = "the API server does not answer"
	}
	(&look{Controller: c, ref: ref, s: s}).sayOnce(reason.Retry, "re-admission keeps failing, and configstamp keeps trying: "+text)
}

// one is a word about sources: of one, or of several.
func one(sources []checksum.Source, single, several string) string {
	if len(sources) > 1 {
		return several
	}
	return single
}

func changed(sources []checksum.Source) string { return list(sources) + " changed" }

// list names sources for people.
func list(sources []checksum.Source) string {
	names := make([]string, len(sources))
	for i, source := range sources {
		names[i] = source.String()
	}
	return joined(names)
}

// joined is names for people, not too many: a, b and c.
func joined(all []string) string {
	const named = 5
	names := slices.Clone(all)
	if len(names) > named {
		names = append(names[:named], fmt.Sprintf("%d more", len(all)-named))
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}
