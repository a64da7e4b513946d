package pins

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// Return returns the records of the newest revision to which a workload that has failed can go back: one with the
// template as it is now, whose pins name existing snapshots of all sources that differ. Otherwise why is one of the
// Unreturned sentences of package reason. On an error it is not known.
func (p *Pins) Return(ctx context.Context, u *Update) (back *checksum.Records, why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, RevisionsWithin)
	defer cancel()
	selector, err := u.Old.Kind.Selector(u.OldRaw)
	if err != nil {
		return nil, "", err
	}
	revisions, err := p.Revisions.Of(ctx, u.Old.Kind, u.Namespace, selector, u.Old.UID)
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(revisions, workload.NewestFirst)
	for _, revision := range revisions {
		older, err := checksum.RecordsIn(nil, revision.Template.Metadata.Annotations)
		if err != nil || !u.Object.Template.IsOf(revision) {
			continue
		}
		sources, is := u.Held.ReturnsTo(&older)
		if is == "" && len(sources) > 0 {
			if is, err = p.missing(ctx, u.Namespace, sources, older.PinnedAt()); err != nil {
				return nil, "", err
			}
			if is == "" {
				return &older, "", nil
			}
		}
		why = cmp.Or(why, is) // of the newest
	}
	return nil, cmp.Or(why, reason.UnreturnedTemplate), nil
}

// missing returns UnreturnedLost if a snapshot of some sources does not exist.
func (p *Pins) missing(ctx context.Context, namespace string, sources []checksum.Source, at checksum.Pins) (why string, err error) {
	for _, source := range sources {
		content, err := p.Snapshots.Content(ctx, namespace, at[source].Snapshot, source)
		if err != nil {
			return "", fmt.Errorf("reading the snapshot of %s: %w", source, err)
		}
		if content == nil {
			return reason.UnreturnedLost, nil
		}
	}
	return "", nil
}
