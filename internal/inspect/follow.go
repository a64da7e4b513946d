package inspect

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/workload"
)

const (
	// gatherFor is how long changes are gathered before the webhook is asked again, so
	// that several make one round of questions.
	gatherFor = 500 * time.Millisecond
	// againAfter is how long to wait before a watch that has ended is begun again.
	againAfter = time.Second
)

// news is one event of a watch.
type news struct {
	kind    *workload.Kind // of a workload
	source  checksum.Kind  // of a source
	event   bool           // one of configstamp's own events
	deleted bool
	object  []byte
	again   bool // nothing but that a watch was begun again, and may have missed something
}

// Follow keeps a fleet up to date until ctx ends. It watches the workloads, the metadata of
// the sources, and configstamp's events, and asks the webhook again only about the
// workloads that an event touched: the workload itself, or the users of a source. changed
// is called after each round that changed something, from one goroutine; it must not keep
// the fleet. What may not be watched is noted, and not followed.
func (c *Cluster) Follow(ctx context.Context, fleet *seen.Fleet, which Which, changed func(*seen.Fleet)) {
	all := make(chan news)
	var group sync.WaitGroup
	watch := func(q query, of news) {
		group.Go(func() { c.watch(ctx, q, of, all) })
	}
	for _, kind := range fleet.Settings.Kinds.Readmitted() {
		q := query{gvr: kind.GroupVersionResource(), namespace: which.Namespace, labels: which.Selector}
		if which.Only != (workload.Ref{}) {
			if kind != which.Only.Kind {
				continue
			}
			q.fields = "metadata.name=" + which.Only.Name
		}
		watch(q, news{kind: kind})
	}
	for _, kind := range checksum.Kinds() {
		if fleet.Settings.Policy.Serves(kind) {
			watch(query{gvr: SourceResource(kind), namespace: which.Namespace, metadata: true}, news{source: kind})
		}
	}
	watch(query{gvr: v1("", "events"), namespace: which.Namespace, fields: "reportingComponent=" + Reporter}, news{event: true})
	go func() {
		group.Wait()
		close(all)
	}()
	for batch := range gathered(all) {
		if slices.ContainsFunc(batch, func(one news) bool { return one.again }) {
			if fresh, err := c.readAgain(ctx, fleet, which); err == nil { // else the next watch begins again soon
				*fleet = *fresh
				changed(fleet)
			}
			continue
		}
		if touched, news := c.take(fleet, &which, batch); news {
			c.askAgain(ctx, fleet, touched)
			changed(fleet)
		}
	}
}

// readAgain reads a fleet anew.
func (c *Cluster) readAgain(ctx context.Context, fleet *seen.Fleet, which Which) (*seen.Fleet, error) {
	if which.Only.Kind == nil {
		return c.Fleet(ctx, fleet.Settings, which, nil)
	}
	w, err := c.Workload(ctx, fleet.Settings, which.Only)
	if err != nil || w == nil {
		return &seen.Fleet{Settings: fleet.Settings, Namespaces: fleet.Namespaces}, err
	}
	return c.One(ctx, fleet.Settings, w)
}

// gathered hands on what comes, as soon as nothing has come for gatherFor.
func gathered(all <-chan news) <-chan []news {
	batches := make(chan []news)
	go func() {
		defer close(batches)
		var batch []news
		var quiet <-chan time.Time
		for {
			select {
			case one, open := <-all:
				if !open {
					return
				}
				batch = append(batch, one)
				if quiet == nil { // from the first on, so that what changes all the time is shown too
					quiet = time.After(gatherFor)
				}
			case <-quiet:
				batches <- batch
				batch, quiet = nil, nil
			}
		}
	}()
	return batches
}

// watch sends what happens to the objects of a query, those that there are first, until
// ctx ends, or until the user turns out to have no right to.
func (c *Cluster) watch(ctx context.Context, q query, of news, to chan<- news) {
	for first := true; ctx.Err() == nil; first = false {
		if !first {
			of.again = true
		}
		err := c.stream(ctx, &q, of, to)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			if apierrors.IsForbidden(err) {
				c.miss("changes of "+q.String(), "watching is forbidden")
			}
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}

// stream is one watch. It ends with the connection.
func (c *Cluster) stream(ctx context.Context, q *query, of news, to chan<- news) error {
	request := c.client.Get().AbsPath(q.path()).Param("watch", "true").Param("resourceVersion", "0")
	for name, value := range map[string]string{"labelSelector": q.labels, "fieldSelector": q.fields} {
		if value != "" {
			request.Param(name, value)
		}
	}
	if q.metadata {
		request.SetHeader("Accept", asMetadata)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	if of.again {
		send(ctx, to, of)
		of.again = false
	}
	frames := jsontext.NewDecoder(body, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		text, err := frames.ReadValue()
		if err != nil {
			return nil // a watch that is cut is begun again
		}
		var frame struct {
			Type   string         `json:"type"`
			Object jsontext.Value `json:"object"`
		}
		if err := unmarshal(text, &frame); err != nil || frame.Type == "ERROR" {
			return nil
		}
		if frame.Type == "BOOKMARK" {
			continue
		}
		one := of
		one.deleted, one.object = frame.Type == "DELETED", slices.Clone(frame.Object)
		send(ctx, to, one)
	}
}

func send(ctx context.Context, to chan<- news, one news) {
	select {
	case to <- one:
	case <-ctx.Done():
	}
}

// take brings a fleet up to date, and lists the workloads that were touched. changed tells
// that there is something new at all: a watch begins with what is known already.
func (c *Cluster) take(fleet *seen.Fleet, which *Which, batch []news) (touched []*seen.Workload, changed bool) {
	asks := map[workload.Ref]bool{}
	for _, one := range batch {
		meta := metadataOf(one.object)
		switch {
		case one.kind != nil:
			ref := Ref(one.kind, meta.Namespace, meta.Name)
			if replace(fleet, which, ref, &one) {
				asks[ref], changed = true, true
			}
		case one.event:
			event := eventOf(one.object)
			if !one.deleted && !slices.Contains(fleet.Events, event) {
				fleet.Events = append([]seen.Event{event}, fleet.Events...)
				changed = true
			}
		default:
			source := sourceOf(one.source, one.object)
			at := rollout.SourceRef{Namespace: source.Namespace, Source: source.Source}
			source.Exists = !one.deleted
			if known := fleet.Sources[at]; known != nil && known.Exists == source.Exists && known.Version == source.Version {
				continue
			}
			fleet.Sources[at], changed = source, true
			for _, w := range fleet.Workloads {
				if w.Namespace == at.Namespace && (names(w, at.Source) || slices.Contains(fleet.Selected(w), at.Source)) {
					asks[w.Ref] = true
				}
			}
		}
	}
	for _, w := range fleet.Workloads {
		if asks[w.Ref] {
			touched = append(touched, w)
		}
	}
	return touched, changed
}

func names(w *seen.Workload, source checksum.Source) bool {
	return slices.ContainsFunc(w.References, func(r checksum.Reference) bool { return r.Source == source })
}

// replace takes a workload as a watch has brought it, and reports whether it is new.
func replace(fleet *seen.Fleet, which *Which, ref workload.Ref, one *news) bool {
	at, found := slices.BinarySearchFunc(fleet.Workloads, ref, func(w *seen.Workload, ref workload.Ref) int { return w.Compare(ref) })
	w, err := read(fleet.Settings, one.kind, one.object)
	if one.deleted || err == nil && !which.asksFor(fleet, w) {
		if found {
			fleet.Workloads = slices.Delete(fleet.Workloads, at, at+1)
			delete(fleet.Outcomes, ref)
		}
		return found
	}
	switch {
	case err != nil || found && fleet.Workloads[at].Object.ResourceVersion == w.Object.ResourceVersion:
		return false
	case found:
		fleet.Workloads[at] = w
	default:
		fleet.Workloads = slices.Insert(fleet.Workloads, at, w)
	}
	return true
}

// askAgain asks the webhook about some workloads of a fleet, and reads their revisions.
func (c *Cluster) askAgain(ctx context.Context, fleet *seen.Fleet, touched []*seen.Workload) {
	served := slices.DeleteFunc(touched, func(w *seen.Workload) bool {
		standing, _ := fleet.Serves(w)
		return standing == seen.NotServed
	})
	for ref, outcome := range c.Ask(ctx, served, nil) {
		fleet.Outcomes[ref] = outcome
	}
	var mu sync.Mutex
	err := inParallel(ctx, served, func(ctx context.Context, w *seen.Workload) error {
		revisions, err := c.Revisions(ctx, w)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			fleet.Revisions[w.Object.UID] = revisions
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		c.miss("the newest revisions", strings.TrimSpace(err.Error()))
	}
}
