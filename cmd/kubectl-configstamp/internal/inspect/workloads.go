package inspect

import (
	"context"
	"slices"
	"sync"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/workload"
)

// Which says which workloads are asked for.
type Which struct {
	// Namespace is "" for all.
	Namespace string
	// CreateOnly asks for what is stamped at its creation only too: Pods, Jobs,
	// ReplicaSets and ReplicationControllers that no controller owns.
	CreateOnly bool
}

// Workloads reads workloads, sorted by namespace, name and kind. What its owner rolls is
// among them (Owned) where it can be a workload by itself.
func (c *Cluster) Workloads(ctx context.Context, settings *seen.Settings, which Which) ([]*seen.Workload, error) {
	var mu sync.Mutex
	var all []*seen.Workload
	take := func(w *seen.Workload) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, w)
	}
	err := inParallel(ctx, settings.Kinds, func(ctx context.Context, kind *workload.Kind) error {
		q := query{gvr: kind.GroupVersionResource(), namespace: which.Namespace}
		if kind.CreateOnly {
			if !which.CreateOnly {
				return nil
			}
			return c.uncontrolled(ctx, settings, kind, q, take)
		}
		return c.each(ctx, q, func(raw []byte) error {
			w, err := read(settings, kind, raw)
			if err == nil {
				take(w)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *seen.Workload) int { return a.Compare(b.Ref) })
	return all, nil
}

// Unlisted are the kinds of workloads that could not be listed in a namespace ("" for all).
func (c *Cluster) Unlisted(settings *seen.Settings, namespace string) (unlisted []seen.Gap) {
	for _, gap := range c.Gaps() {
		for _, kind := range settings.Kinds.Readmitted() {
			if q := (query{gvr: kind.GroupVersionResource(), namespace: namespace}); q.String() == gap.What {
				unlisted = append(unlisted, gap)
			}
		}
	}
	return unlisted
}

// uncontrolled reads those objects of a kind that no controller owns. Of most kinds nearly
// all are owned, and their metadata is small beside them.
func (c *Cluster) uncontrolled(ctx context.Context, settings *seen.Settings, kind *workload.Kind, q query, take func(*seen.Workload)) error {
	q.metadata = true
	var refs []workload.Ref
	err := c.each(ctx, q, func(raw []byte) error {
		object, err := kind.DecodeMetadata(raw)
		if err != nil {
			return err
		}
		if object.Controller() == nil {
			refs = append(refs, workload.Ref{Kind: kind, Namespace: object.Namespace, Name: object.Name})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return inParallel(ctx, refs, func(ctx context.Context, ref workload.Ref) error {
		w, err := c.Workload(ctx, settings, ref)
		if err == nil && w != nil {
			take(w)
		}
		return err
	})
}

// Workload reads one workload; nil when there is none, or when the user may not read it,
// which is noted.
func (c *Cluster) Workload(ctx context.Context, settings *seen.Settings, ref workload.Ref) (*seen.Workload, error) {
	raw, err := c.one(ctx, query{gvr: ref.Kind.GroupVersionResource(), namespace: ref.Namespace, name: ref.Name})
	if raw == nil || err != nil {
		return nil, err
	}
	return read(settings, ref.Kind, raw)
}

// read reads one object of a kind.
func read(settings *seen.Settings, kind *workload.Kind, raw []byte) (*seen.Workload, error) {
	w := &seen.Workload{}
	object, err := kind.Decode(raw)
	if err != nil {
		w.Fault = err.Error()
		if object, err = kind.DecodeMetadata(raw); err != nil {
			return nil, err
		}
	}
	w.Object = object
	w.Ref = workload.Ref{Kind: kind, Namespace: object.Namespace, Name: object.Name}
	if w.Fault == "" {
		if w.References, err = object.References(); err != nil {
			w.Fault = err.Error()
		}
	}
	w.Records, _ = object.Records() // a baseline that cannot be read counts as none
	w.Foreign = object.Foreign(settings.Dialects)
	w.Owned = object.RolledByOwner(settings.Kinds)
	if w.Status, err = kind.Status(raw); err != nil {
		w.Status = workload.Status{Waits: "its status cannot be read"}
	}
	w.Written, _ = kind.TemplateWritten(raw)
	meta := metadataOf(raw)
	w.Created, w.Writers, w.Paused = meta.Created.UTC(), meta.writers(kind.Template), meta.writer(checksum.PauseAnnotation)
	return w, nil
}
