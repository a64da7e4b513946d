// Package index knows the workloads of the cluster, and for each source those that reference
// it, so that nothing is listed when a source changes.
//
// It is filled by others, who watch or list. It must not know them: no client, no watch, no
// queue. It must not know what follows from a change either: it wakes workloads, and the rules
// stand in packages checksum and internal/rollout.
//
// Start reading at index.go, then workload.go (what is kept of one).
package index

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Index holds the workloads, and for each source those that reference it. Its methods may be
// called at any time, from any goroutine. What it returns never changes.
type Index struct {
	// Remade, if not nil, is called of a workload that is another one of its name, under the
	// lock. It is set before anything is put into the index.
	Remade func(workload.Ref)

	woken   func(workload.Ref)
	concern func(workload.Ref, *Workload) []checksum.Source
	now     func() time.Time

	mu        sync.RWMutex
	workloads map[workload.Ref]*Workload
	customs   map[string]*workload.Kind            // kinds, by their text
	bySource  map[rollout.SourceRef][]workload.Ref // most have one, for which a map is eight times the size
	runBy     map[workload.Ref]workload.Ref        // which object runs the template of a workload
	also      []workload.Ref                       // to be woken by the update under way
}

// New makes an empty index. woken is called of each workload of which something new is known
// that counts. concern gives the sources that concern a workload, by its policy, sorted; it is
// called under the lock.
func New(woken func(workload.Ref), concern func(workload.Ref, *Workload) []checksum.Source, now func() time.Time) *Index {
	return &Index{woken: woken, concern: concern, now: now, workloads: map[workload.Ref]*Workload{}, customs: map[string]*workload.Kind{}, bySource: map[rollout.SourceRef][]workload.Ref{}, runBy: map[workload.Ref]workload.Ref{}}
}

// Get is what is known of a workload, nil when nothing is.
func (x *Index) Get(ref workload.Ref) *Workload {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.workloads[ref]
}

// Find is Get for one that is named by its kind as the table has it: a custom kind may be
// known by another name since.
func (x *Index) Find(ref workload.Ref) (workload.Ref, *Workload) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if ref.Kind.Custom {
		if kind := x.customs[ref.Kind.String()]; kind != nil {
			ref.Kind = kind
		}
	}
	return ref, x.workloads[ref]
}

// Len is how many workloads there are.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.workloads)
}

// Count counts some workloads.
func (x *Index) Count(counts func(workload.Ref, *Workload) bool) (n int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for ref, s := range x.workloads {
		if counts(ref, s) {
			n++
		}
	}
	return n
}

// Using are the workloads that a source concerns, in no order.
func (x *Index) Using(namespace string, source checksum.Source) []workload.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	refs := slices.Clone(x.bySource[rollout.SourceRef{Namespace: namespace, Source: source}])
	for _, ref := range x.bySource[rollout.SourceRef{Namespace: namespace}] {
		if s := x.workloads[ref]; s.Foreign.Named(source) && !slices.Contains(s.Sources, source) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// Sources are the sources that concern workloads, in no order.
func (x *Index) Sources() []rollout.SourceRef {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(x.bySource)), func(at rollout.SourceRef) bool { return at.Source == checksum.Source{} })
}

// All are all workloads, in order.
func (x *Index) All() []workload.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(x.workloads), workload.Ref.Compare)
}

// Told takes a workload as a watch tells of it; nil: it was deleted.
func (x *Index) Told(ref workload.Ref, s *Workload) {
	x.update(func() (wake []workload.Ref) {
		if s == nil {
			x.set(ref, nil)
		} else if !x.take(ref, s) {
			return nil
		}
		return []workload.Ref{ref}
	})
}

// take takes a workload as it was received, unless something newer is known of that
// name, and reports whether anything that counts is new. An object whose generation stays
// has the template that it had.
func (x *Index) take(ref workload.Ref, s *Workload) (news bool) {
	known := x.workloads[ref]
	if known != nil {
		if order, err := resourceversion.CompareResourceVersion(s.ResourceVersion, known.ResourceVersion); err == nil && order < 0 {
			return false
		}
	}
	x.set(ref, s)
	return known == nil || known.UID != s.UID || known.Generation != s.Generation || !known.Records.Equal(s.Records) ||
		known.Status.Phase != s.Status.Phase || known.Fault != s.Fault || !known.saysAs(s)
}

// set replaces what is known of a workload; nil forgets it.
func (x *Index) set(ref workload.Ref, s *Workload) {
	known := x.workloads[ref]
	if s == nil {
		delete(x.workloads, ref)
	} else {
		if x.workloads[ref] = s; ref.Kind.Custom {
			x.customs[ref.Kind.String()] = ref.Kind
		}
		x.hear(ref, s)
		s.compare(known, x.now())
		s.Sources = x.concern(ref, s)
	}
	if known != nil && s != nil {
		if s.UID != known.UID && x.Remade != nil {
			x.Remade(ref)
		}
		if slices.Equal(known.Sources, s.Sources) {
			s.Sources = known.Sources // one copy is enough
		}
	}
	x.tell(ref, known, s)
	was, is := known.foundBy(), s.foundBy()
	for _, source := range was {
		if !checksum.Among(is, source) {
			x.unuse(rollout.SourceRef{Namespace: ref.Namespace, Source: source}, ref)
		}
	}
	for _, source := range is {
		if !checksum.Among(was, source) {
			at := rollout.SourceRef{Namespace: ref.Namespace, Source: source}
			x.bySource[at] = append(x.bySource[at], ref)
		}
	}
}

// hear has the object that runs the template of a workload without replicas of its own tell
// how far that is.
func (x *Index) hear(ref workload.Ref, s *Workload) {
	if s.own != nil {
		s.Status, s.own = *s.own, nil
	}
	if runner := x.workloads[x.runBy[ref]]; runner != nil && s.Status.Wanted == 0 {
		own := s.Status
		s.own, s.Status = &own, runner.TemplateOf.For(s.Generation, runner.Status)
	}
}

// tell has the workload whose template an object runs, or ran before, hear of that. Of
// several that run it the first by name counts.
func (x *Index) tell(runner workload.Ref, was, is *Workload) {
	ran, runs := was.runs(), is.runs()
	if ran != runs && x.runBy[ran] == runner {
		delete(x.runBy, ran)
		for other, s := range x.workloads {
			if s.runs() == ran {
				x.runs(other, ran)
			}
		}
		x.told(ran)
	}
	if runs.Kind == nil {
		return
	}
	if x.runs(runner, runs); x.runBy[runs] == runner {
		x.told(runs)
	}
}

// runs notes an object that runs the template of a workload, unless one before it does.
func (x *Index) runs(runner, template workload.Ref) {
	if by, taken := x.runBy[template]; !taken || runner.Compare(by) < 0 {
		x.runBy[template] = runner
	}
}

// told has a workload hear of the object that runs its template, and wakes it if that counts.
func (x *Index) told(ref workload.Ref) {
	known := x.workloads[ref]
	if known == nil {
		return
	}
	now := *known // as a reader's copy does not change
	if x.set(ref, &now); now.Status.Phase != known.Status.Phase {
		x.also = append(x.also, ref)
	}
}

// unuse takes a workload from those that use a source.
func (x *Index) unuse(at rollout.SourceRef, ref workload.Ref) {
	refs := slices.DeleteFunc(x.bySource[at], func(other workload.Ref) bool { return other == ref })
	if x.bySource[at] = refs; len(refs) == 0 {
		delete(x.bySource, at)
	}
}

// Renew takes the answer to a re-admission, unless the watch has told of
// something newer meanwhile, such as a deletion. It wakes the workload if somebody else has
// changed its settings since: the watch will not tell of that any more.
func (x *Index) Renew(ref workload.Ref, s *Workload) {
	x.update(func() (wake []workload.Ref) {
		if known := x.workloads[ref]; known != nil && x.take(ref, s) && !known.saysAs(s) {
			wake = append(wake, ref)
		}
		return wake
	})
}

// Gone forgets a workload that the API server does not know, if nothing newer
// of that name has come meanwhile.
func (x *Index) Gone(ref workload.Ref, was *Workload) {
	x.update(func() []workload.Ref {
		if x.workloads[ref] == was {
			x.set(ref, nil)
		}
		return nil
	})
}

// Replace makes a list of one kind in one namespace ("" for all) the truth, and
// wakes those that it holds, and those that are gone.
func (x *Index) Replace(kind *workload.Kind, namespace string, list map[workload.Ref]*Workload) {
	x.update(func() (wake []workload.Ref) {
		for ref := range x.workloads {
			if _, ok := list[ref]; !ok && ref.Kind == kind && (namespace == "" || ref.Namespace == namespace) {
				x.set(ref, nil)
				wake = append(wake, ref)
			}
		}
		for ref, s := range list {
			x.set(ref, s)
			wake = append(wake, ref)
		}
		return wake
	})
}

// Refresh indexes every workload under its present policy.
func (x *Index) Refresh() {
	x.update(func() []workload.Ref { x.refreshed(""); return nil })
}

// Reconsider indexes the workloads of a namespace under their present policy, and wakes
// them.
func (x *Index) Reconsider(namespace string) {
	x.update(func() []workload.Ref { return x.refreshed(namespace) })
}

// refreshed indexes workloads of a namespace ("": of all) under their present policy. It
// copies each, so that a reader's copy does not change.
func (x *Index) refreshed(namespace string) (all []workload.Ref) {
	for ref, s := range x.workloads {
		if namespace == "" || ref.Namespace == namespace {
			same := *s
			x.set(ref, &same)
			all = append(all, ref)
		}
	}
	return all
}

// update does something under the lock, and wakes workloads after that.
func (x *Index) update(do func() (wake []workload.Ref)) {
	wake := func() []workload.Ref {
		x.mu.Lock()
		defer x.mu.Unlock()
		wake, also := do(), x.also
		x.also = nil
		return append(wake, also...)
	}()
	for _, ref := range wake {
		x.woken(ref)
	}
}
