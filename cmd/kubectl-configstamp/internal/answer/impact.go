package answer

import (
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Plan is an edit of a source that somebody may make.
type Plan struct {
	At rollout.SourceRef
	// Delete tells that it would be deleted. Else Is is what it would hold, nil when that
	// is not known: then Keys would change, all of them if none is named.
	Delete bool
	Is     *checksum.Content
	Keys   []string
}

// Scene is what was read for an Impact.
type Scene struct {
	Settings   *seen.Settings
	Namespaces map[string]seen.Namespace
	Workloads  []*seen.Workload
	// Sources are those that exist, by their metadata, of the kinds that could be Listed.
	Sources []*seen.Source
	Listed  func(kind checksum.Kind, namespace string) bool
	// Contents are those that were read: of what is planned alone.
	Contents map[rollout.SourceRef]*checksum.Content
	Now      time.Time
}

// Impact tells what some edits would do, but not when.
type Impact struct {
	Edits []ImpactEdit `json:"edits"`
	// Rolls are those that nothing but their turn holds, then those that a setting holds, the
	// soonest first.
	Rolls []ImpactRoll `json:"rolls"`
	// Stays use what is edited, and do not roll for it.
	Stays []ImpactStay `json:"stays"`
	// Restarts counts those of Rolls whose pods are replaced, Unsure those of which nobody
	// could look whether they are served.
	Restarts int `json:"restarts"`
	Unsure   int `json:"unsure"`
	// First is how many of those whose pods are replaced begin at once.
	First int `json:"first"`
}

// ImpactEdit is one edit.
type ImpactEdit struct {
	Namespace string          `json:"namespace"`
	Source    checksum.Source `json:"source"`
	// Edit is "changed", "made", "deleted" or "unchanged".
	Edit string `json:"edit"`
	// Keys are the names of the keys that change; none: all, or it is not known which.
	Keys []string `json:"keys,omitempty"`
}

// ImpactRoll is a workload that would roll.
type ImpactRoll struct {
	Namespace string            `json:"namespace"`
	Workload  string            `json:"workload"`
	For       []checksum.Source `json:"for"`
	// Held is the setting that holds it until a time, "" if none does.
	Held  string     `json:"held,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	// Waits says why no pod restarts by it, "" if pods do.
	Waits string `json:"waits,omitempty"`
	// Recreates tells that it is down meanwhile: all its pods end before new ones come.
	Recreates bool `json:"recreates,omitempty"`
	// Unsure tells that its Namespace could not be read, and may opt it in or out.
	Unsure bool `json:"unsure,omitempty"`
}

// ImpactStay is a workload that uses an edited source, and would not roll for it.
type ImpactStay struct {
	Namespace string          `json:"namespace"`
	Workload  string          `json:"workload"`
	Source    checksum.Source `json:"source"`
	// Code is stable (docs/reference.md), Why is for people.
	Code string `json:"code"`
	Why  string `json:"why"`
	// Rolls tells that it rolls for it as soon as that ends.
	Rolls bool `json:"rolls"`
	// Unsure is as in ImpactRoll.
	Unsure bool `json:"unsure,omitempty"`
}

// ImpactOf foresees what some edits would do.
func ImpactOf(s *Scene, plans []Plan) (Impact, error) {
	workloads, unsure := s.workloads(plans)
	world, err := impact.Suppose(workloads, s.seen)
	if err != nil {
		return Impact{}, err
	}
	limits := &s.Settings.Limits
	answered := Impact{Edits: []ImpactEdit{}, Rolls: []ImpactRoll{}, Stays: []ImpactStay{}}
	q := impact.Question{Now: s.Now, Workloads: world.Workloads, Limits: *limits, CanRoll: len(s.Workloads), Ring: world.Ring, Content: world.Content}
	for i := range plans {
		edit := edit(world, &plans[i])
		q.Edits = append(q.Edits, edit)
		answered.Edits = append(answered.Edits, edited(&edit, &plans[i]))
	}
	answer := q.Answer()
	answered.First = answer.First
	for i := range answer.Rolls {
		r := &answer.Rolls[i]
		rolling := ImpactRoll{
			Namespace: r.Workload.Namespace, Workload: seen.Text(r.Workload), For: r.For,
			Held: r.Held.Reason.String(), Waits: r.Waits, Recreates: r.Recreates, Unsure: unsure[r.Workload],
		}
		if !r.Held.Until.IsZero() {
			rolling.Until = &r.Held.Until
		}
		if answered.Rolls = append(answered.Rolls, rolling); rolling.Waits == "" {
			answered.Restarts++
		}
		if rolling.Unsure {
			answered.Unsure++
		}
	}
	for i := range answer.Stays {
		staying := s.staying(&answer.Stays[i])
		staying.Unsure = unsure[answer.Stays[i].Workload]
		answered.Stays = append(answered.Stays, staying)
	}
	return answered, nil
}

// workloads are those of the scene that may use what is planned, and those of which nobody
// could look whether they are served.
func (s *Scene) workloads(plans []Plan) (all []impact.Workload, unsure map[workload.Ref]bool) {
	unsure = map[workload.Ref]bool{}
	for _, w := range s.Workloads {
		namespace := s.Namespaces[w.Namespace]
		policy := s.Settings.PolicyOf(w, namespace, func(kind checksum.Kind) []string { return s.names(w.Namespace, kind, plans) })
		standing, why := s.Settings.Serves(w, namespace)
		if w.Owned && w.Kind.CreateOnly {
			continue
		}
		unsure[w.Ref] = standing == seen.MaybeServed
		all = append(all, impact.Workload{
			Ref: w.Ref, Served: standing != seen.NotServed, Why: why, Policy: policy, References: w.References, Unreadable: w.Fault != "",
			Records: w.Records, Status: w.Status,
		})
	}
	return all, unsure
}

// names are those of the sources of a kind that there are, and that are planned.
func (s *Scene) names(namespace string, kind checksum.Kind, plans []Plan) (names []string) {
	for _, source := range s.Sources {
		if source.Namespace == namespace && source.Kind == kind {
			names = append(names, source.Name)
		}
	}
	for i := range plans {
		if at := plans[i].At; at.Namespace == namespace && at.Source.Kind == kind && !slices.Contains(names, at.Source.Name) {
			names = append(names, at.Source.Name)
		}
	}
	return names
}

// seen is what was seen of a source.
func (s *Scene) seen(at rollout.SourceRef) impact.Seen {
	if content := s.Contents[at]; content != nil {
		return impact.Seen{Content: content}
	}
	for _, source := range s.Sources {
		if source.Namespace == at.Namespace && source.Source == at.Source {
			return impact.Seen{Policy: source.Policy}
		}
	}
	listed := s.Listed(at.Source.Kind, at.Namespace)
	return impact.Seen{Missing: listed, Unknown: !listed}
}

// edit is what a plan comes to.
func edit(world *impact.Supposed, plan *Plan) impact.Edit {
	switch was := world.Content(plan.At); {
	case plan.Delete:
		return world.Deleted(plan.At)
	case plan.Is != nil && plan.Is.Policy == nil && was != nil: // to apply a manifest leaves what it does not name
		return impact.Edit{At: plan.At, Was: was, Is: &checksum.Content{Entries: plan.Is.Entries, Policy: was.Policy}}
	case plan.Is != nil:
		return impact.Edit{At: plan.At, Was: was, Is: plan.Is}
	case was == nil:
		return world.Made(plan.At)
	default:
		return world.Changed(plan.At, plan.Keys...)
	}
}

// edited says which keys an edit changes.
func edited(edit *impact.Edit, plan *Plan) ImpactEdit {
	e := ImpactEdit{Namespace: edit.At.Namespace, Source: edit.At.Source, Keys: plan.Keys, Edit: "changed"}
	switch {
	case edit.Is == nil:
		e.Edit, e.Keys = "deleted", nil
	case edit.Was == nil:
		e.Edit, e.Keys = "made", nil
	case plan.Is != nil:
		if e.Keys = changedKeys(edit.Was, edit.Is); len(e.Keys) == 0 {
			e.Edit = "unchanged"
		}
	}
	return e
}

// changedKeys are the names of the keys that differ, sorted.
func changedKeys(was, is *checksum.Content) (keys []string) {
	for _, pair := range [][2]*checksum.Content{{was, is}, {is, was}} {
		for i := range pair[0].Entries {
			one := &pair[0].Entries[i]
			if other, has := pair[1].Entry(one.Name); !has || other != *one {
				keys = append(keys, one.Name)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// staying says why a workload stays.
func (s *Scene) staying(stay *impact.Stay) ImpactStay {
	said := stay.Finding
	if said.Reason == reason.NoReason {
		said = checksum.Finding{Reason: stay.Why, Source: stay.Source}
	}
	words := said.String()
	if at := slices.IndexFunc(s.Workloads, func(w *seen.Workload) bool { return w.Ref == stay.Workload }); at >= 0 {
		switch stay.Why {
		case reason.OptedOut, reason.Owned:
			words, _ = NotServedWords(s.Settings, s.Namespaces[stay.Workload.Namespace], s.Workloads[at], stay.Why)
		case reason.TemplateUnreadable:
			words = s.Workloads[at].Fault
		case reason.MissingSource:
			if !stay.Would { // the edit itself deletes it
				words = "it needs " + stay.Source.String() + ": its pods keep running, but no new pod could start"
			}
		case reason.Recorded:
			words = "no checksum is recorded yet: the edit is recorded, and nothing restarts"
		default:
		}
	}
	return ImpactStay{
		Namespace: stay.Workload.Namespace, Workload: seen.Text(stay.Workload), Source: stay.Source,
		Code: stay.Why.String(), Why: strings.TrimSuffix(words, "."), Rolls: stay.Would,
	}
}
