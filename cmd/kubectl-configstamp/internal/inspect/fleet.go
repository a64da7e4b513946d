package inspect

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/rollout"
)

// Fleet reads all that answers about some workloads need, and asks the webhook about those
// that are served. answered is Ask's.
func (c *Cluster) Fleet(ctx context.Context, settings *seen.Settings, which Which, answered func(done, of int)) (*seen.Fleet, error) {
	f, err := c.Unasked(ctx, settings, which)
	if err == nil {
		c.AskAll(ctx, f, answered)
	}
	return f, err
}

// AskAll asks the webhook about the workloads of a fleet that are served.
func (c *Cluster) AskAll(ctx context.Context, f *seen.Fleet, answered func(done, of int)) {
	f.Outcomes = c.Ask(ctx, servedOf(f), answered)
}

// Unasked is a Fleet of which the webhook was not asked.
func (c *Cluster) Unasked(ctx context.Context, settings *seen.Settings, which Which) (*seen.Fleet, error) {
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
		f.Revisions, err = c.AllRevisions(within, which.Namespace, "", settings.Kinds...)
		return err
	})
	group.Go(func() (err error) { f.Events, err = c.OurEvents(within, which.Namespace); return err })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	f.Workloads = slices.DeleteFunc(f.Workloads, func(w *seen.Workload) bool { return !which.asksFor(f, w) })
	f.Listed = c.listed(settings, which.Namespace)
	c.AskNamespaces(ctx, settings, f.Namespaces, f.Workloads)
	return f, nil
}

// asksFor reports whether a workload of a fleet is asked for, by its sources.
func (which *Which) asksFor(f *seen.Fleet, w *seen.Workload) bool {
	return which.Using == checksum.Source{} || slices.Contains(f.Selected(w), which.Using)
}

// One reads all that answers about one workload need, and asks the webhook about it if it
// is served. Events are all of the workload and of its sources, not configstamp's alone.
func (c *Cluster) One(ctx context.Context, settings *seen.Settings, w *seen.Workload) (*seen.Fleet, error) {
	f := &seen.Fleet{Settings: settings, Workloads: []*seen.Workload{w}, Sources: map[rollout.SourceRef]*seen.Source{}}
	namespaces, err := c.Namespaces(ctx, w.Namespace)
	if err != nil {
		return nil, err
	}
	f.Namespaces = namespaces
	c.AskNamespaces(ctx, settings, f.Namespaces, f.Workloads)
	if w.Foreign != nil && len(w.Foreign.Names) > 0 { // which names are meant depends on which there are
		if err := c.readAll(ctx, f, w); err != nil {
			return nil, err
		}
	}
	named := sourcesOf(f, w)
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error { return c.readSources(within, f, w.Namespace, named) })
	var own, ours []seen.Event
	group.Go(func() (err error) {
		f.Revisions, err = c.AllRevisions(within, w.Namespace, w.Selector, w.Kind)
		return err
	})
	group.Go(func() (err error) { own, err = c.Events(within, w.Namespace, w.Kind.Name, w.Name); return err })
	group.Go(func() (err error) { ours, err = c.OurEvents(within, w.Namespace); return err })
	group.Go(func() error { f.Outcomes = c.Ask(within, servedOf(f), nil); return nil })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	f.Events = own
	for _, event := range ours {
		if event.Kind != w.Kind.Name || event.Name != w.Name {
			f.Events = append(f.Events, event)
		}
	}
	return f, nil
}

// readAll reads the metadata of all sources of a workload's namespace.
func (c *Cluster) readAll(ctx context.Context, f *seen.Fleet, w *seen.Workload) error {
	sources, err := c.Sources(ctx, f.Settings, w.Namespace)
	for _, source := range sources {
		f.Sources[rollout.SourceRef{Namespace: source.Namespace, Source: source.Source}] = source
	}
	return err
}

// readSources reads the metadata of some sources.
func (c *Cluster) readSources(ctx context.Context, f *seen.Fleet, namespace string, sources []checksum.Source) error {
	found := make([]*seen.Source, len(sources))
	at := map[checksum.Source]int{}
	for i, source := range sources {
		at[source] = i
	}
	err := inParallel(ctx, sources, func(ctx context.Context, source checksum.Source) (err error) {
		found[at[source]], err = c.Source(ctx, namespace, source)
		return err
	})
	for i, source := range sources {
		if found[i] != nil {
			f.Sources[rollout.SourceRef{Namespace: namespace, Source: source}] = found[i]
		}
	}
	return err
}

// sourcesOf are all sources that a workload names, or carries a stamp of, each once.
func sourcesOf(f *seen.Fleet, w *seen.Workload) []checksum.Source {
	var sources []checksum.Source
	known := map[checksum.Source]bool{}
	add := func(source checksum.Source) {
		if !known[source] && source.Nameable() {
			known[source] = true
			sources = append(sources, source)
		}
	}
	for _, selection := range checksum.Selections(w.References, f.Policy(w)) {
		add(selection.Source)
	}
	for key := range w.Records.Stamps {
		if source, whole := checksum.StampedSource(key); whole {
			add(source)
		}
	}
	return sources
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
