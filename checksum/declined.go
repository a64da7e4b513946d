package checksum

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// AcceptManager is the field manager by which somebody takes declined content after all.
const AcceptManager = "configstamp-accept"

// Declined is content that an undo has sent back: digests of what sources held, the newest
// first, no more than declinedKept of each.
type Declined map[Source][]string

const declinedKept = 3

// ParseDeclined reads the value of DeclinedAnnotation; "" is none, nil. One that cannot be
// read is an error, and counts as none. Entries for sources of a kind that this version
// does not know are passed over.
func ParseDeclined(text string) (Declined, error) {
	if text == "" {
		return nil, nil
	}
	var entries map[string]string
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, notTexts(DeclinedAnnotation)
	}
	var declined Declined
	for name, value := range entries {
		values := strings.Fields(value)
		source, err := ParseSource(name)
		if err != nil || len(values) == 0 {
			continue
		}
		if declined == nil {
			declined = make(Declined, len(entries))
		}
		declined[source] = values[:min(len(values), declinedKept)]
	}
	return declined, nil
}

// String writes what is declined, "" for nothing. Equal ones give equal text.
func (d Declined) String() string {
	entries := make(map[Source]string, len(d))
	for source, values := range d {
		if len(values) > 0 {
			entries[source] = strings.Join(values, " ")
		}
	}
	return written(entries)
}

// declined is what is on record as such, nothing where that cannot be read.
func (r *Records) declined() Declined {
	declined, err := ParseDeclined(r.Declined)
	if err != nil {
		return nil
	}
	return declined
}

// undone is what is on record of an undo.
type undone struct {
	declined Declined
	pins     func() Pins // of the template
}

// undone is what is on record, read once.
func (r *Records) undone() undone { return undone{r.declined(), sync.OnceValue(r.PinnedAt)} }

// judgement is a verdict in the light of what somebody has declined.
type judgement struct {
	verdict Verdict
	// declined tells that the content, which is not what is on record, was declined. Without
	// anything on record there is nothing that pods could keep.
	declined bool
	// outdated tells that something declined cannot be compared any more.
	outdated bool
}

// judge assesses a reference. Where something declined cannot be compared any more, the
// content of now is taken for it, because that restarts nothing.
func (r *Ring) judge(namespace string, s *Selection, held *Records, back undone, content *Content) judgement {
	value, recorded := held.Of(s.Source)
	j := judgement{verdict: r.assess(namespace, s, value, recorded, content)}
	values := back.declined[s.Source]
	if len(values) == 0 || j.verdict == Unreported {
		return j
	}
	is := false
	for _, value := range values {
		switch r.assessFreely(namespace, *s, value, content) {
		case True, Reselected:
			is = true
		case Unverifiable:
			j.outdated = true
		case Untrue, Unrecorded, Missing, Unreported:
		}
	}
	_, lost := r.UnknownKey(value)
	switch {
	case j.verdict == True || j.verdict == Unrecorded || j.verdict == Missing && !is:
	case is:
		j.declined = true
	case j.verdict == Unverifiable && lost: // it is recorded anew
	case j.outdated:
		j.declined = true
	case j.verdict == Unverifiable: // it differs from what was declined, and pods do not have that
		if j.verdict = Untrue; r.NamesSnapshot(namespace, s.Source, content, back.pins()[s.Source].Snapshot) {
			j.verdict = True
		}
	}
	return j
}

// assessFreely assesses a value, whatever containers require.
func (r *Ring) assessFreely(namespace string, s Selection, value string, content *Content) Verdict {
	s.Required, s.RequiredKeys = false, nil
	return r.assess(namespace, &s, value, true, content)
}

// holds reports whether a value stands for a content.
func (r *Ring) holds(namespace string, s Selection, value string, content *Content) bool {
	verdict := r.assessFreely(namespace, s, value, content)
	return verdict == True || verdict == Reselected
}

// declinedAnew is the text of what is declined, with what cannot be compared any more
// written anew: as what is there now if that is held by it, else not at all.
func (r *Ring) declinedAnew(a *admission) string {
	back, outdated := a.Held.undone(), false
	for _, s := range a.Selections {
		content := a.Content(s.Source)
		s = s.of(content)
		j := r.judge(a.Namespace, &s, &a.Held, back, content)
		if !j.outdated {
			continue
		}
		outdated = true
		values := slices.DeleteFunc(slices.Clone(back.declined[s.Source]), func(value string) bool {
			return r.assessFreely(a.Namespace, s, value, content) == Unverifiable
		})
		if j.declined && !slices.ContainsFunc(values, func(value string) bool { return r.holds(a.Namespace, s, value, content) }) {
			values = slices.Insert(values, 0, r.Digest(a.Namespace, s, content))
		}
		back.declined[s.Source] = values
	}
	if !outdated {
		return a.Held.Declined
	}
	return back.declined.String()
}
