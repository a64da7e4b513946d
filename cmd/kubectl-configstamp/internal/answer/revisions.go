package answer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/workload"
)

// Revision is one revision of a workload, and why there is one.
type Revision struct {
	Name   string `json:"name"`
	Number int64  `json:"number"`
	// At is when it was first made (UTC).
	At time.Time `json:"at"`
	// Sources are those whose content changed with it, by its stamps. Maybe tells that it
	// is one or more of them, and the stamps do not tell which.
	Sources []checksum.Source `json:"sources,omitempty"`
	Maybe   bool              `json:"maybe,omitempty"`
	// Pinned are the ConfigMaps whose snapshots its template names, sorted: an undo to it brings
	// their content back as well.
	Pinned []checksum.Source `json:"pinned,omitempty"`
	// Template says what else changed in the pod template, in words; "" if nothing did.
	Template string `json:"template,omitempty"`
	// First tells that nothing older is left to compare with.
	First bool `json:"first,omitempty"`
	// By are the writers of Sources, as far as it is known that they wrote for it.
	By []string `json:"by,omitempty"`
	// Result is current, rolling, failed, or "" of those that others have followed.
	Result string `json:"result,omitempty"`
}

// PinnedText writes Pinned for one column of a table: two of them unless all are wanted.
func (r *Revision) PinnedText(all bool) string {
	if more := len(r.Pinned) - 2; more > 0 && !all {
		return fmt.Sprintf("%s and %d more", joined(r.Pinned[:2], ", "), more)
	}
	return joined(r.Pinned, ", ")
}

// Because says in words why there is a revision.
func (r *Revision) Because() string {
	var parts []string
	if len(r.Sources) > 0 {
		text := joined(r.Sources, " and ")
		if r.Maybe && len(r.Sources) > 1 {
			text = "one of " + joined(r.Sources, ", ")
		}
		text += " changed"
		if len(r.By) > 0 {
			text += " (by " + strings.Join(r.By, ", ") + ")"
		}
		parts = append(parts, text)
	}
	if r.Template != "" {
		parts = append(parts, r.Template)
	}
	if len(parts) == 0 {
		if r.First {
			return "the oldest revision that is kept"
		}
		return "not known: nothing that the cluster keeps differs from the previous revision"
	}
	return strings.Join(parts, "; ")
}

// RevisionsOf says of each revision of a workload why there is one, newest first.
func RevisionsOf(f *seen.Fleet, w *seen.Workload) []Revision {
	of := f.Revisions[w.Object.UID]
	revisions := make([]Revision, len(of))
	for i := range of {
		now := &of[i]
		revisions[i] = Revision{Name: now.Name, Number: now.Number, At: now.Created, First: i == len(of)-1, Pinned: slices.SortedFunc(maps.Keys(now.Pins), checksum.Source.Compare)}
		r := &revisions[i]
		if i == 0 {
			if r.Result = result(&w.Status); failure(f, w) != nil && r.Result == "rolling" {
				r.Result = "failed"
			}
		}
		if r.First {
			continue
		}
		before := &of[i+1]
		r.Template = differs(now, before)
		r.Sources, r.Maybe = changedBetween(now, before, r.Template == "")
		r.By = writersBetween(f, w.Namespace, r.Sources, before.Created, now.Created)
	}
	return revisions
}

// result says how far the newest revision is.
func result(status *workload.Status) string {
	switch status.Phase {
	case workload.Rolling:
		return "rolling"
	case workload.Failed:
		return "failed"
	case workload.Suspended:
		return "stands at a pause of its own"
	case workload.RolledOut, workload.Unreported:
	}
	return "current"
}

// differs says in words what of a template, but for our stamps, is not what it was.
func differs(now, before *seen.Revision) string {
	var parts []string
	for _, container := range slices.Sorted(maps.Keys(now.Images)) {
		if was, is := before.Images[container], now.Images[container]; was != is && was != "" {
			parts = append(parts, fmt.Sprintf("image of %s: %s to %s", container, was, is))
		}
	}
	if now.Restarted != before.Restarted && now.Restarted != "" {
		parts = append(parts, "kubectl rollout restart")
	}
	if len(parts) == 0 && now.Template != before.Template {
		parts = append(parts, "the template changed")
	}
	if now.Cause != "" && now.Cause != before.Cause && len(parts) > 0 {
		parts = append(parts, now.Cause)
	}
	return strings.Join(parts, "; ")
}

// changedBetween are the sources whose content differs between two revisions, by their
// stamps. Where nothing else changed, and no stamp tells, it is one of those that were
// stamped for the first time.
func changedBetween(now, before *seen.Revision, alone bool) (sources []checksum.Source, maybe bool) {
	var added []checksum.Source
	for key, value := range now.Stamps {
		source, whole := checksum.StampedSource(key)
		was, stamped := before.Stamps[key]
		switch {
		case !whole || was == value:
		case !stamped:
			added = append(added, source)
		case checksum.Comparable(was, value):
			sources = append(sources, source)
		}
	}
	if len(sources) == 0 && alone {
		sources, maybe = added, true
	}
	slices.SortFunc(sources, checksum.Source.Compare)
	return sources, maybe
}

// writersBetween are who wrote the content of some sources last, if that was between two
// times: of earlier writes nobody keeps a record.
func writersBetween(f *seen.Fleet, namespace string, sources []checksum.Source, after, until time.Time) []string {
	var writers []string
	for _, source := range sources {
		edit := f.Source(namespace, source).Edited()
		if edit.Manager != "" && !edit.At.Before(after) && !edit.At.After(until) {
			writers = append(writers, edit.Manager)
		}
	}
	slices.Sort(writers)
	return slices.Compact(writers)
}

// joined names sources for people.
func joined(sources []checksum.Source, between string) string {
	texts := make([]string, len(sources))
	for i, source := range sources {
		texts[i] = source.String()
	}
	return strings.Join(texts, between)
}

// Ago writes for how long something is past, as kubectl does: 45s, 12m, 3h, 2d.
func Ago(now, then time.Time) string {
	if then.IsZero() {
		return "unknown"
	}
	switch d := now.Sub(then); {
	case d < 0:
		return "now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// Newest is the first of some revisions, nil when there is none.
func Newest(revisions []Revision) *Revision {
	if len(revisions) == 0 {
		return nil
	}
	return &revisions[0]
}

// newestOf is the newer of two times.
func newestOf(a, b time.Time) time.Time {
	if cmp.Compare(a.UnixNano(), b.UnixNano()) > 0 && !a.IsZero() || b.IsZero() {
		return a
	}
	return b
}
