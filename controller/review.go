package controller

import (
	"context"
	"errors"
	"slices"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

var errNoKey = errors.New("there is no digest key yet")

// serves reports whether a workload is served.
func (c *Controller) serves(ref workload.Ref, s *Workload) bool {
	served, _ := c.served(ref, s)
	return served
}

// served is serves, with the reason why not.
func (c *Controller) served(ref workload.Ref, s *Workload) (served bool, why reason.Reason) {
	namespace := c.namespaces.Get(ref.Namespace)
	return checksum.Served(checksum.Candidate{
		Inject: s.Inject, Foreign: s.Foreign, Owned: s.Owned,
		Ending:   s.Deleting || namespace.Ending,
		Excluded: slices.Contains(c.options.Excluded, ref.Namespace),
	}, namespace)
}

// review is the state of a workload's references under its policy.
type review struct {
	checksum.Review
	policy checksum.Policy
}

// rests reports whether nothing is due, and no setting is to be fixed.
func (r *review) rests() bool {
	return len(r.Untrue) == 0 && !r.Records() && len(r.Faults) == 0 && len(r.policy.Faults) == 0
}

// policy is what counts for a workload, and what holds it.
func (c *Controller) policy(ref workload.Ref, s *Workload) checksum.Policy {
	return c.options.Policy.With(
		checksum.Level{Origin: checksum.OfWorkload, Annotations: s.Settings},
		checksum.Level{Origin: checksum.OfNamespace, Annotations: c.namespaces.Get(ref.Namespace).Settings},
	).Translated(s.Foreign, func(kind checksum.Kind) []string { return c.sources.Names(ref.Namespace, kind) })
}

// PolicyOf is what counts for the first of some workloads that there is; false when there is
// none, or it is not served.
func (c *Controller) PolicyOf(some []workload.Ref) (policy checksum.Policy, served bool) {
	for _, ref := range some {
		if ref, s := c.index.Find(ref); s != nil {
			return c.policy(ref, s), c.serves(ref, s)
		}
	}
	return policy, false
}

// concern gives the sources that concern a workload: by its policy, and those that
// it carries stamps of, as it may have failed with them; none when that panics, as the
// next look at it will tell.
func (c *Controller) concern(ref workload.Ref, s *Workload) (sources []checksum.Source) {
	defer c.caught(klog.Background(), inWatch, "Finding the sources of a workload panicked", func() { sources = nil }, "workload", ref)
	for _, selection := range checksum.Selections(s.References, c.policy(ref, s)) {
		sources = append(sources, selection.Source)
	}
	for key := range s.Records.Stamps {
		if source, ok := checksum.StampedSource(key); ok {
			sources = append(sources, source)
		}
	}
	slices.SortFunc(sources, checksum.Source.Compare)
	return slices.Clone(slices.Compact(sources)) // without room to grow, as it is kept
}

// mostAsked is how many keys, and how many Secrets, that memory lacks a look asks the API server
// for. Whoever may write a workload may name thousands.
const mostAsked = 16

// reviewOf compares what is on record with what the sources hold, by memory; it asks for little that lacks.
func (c *Controller) reviewOf(ctx context.Context, ref workload.Ref, s *Workload) (review, error) {
	ring := c.keys.Ring()
	if ring == nil {
		return review{}, errNoKey
	}
	policy := c.policy(ref, s)
	selections := checksum.Selections(s.References, policy)
	var asked []string
	for i := range selections {
		value, _ := s.Records.Of(selections[i].Source)
		if id, unknown := ring.UnknownKey(value); unknown && len(asked) < mostAsked && !slices.Contains(asked, id) {
			asked = append(asked, id)
			if _, err := c.keys.Refresh(ctx, id); err != nil {
				return review{}, err
			}
			if ring = c.keys.Ring(); ring == nil {
				return review{}, errNoKey
			}
		}
	}
	c.confirm(ctx, ref, selections, s.Records)
	return review{policy: policy, Review: c.compare(ring, ref, &policy, selections, s.Records)}, nil
}

// compare compares what is on record of some selections with what their sources hold, by memory.
func (c *Controller) compare(ring *checksum.Ring, ref workload.Ref, policy *checksum.Policy, selections []checksum.Selection, held checksum.Records) checksum.Review {
	contentOf := func(source checksum.Source) *checksum.Content { return c.sources.Content(ref.Namespace, source) }
	found := ring.Review(ref.Namespace, policy, selections, held, contentOf)
	if c.options.SnapshotOf != nil {
		found.Untrue = append(found.Untrue, ring.Misled(ref.Namespace, selections, held, contentOf, func(of checksum.Source, name string) *checksum.Content {
			return c.options.SnapshotOf(ref.Namespace, name, of)
		})...)
	}
	return found
}

// confirm asks for Secrets that memory lacks, and that are not on record as absent: what is missing holds
// a workload, and Helm's releases are not watched. Where that fails memory is believed, as before.
func (c *Controller) confirm(ctx context.Context, ref workload.Ref, selections []checksum.Selection, held checksum.Records) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	asked := 0
	for i := range selections {
		source := selections[i].Source
		if value, _ := held.Of(source); source.Kind != checksum.Secret || value == checksum.Absent || c.sources.Content(ref.Namespace, source) != nil {
			continue
		}
		if asked++; asked > mostAsked {
			return
		}
		if err := c.sources.Confirm(ctx, ref.Namespace, source); err != nil {
			klog.FromContext(ctx).V(1).Info("Could not determine whether a Secret is missing", "workload", ref.String(), "source", source.String(), "reason", err.Error())
		}
	}
}
