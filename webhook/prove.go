package webhook

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// look finds out what the sources hold, proven fresh if that can be done in
// time, else as remembered, and the ring to judge it with.
func (h *Handler) look(ctx context.Context, r *request, f *facts) error {
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
	ring, unproven := h.lookUp(ctx, f)
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
var errVanished = errors.New("an optional source was deleted a moment ago; somebody may be replacing it")

// prove is what is known of an admission's sources: of each that must be proven what the
// API server holds now. Else the error says why not, and it is what memory holds, nil
// when that cannot know.
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

// proveChanges proves what has to be known for a rolling re-admission, and what has to be
// known then, and so on.
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

// vanished reports whether an optional source that memory holds does not exist. One that is
// required holds the roll anyway.
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

// mostLookups is how many keys that the ring lacks an admission looks for.
const mostLookups = 8

// lookUp gives the ring of now, nil while there is none. It looks for the keys that values on
// record were made with and that the ring lacks; one that is lost is looked for once,
// however many stamps it made. Where values were made with more than a few, the rest is called
// lost without a look.
func (h *Handler) lookUp(ctx context.Context, f *facts) (ring *checksum.Ring, err error) {
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
