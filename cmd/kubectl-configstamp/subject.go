package main

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// subject is the workload that a command asks about.
type subject struct {
	*target
	// made is what was named instead, such as a pod that the workload made; nil if nothing was.
	made *target
	// read is the workload as the rules read it, and status how far its own controller has rolled it out.
	read   *workload.Object
	status workload.Status
	policy checksum.Policy
	// references are the places of its template that name sources.
	references []checksum.Reference
	// selector finds its pods and revisions, "" for kinds that have none.
	selector string
	records  checksum.Records
	// maybe says that only a flag of the webhook could have it served.
	maybe bool
	// sources are those that count for it, or of which it has a record, sorted.
	sources []checksum.Source
}

// mostOwners bounds how many controllers stand one above the other: a Pod, a Job, a CronJob, and one more.
const mostOwners = 4

// subject reads the workload that args name. A pod, and whatever else a workload has made, stands for that workload.
func (o *task) subject(args []string) (*subject, error) {
	named, err := o.named(o.settings.Kinds, o.namespace, args)
	if err != nil {
		return nil, err
	}
	t := named
	for range mostOwners {
		owner, err := o.ownerOf(t)
		if err != nil {
			return nil, err
		}
		if owner == nil {
			break
		}
		t = owner
	}
	s, err := o.subjectOf(t, checksum.Source{})
	if err == nil && t != named {
		s.made = named
	}
	return s, err
}

// ownerOf reads the workload that controls an object, nil if none of a known kind does.
func (o *task) ownerOf(t *target) (*target, error) {
	ref := metav1.GetControllerOf(t.object())
	if ref == nil {
		return nil, nil
	}
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, nil //nolint:nilerr // no kind of ours
	}
	i := slices.IndexFunc(o.settings.Kinds, func(kind *workload.Kind) bool { return kind.Name == ref.Kind && kind.Group == group.Group })
	if i < 0 {
		return nil, nil
	}
	kind := o.settings.Kinds[i]
	owner, err := o.read(t.Namespace, typeOf(kind), ref.Name)
	if err != nil {
		return nil, fmt.Errorf("reading what made %s: %w", t.place(), err)
	}
	if owner.object().GetUID() != ref.UID {
		return nil, nil
	}
	owner.kind = kind
	return owner, nil
}

// subjectOf completes a workload. source is one that exists, for settings that name sources by patterns.
func (o *task) subjectOf(t *target, source checksum.Source) (*subject, error) {
	s := &subject{target: t}
	object, raw, err := t.decode()
	if err != nil {
		return nil, err
	}
	if s.references, err = object.References(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.place(), err)
	}
	s.read = object
	if s.status, err = t.kind.Status(raw); err != nil {
		s.status = workload.Status{Waits: "its status cannot be read"}
	}
	s.selector, _ = t.kind.Selector(raw)
	s.policy = o.policyOf(object, source)
	s.records, _ = object.Records() // a baseline that cannot be read counts as none
	for _, selection := range checksum.Selections(s.references, s.policy) {
		if !selection.HoldOnly {
			s.sources = append(s.sources, selection.Source)
		}
	}
	for annotation := range s.records.Stamps {
		if source, whole := checksum.StampedSource(annotation); whole {
			s.sources = append(s.sources, source)
		}
	}
	for source := range s.records.Baseline {
		s.sources = append(s.sources, source)
	}
	slices.SortFunc(s.sources, checksum.Source.Compare)
	s.sources = slices.Compact(s.sources)
	return s, nil
}

// ref names the workload.
func (s *subject) ref() workload.Ref {
	return workload.Ref{Kind: s.kind, Namespace: s.Namespace, Name: s.Name}
}

// name names the workload as reports do.
func (s *subject) name() string { return s.ref().Text() }

// hold returns the setting that holds the workload at some time, beside its turn, and where it stands; "" if none does.
func (s *subject) hold(now time.Time) string {
	hold, held := s.policy.HoldAt(now, s.status.Current)
	if !held {
		return ""
	}
	text := "configstamp.dev/" + hold.Reason.String()
	if origin, _ := s.policy.OriginOf(hold.Reason.String()); origin == checksum.OfNamespace {
		text += " (on the Namespace)"
	} else if origin == checksum.OfFlag {
		text += " (a flag of the cluster)"
	}
	if !hold.Until.IsZero() {
		text += " until " + at(hold.Until)
	}
	return text
}

// progress says how far the workload's own controller is, "" if that is not known.
func (s *subject) progress() string {
	pods := fmt.Sprintf("%d of %d pods are new, %d are available", s.status.Updated, s.status.Wanted, s.status.Available)
	switch s.status.Phase {
	case workload.RolledOut:
		return "rolled out: " + pods
	case workload.Rolling:
		return "rolling: " + pods
	case workload.Suspended:
		return "paused by its own strategy: " + pods
	case workload.Failed:
		return "failed (" + s.status.Why + "): " + pods
	case workload.Unreported:
	}
	return s.status.Waits
}
