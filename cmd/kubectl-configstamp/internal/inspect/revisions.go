package inspect

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// stamped reads of which workloads of a namespace ("" for all) some revision has stamps, by their UIDs.
func (c *Cluster) stamped(ctx context.Context, namespace string, kinds workload.Table) (map[types.UID]bool, error) {
	of := map[types.UID]bool{}
	for _, resource := range revisionsOf(kinds) {
		err := c.each(ctx, query{gvr: v1("apps", resource), namespace: namespace}, func(raw []byte) error {
			revision, err := workload.DecodeRevision(raw)
			if err == nil && len(checksum.Stamps(revision.Template.Metadata.Annotations)) > 0 {
				of[revision.Owner] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return of, nil
}

// revisionsOf are the resources in which revisions of some kinds are kept.
func revisionsOf(kinds workload.Table) []string {
	var resources []string
	for _, kind := range kinds {
		if kept := kind.RevisionResource(); kept != "" {
			resources = append(resources, kept)
		}
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}
