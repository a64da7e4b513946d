package webhook

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// readSources reads the content of the sources, proven to be fresh if that succeeds in time, otherwise cached,
// and the key ring to compare it with.
func (h *Handler) readSources(ctx context.Context, r *request, f *facts) error {
	if len(f.Selections) == 0 {
		f.Fresh = true // there is nothing to know
		return nil
	}
	checker := h.Own
	if !r.Asker.Own() {
		checker = h.People
		if h.Patience > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, h.Patience)
			defer cancel()
		}
	}
	// A key that could not be looked up is no lost key: as with content that is
	// not proven, nothing is decided by it.
	ring, unproven := h.ringFor(ctx, f)
	if ring == nil {
		return errNoKey
	}
	began := time.Now()
	known, err := h.prove(ctx, checker, ring, r, f)
	unproven = errors.Join(err, unproven)
	f.Fresh = unproven == nil
	h.Metrics.freshness(f.Fresh, time.Since(began))
	if unproven != nil {
		r.log(ctx).Info("The sources could not be read live in time; cached content is used", "reason", unproven.Error())
	}
	if known == nil {
		return err
	}
	f.ring, f.Content = ring, func(source checksum.Source) *checksum.Content { return known[source] }
	return nil
}

// errVanished is why a roll waits for the next try.
var errVanished = errors.New("an optional source was deleted a moment ago; it may be about to be created again")

// prove returns the content of the sources: for each that must be proven, the content that the API server has
// now. On an error it returns cached content, or nil if the cache is not ready.
func (h *Handler) prove(ctx context.Context, checker Checker, ring *checksum.Ring, r *request, f *facts) (checksum.Contents, error) {
	sources := make([]checksum.Source, len(f.Selections))
	for i := range f.Selections {
		sources[i] = f.Selections[i].Source
	}
	if !r.RollsByOwnAccount() {
		fresh, err := checker.Fresh(ctx, r.Namespace, sources, nil)
		if err == nil {
			return fresh, nil
		}
		remembered, unknown := h.Sources.Cached(r.Namespace, sources)
		if unknown != nil {
			return nil, unknown
		}
		return remembered, err
	}
	remembered, unknown := h.Sources.Cached(r.Namespace, sources)
	known, err := proveChanges(ctx, checker, ring, r, f, remembered)
	if known == nil && unknown != nil {
		return nil, unknown
	}
	return known, err
}

// proveChanges proves the sources that a rolling re-admission depends on. Proven content may add further sources
// to these, until none is left.
func proveChanges(ctx context.Context, checker Checker, ring *checksum.Ring, r *request, f *facts, remembered checksum.Contents) (known checksum.Contents, err error) {
	known, proven := remembered, map[checksum.Source]bool{}
	isProven := func(source checksum.Source) bool { return proven[source] }
	for {
		must, beside := ring.ToProve(&r.Request, &f.Facts, known)
		if must = slices.DeleteFunc(must, isProven); len(must) == 0 {
			return known, nil
		}
		beside = slices.DeleteFunc(beside, isProven)
		fresh, err := checker.Fresh(ctx, r.Namespace, must, beside)
		if err != nil {
			return known, err
		}
		if known = maps.Clone(known); known == nil {
			known = checksum.Contents{}
		}
		maps.Copy(known, fresh)
		for _, source := range must {
			proven[source] = true
		}
		for source := range fresh {
			proven[source] = true
		}
		if vanished(f, fresh, remembered) {
			return known, errVanished
		}
	}
}

// vanished reports whether an optional source in the cache does not exist any more. A missing required source
// holds the roll anyway.
func vanished(f *facts, fresh, remembered checksum.Contents) bool {
	for i := range f.Selections {
		s := &f.Selections[i]
		content, read := fresh[s.Source]
		if read && content == nil && remembered[s.Source] != nil && !s.Required {
			return true
		}
	}
	return false
}

// mostLookups bounds the live lookups of unknown keys in one admission.
const mostLookups = 8

// ringFor returns the current key ring, nil if no key is stored. It looks up the keys of recorded values that are
// not in the ring, each once, and mostLookups at most: the others count as lost.
func (h *Handler) ringFor(ctx context.Context, f *facts) (ring *checksum.Ring, err error) {
	var asked []string
	ring = h.Keys.Ring()
	for _, s := range f.Selections {
		if ring == nil {
			return nil, err
		}
		value, _ := f.Held.Of(s.Source)
		if id, unknown := ring.UnknownKey(value); unknown && len(asked) < mostLookups && !slices.Contains(asked, id) {
			asked = append(asked, id)
			_, lookup := h.Keys.Refresh(ctx, id)
			err = errors.Join(err, lookup)
			ring = h.Keys.Ring()
		}
	}
	return ring, err
}
