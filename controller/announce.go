package controller

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// actionReadmit is the action of our events.
const actionReadmit = "Readmit"

// announcer puts what happens into events, in words. They never hold content or
// digests.
type announcer struct{ recorder events.EventRecorder }

func (a announcer) rolling(user workload.Ref, s *subject, sources []checksum.Source, adopted bool) {
	why := changed(sources)
	if adopted {
		why = "found without checksums of " + list(sources) + ", and adopt is restart"
	}
	what := "rolling out"
	switch {
	case !user.Kind.Restarts:
		what = "later runs start with it"
	case s.status.Waits != "":
		what = "stamped, and no pod restarts by it: " + s.status.Waits
	}
	a.event(user, s, checksum.ConfigChanged, why+": "+what, sources...)
}

func (a announcer) recorded(user workload.Ref, s *subject, sources []checksum.Source) {
	what, when := " recorded as it is now: ", "the workload rolls out when that changes"
	if len(sources) > 1 {
		what = " recorded as they are now: "
	}
	if !user.Kind.Restarts {
		when = "later runs are stamped when that changes"
	}
	a.event(user, s, checksum.Recorded, list(sources)+what+when, sources...)
}

func (a announcer) stale(user workload.Ref, s *subject, sources []checksum.Source) {
	a.event(user, s, checksum.ConfigMaybeStale, fmt.Sprintf("%s was edited after the newest revision of this %s: its pods may run older content; "+
		"kubectl rollout restart makes them read it", list(sources), user.Kind.Name), sources...)
}

func (a announcer) lost(user workload.Ref, s *subject, sources []checksum.Source) {
	a.event(user, s, checksum.LostRecord, fmt.Sprintf("the recorded checksum of %s cannot be compared any more (its key is lost, or other keys count now): "+
		"recorded anew as it is now, nothing restarts; a change that came meanwhile is not known", list(sources)), sources...)
}

// event tells something about a workload, at its version, and names the sources
// that it is about: those who fold events, as our queue does and kubectl, take two
// of one reason about one thing for the same one. Repeating oneself is for notes to
// prevent.
func (a announcer) event(user workload.Ref, s *subject, why checksum.Reason, text string, about ...checksum.Source) {
	a.eventAbout(user, s, why, text, list(about), about...)
}

func (a announcer) eventAbout(user workload.Ref, s *subject, why checksum.Reason, text, about string, sources ...checksum.Source) {
	regarding := &corev1.ObjectReference{
		APIVersion:      user.Kind.GroupVersionKind().GroupVersion().String(),
		Kind:            user.Kind.Name,
		Namespace:       user.Namespace,
		Name:            user.Name,
		UID:             s.uid,
		ResourceVersion: s.resourceVersion,
		FieldPath:       about,
	}
	var related runtime.Object // a nil pointer would not be nil
	if len(sources) == 1 {
		related = referenceTo(rollout.SourceRef{Namespace: user.Namespace, Source: sources[0]})
	}
	a.recorder.Eventf(regarding, related, why.EventType(), why.Event(), actionReadmit, "%s", text)
}

// referenceTo is how an event names a source.
func referenceTo(at rollout.SourceRef) *corev1.ObjectReference {
	apiVersion, kind := objectKind(at.Source.Kind)
	return &corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: at.Namespace, Name: at.Source.Name}
}

// sayOnce tells something about a workload, once for each text.
func (c *Controller) sayOnce(user workload.Ref, s *subject, why checksum.Reason, text string, about ...checksum.Source) {
	if c.notes.first(user, why, text) {
		c.say.event(user, s, why, text, about...)
	}
}

// patience is how many tries of one workload fail before people are told: some
// 25 seconds, in which a webhook that restarts is back.
const patience = 8

// reportFailure warns of a workload that keeps failing, once for each reason.
func (c *Controller) reportFailure(user workload.Ref, err error) {
	s := c.index.get(user)
	if s == nil || optedOut(err) || c.queue.NumRequeues(user)+1 < patience {
		return // who has opted out is told nothing
	}
	text := err.Error()
	var answer apierrors.APIStatus
	var lost *url.Error
	switch {
	case errors.As(err, &answer):
		status := answer.Status()
		if text = refusal.Words(&status); refused(err) {
			text += fmt.Sprintf(". The whole answer: kubectl --namespace %s patch %s %s --field-manager=configstamp --type=merge --patch={} --dry-run=server",
				user.Namespace, user.Kind, user.Name)
		}
	case errors.As(err, &lost): // the words of each have the number of a port, or of a stream
		text = "the API server does not answer"
	}
	c.sayOnce(user, s, checksum.Retry, "re-admission keeps failing, and is tried again for ever: "+text)
}

// onSource tells something about a source. That nobody can tell which version of it
// is meant, is no matter: what is about it is told once.
func (c *Controller) onSource(ctx context.Context, at rollout.SourceRef, why checksum.Reason, text, about string) {
	regarding := referenceTo(at)
	uid, err := c.api.sourceUID(ctx, at)
	if err != nil { // kubectl get events shows it all the same
		klog.FromContext(ctx).V(1).Info("Telling of a source without its uid", "source", at.Source.String(), "namespace", at.Namespace, "reason", err.Error())
	}
	regarding.UID, regarding.ResourceVersion, regarding.FieldPath = uid, c.sources.Version(at.Namespace, at.Source), about
	c.say.recorder.Eventf(regarding, nil, why.EventType(), why.Event(), actionReadmit, "%s", text)
}

// objectKind is how objects write what kind a source is of.
func objectKind(kind checksum.Kind) (apiVersion, name string) {
	switch kind {
	case checksum.Secret:
		return "v1", "Secret"
	case checksum.SecretProviderClass:
		return "secrets-store.csi.x-k8s.io/v1", "SecretProviderClass"
	case checksum.ConfigMap:
	}
	return "v1", "ConfigMap"
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
