package inspect

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// followEvery is how often a fleet that is followed is read anew.
const followEvery = 2 * time.Second

// Follow reads a fleet anew every two seconds until ctx ends, and asks the webhook again only about
// what has changed. changed is called after each read that brought something new, or that failed
// (Fleet.Lost); it must not keep the fleet.
func (c *Cluster) Follow(ctx context.Context, fleet *seen.Fleet, which Which, changed func(*seen.Fleet)) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		fresh, err := c.readAgain(ctx, fleet, which)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && !reflect.DeepEqual(fresh, fleet):
			*fleet = *fresh
			changed(fleet)
		case err != nil && lostWords(err) != fleet.Lost:
			fleet.Lost = lostWords(err)
			changed(fleet)
		}
	}
}

// lostWords says why a fleet cannot be read.
func lostWords(err error) string {
	var transport *url.Error
	if errors.As(err, &transport) {
		return "the API server cannot be reached: " + transport.Err.Error()
	}
	return "what changed cannot be read: " + apiText(err)
}

// readAgain reads a fleet anew, and keeps what was answered of workloads that are what they were.
func (c *Cluster) readAgain(ctx context.Context, was *seen.Fleet, which Which) (*seen.Fleet, error) {
	if which.Only.Kind != nil {
		w, err := c.Workload(ctx, was.Settings, which.Only)
		if err != nil {
			return nil, err
		}
		if w != nil {
			return c.One(ctx, was.Settings, w)
		}
		gone := *was
		gone.Workloads, gone.Outcomes, gone.Lost = nil, nil, ""
		return &gone, nil
	}
	f, err := c.Unasked(ctx, was.Settings, which)
	if err != nil {
		return nil, err
	}
	f.Outcomes = map[workload.Ref]seen.Outcome{}
	asks := slices.DeleteFunc(servedOf(f), func(w *seen.Workload) bool {
		outcome, known := was.Outcomes[w.Ref]
		answered := outcome.Lasting || outcome.Code != seen.Unknown && outcome.Code != seen.Deferred
		if known = known && answered && asBefore(was, f, w); known {
			f.Outcomes[w.Ref] = outcome
		}
		return known
	})
	maps.Copy(f.Outcomes, c.Ask(ctx, asks, nil))
	return f, nil
}

// asBefore reports whether neither a workload, nor its Namespace, nor a source of it has changed.
func asBefore(was, is *seen.Fleet, w *seen.Workload) bool {
	at, found := slices.BinarySearchFunc(was.Workloads, w.Ref, func(w *seen.Workload, ref workload.Ref) int { return w.Compare(ref) })
	if !found || was.Workloads[at].Object.ResourceVersion != w.Object.ResourceVersion || !reflect.DeepEqual(was.Namespaces[w.Namespace], is.Namespaces[w.Namespace]) {
		return false
	}
	return !slices.ContainsFunc(sourcesOf(is, w), func(source checksum.Source) bool {
		at := rollout.SourceRef{Namespace: w.Namespace, Source: source}
		return !reflect.DeepEqual(was.Sources[at], is.Sources[at])
	})
}
