package inspect

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

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
	from     string         // what is watched
	kind     *workload.Kind // of a workload
	source   checksum.Kind  // of a source
	revision bool           // of a ReplicaSet or ControllerRevision
	event    bool           // one of configstamp's own events
	deleted  bool
	object   []byte
	// What follows tells of the watch alone. lost: it cannot be begun, and is tried again.
	// again: it was begun again; missed: the API server does not know any more what has
	// happened meanwhile.
	lost          error
	again, missed bool
}

// Follow keeps a fleet up to date until ctx ends. It watches the workloads, their revisions,
// the metadata of the sources, and configstamp's events, and asks the webhook again only about the
// workloads that an event touched: the workload itself, or the users of a source. changed
// is called after each round that changed something, from one goroutine; it must not keep
// the fleet. What may not be watched is noted, and not followed. While the API server does
// not answer, Fleet.Lost says so; when it answers again, all is read anew.
func (c *Cluster) Follow(ctx context.Context, fleet *seen.Fleet, which Which, changed func(*seen.Fleet)) {
	all := make(chan news)
	var group sync.WaitGroup
	begin := func(q query, of news) {
		of.from = q.String()
		group.Go(func() { c.watch(ctx, &watch{query: q, of: of, to: all, version: "0"}) })
	}
	for _, kind := range fleet.Settings.Kinds.Readmitted() {
		q := query{gvr: kind.GroupVersionResource(), namespace: which.Namespace, labels: which.Selector}
		if which.Only != (workload.Ref{}) {
			if kind != which.Only.Kind {
				continue
			}
			q.fields = "metadata.name=" + which.Only.Name
		}
		begin(q, news{kind: kind})
	}
	for _, kind := range checksum.Kinds() {
		if fleet.Settings.Policy.Serves(kind) {
			begin(query{gvr: SourceResource(kind), namespace: which.Namespace, metadata: true}, news{source: kind})
		}
	}
	for _, resource := range revisionsOf(fleet.Settings.Kinds) {
		q := query{gvr: v1("apps", resource), namespace: which.Namespace}
		if which.Only.Kind != nil && len(fleet.Workloads) == 1 {
			q.labels = fleet.Workloads[0].Selector
		}
		begin(q, news{revision: true})
	}
	begin(query{gvr: v1("", "events"), namespace: which.Namespace, fields: "reportingComponent=" + Reporter}, news{event: true})
	go func() {
		group.Wait()
		close(all)
	}()
	down, unread := map[string]error{}, false // what cannot be watched; whether something was missed
	for batch := range gathered(all) {
		for _, one := range batch {
			switch {
			case one.lost != nil:
				down[one.from] = one.lost
			case one.again:
				delete(down, one.from)
				unread = unread || one.missed
			}
		}
		if unread && len(down) == 0 {
			c.readUntilRead(ctx, fleet, which, changed)
			unread = false
			continue
		}
		touched, news := c.take(fleet, &which, batch)
		if news {
			c.askAgain(ctx, fleet, touched)
		}
		if lost := lostWords(down); news || lost != fleet.Lost {
			fleet.Lost = lost
			changed(fleet)
		}
	}
}

// lostWords says what cannot be watched, and why; "" when all can.
func lostWords(down map[string]error) string {
	if len(down) == 0 {
		return ""
	}
	what := slices.Min(slices.Collect(maps.Keys(down)))
	var transport *url.Error
	if errors.As(down[what], &transport) {
		return "the API server cannot be reached: " + transport.Err.Error()
	}
	return what + " cannot be watched: " + apiText(down[what])
}

// readUntilRead reads a fleet anew, again and again until that succeeds or ctx ends.
func (c *Cluster) readUntilRead(ctx context.Context, fleet *seen.Fleet, which Which, changed func(*seen.Fleet)) {
	for ctx.Err() == nil {
		fresh, err := c.readAgain(ctx, fleet, which)
		if err == nil {
			*fleet = *fresh
			changed(fleet)
			return
		}
		if lost := lostWords(map[string]error{"what changed meanwhile": err}); lost != fleet.Lost && ctx.Err() == nil {
			fleet.Lost = lost
			changed(fleet)
		}
		wait(ctx, againAfter)
	}
}

// wait waits for a time, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// readAgain reads a fleet anew.
func (c *Cluster) readAgain(ctx context.Context, fleet *seen.Fleet, which Which) (*seen.Fleet, error) {
	if which.Only.Kind == nil {
		return c.Fleet(ctx, fleet.Settings, which, nil)
	}
	w, err := c.Workload(ctx, fleet.Settings, which.Only)
	if err != nil || w == nil {
		return &seen.Fleet{
			Settings: fleet.Settings, Namespaces: fleet.Namespaces, Sources: map[rollout.SourceRef]*seen.Source{},
			Outcomes: map[workload.Ref]seen.Outcome{}, Revisions: map[types.UID][]seen.Revision{},
		}, err
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

// watch is one watch, begun again and again.
type watch struct {
	query
	of           news
	to           chan<- news
	version      string // of the last object that came; "0": whatever there is
	lost, missed bool   // as in news
}

// watch sends what happens to the objects of a query, those that there are first, until
// ctx ends, or until the user turns out to have no right to.
func (c *Cluster) watch(ctx context.Context, w *watch) {
	for ctx.Err() == nil {
		err := c.stream(ctx, w)
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
			if apierrors.IsForbidden(err) {
				c.miss("changes of "+w.String(), "watching is forbidden")
			}
			if w.lost {
				send(ctx, w.to, news{from: w.of.from, again: true})
			}
			return
		case apierrors.IsGone(err) || apierrors.IsResourceExpired(err):
			w.version, w.missed = "0", true
			continue
		case err != nil && ctx.Err() == nil:
			w.lost = true
			send(ctx, w.to, news{from: w.of.from, lost: err})
		}
		wait(ctx, againAfter)
	}
}

// stream is one connection of a watch. An error is that it could not be begun.
func (c *Cluster) stream(ctx context.Context, w *watch) error {
	request := c.client.Get().AbsPath(w.path()).Param("watch", "true").Param("resourceVersion", w.version).Param("allowWatchBookmarks", "true")
	for name, value := range map[string]string{"labelSelector": w.labels, "fieldSelector": w.fields} {
		if value != "" {
			request.Param(name, value)
		}
	}
	if w.metadata {
		request.SetHeader("Accept", asMetadata)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	if w.lost || w.missed {
		send(ctx, w.to, news{from: w.of.from, again: true, missed: w.missed})
		w.lost, w.missed = false, false
	}
	frames := jsontext.NewDecoder(body, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		text, err := frames.ReadValue()
		if err != nil {
			return nil // a watch that is cut is begun again, where it was
		}
		var frame struct {
			Type   string         `json:"type"`
			Object jsontext.Value `json:"object"`
		}
		if err := unmarshal(text, &frame); err != nil || frame.Type == "ERROR" { // its version is too old
			w.version, w.missed = "0", true
			return nil
		}
		if version := metadataOf(frame.Object).Version; version != "" {
			w.version = version
		}
		if frame.Type == "BOOKMARK" {
			continue
		}
		one := w.of
		one.deleted, one.object = frame.Type == "DELETED", slices.Clone(frame.Object)
		send(ctx, w.to, one)
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
		case one.object == nil: // it tells of its watch alone
		case one.kind != nil:
			ref := Ref(one.kind, meta.Namespace, meta.Name)
			if replace(fleet, which, ref, &one) {
				asks[ref], changed = true, true
			}
		case one.revision:
			changed = keepRevision(fleet, &one) || changed
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

// keepRevision takes a revision as a watch has brought it, and reports whether it is new.
func keepRevision(fleet *seen.Fleet, one *news) bool {
	revision, err := revisionOf(one.object)
	if err != nil || !slices.ContainsFunc(fleet.Workloads, func(w *seen.Workload) bool { return w.Object.UID == revision.Owner }) {
		return false
	}
	of := fleet.Revisions[revision.Owner]
	at := slices.IndexFunc(of, func(known seen.Revision) bool { return known.Name == revision.Name })
	switch {
	case one.deleted && at < 0, !one.deleted && at >= 0 && reflect.DeepEqual(of[at], revision):
		return false
	case one.deleted:
		of = slices.Delete(of, at, at+1)
	case at >= 0:
		of[at] = revision
	default:
		of = append(of, revision)
	}
	slices.SortFunc(of, newestFirst)
	fleet.Revisions[revision.Owner] = of
	return true
}

// askAgain asks the webhook about some workloads of a fleet.
func (c *Cluster) askAgain(ctx context.Context, fleet *seen.Fleet, touched []*seen.Workload) {
	served := slices.DeleteFunc(touched, func(w *seen.Workload) bool {
		standing, _ := fleet.Serves(w)
		return standing == seen.NotServed
	})
	maps.Copy(fleet.Outcomes, c.Ask(ctx, served, nil))
}
