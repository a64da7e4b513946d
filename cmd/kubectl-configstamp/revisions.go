package main

import (
	"slices"
	"strings"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/report"
)

// becauseOf says what differs between a revision and the one before it: the sources, with the edits that reports tell
// of, and what else.
func becauseOf(is, was *revision, reports []*rolloutReport) string {
	parts := is.changesIn(was)
	sources, added := is.newsSince(was)
	for _, source := range sources {
		text := source.String() + " changed"
		if r := reportOn(reports, source); r != nil {
			if edit := editBetween(&r.Status, was, is); edit != nil {
				text = source.String() + " was " + editedWords(edit)
			}
		}
		parts = append(parts, text)
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, "; ")
	case len(added) == 1:
		return added[0] + " changed"
	case len(added) > 1:
		return "one of " + strings.Join(added, ", ") + " changed"
	}
	return "not known: nothing that the cluster keeps differs from the revision before"
}

// newsSince returns the sources whose content differs from that of an earlier revision, by their stamps, and those that
// were stamped for the first time. A first stamp alone does not tell that the content changed.
func (r *revision) newsSince(was *revision) (changed []checksum.Source, added []string) {
	before := checksum.Stamps(was.Template.Metadata.Annotations)
	for annotation, stamp := range checksum.Stamps(r.Template.Metadata.Annotations) {
		source, whole := checksum.StampedSource(annotation)
		old, stamped := before[annotation]
		switch {
		case !whole || old == stamp:
		case !stamped:
			added = append(added, source.String())
		case checksum.Comparable(old, stamp):
			changed = append(changed, source)
		}
	}
	slices.SortFunc(changed, checksum.Source.Compare)
	slices.Sort(added)
	return changed, added
}

// editBetween returns the last edit between two revisions, nil if no report tells of one.
func editBetween(s *report.Status, was, is *revision) *report.Edit {
	edits := []*report.Edit{&s.Edit}
	for i := range s.History {
		edits = append(edits, &s.History[i].Edit)
	}
	for _, edit := range edits {
		if when := timeIn(edit.EditedAt); when.After(was.Created) && !when.After(is.Created) {
			return edit
		}
	}
	return nil
}

// changesIn says what else changed in the template since an earlier revision.
func (r *revision) changesIn(was *revision) (parts []string) {
	if restarted := r.Template.Metadata.Annotations[restartedAt]; restarted != "" && restarted != was.Template.Metadata.Annotations[restartedAt] {
		parts = append(parts, "kubectl rollout restart")
	} else if !r.Template.IsOf(was.Revision) {
		parts = append(parts, "the template changed")
	}
	if cause := r.object.GetAnnotations()["kubernetes.io/change-cause"]; len(parts) > 0 && cause != "" {
		parts = append(parts, cause)
	}
	return parts
}
