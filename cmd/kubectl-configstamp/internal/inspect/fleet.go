package inspect

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/rollout"
)

// Fleet reads all that answers about some workloads need, and asks the webhook about those
// that are served. answered is Ask's.
func (c *Cluster) Fleet(ctx context.Context, settings *seen.Settings, which Which, answered func(done, of int)) (*seen.Fleet, error) {
	f := &seen.Fleet{Settings: settings, Sources: map[rollout.SourceRef]*seen.Source{}}
	group, within := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		if which.Namespace == "" {
			f.Namespaces, err = c.Namespaces(within)
			return err
		}
		f.Namespaces, err = c.Namespaces(within, which.Namespace)
		return err
	})
	group.Go(func() (err error) { f.Workloads, err = c.Workloads(within, settings, which); return err })
	group.Go(func() error {
		sources, err := c.Sources(within, settings, which.Namespace)
		for _, source := range sources {
			f.Sources[rollout.SourceRef{Namespace: source.Namespace, Source: source.Source}] = source
		}
		return err
	})
	group.Go(func() (err error) {
		f.Stamped, err = c.stamped(within, which.Namespace, settings.Kinds)
		return err
	})
	group.Go(func() (err error) { f.Events, err = c.OurEvents(within, which.Namespace); return err })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	f.Listed = c.listed(settings, which.Namespace)
	c.AskNamespaces(ctx, settings, f.Namespaces, f.Workloads)
	f.Outcomes = c.Ask(ctx, servedOf(f), answered)
	return f, nil
}

// servedOf are the workloads of a fleet that are served, or may be.
func servedOf(f *seen.Fleet) []*seen.Workload {
	var served []*seen.Workload
	for _, w := range f.Workloads {
		if standing, _ := f.Serves(w); standing != seen.NotServed {
			served = append(served, w)
		}
	}
	return served
}
