package controller

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

// index holds the workloads, and for each source those that reference it, so
// that a change lists nothing.
type index struct {
	woken func(workload.Ref)
	// remade is called of a workload that is another one of its name.
	remade func(workload.Ref)
	// concern gives the sources that concern a workload, by its policy, sorted.
	concern func(workload.Ref, *subject) []checksum.Source
	now     func() time.Time

	mu       sync.RWMutex
	subjects map[workload.Ref]*subject
	bySource map[rollout.SourceRef][]workload.Ref // most have one, for which a map is eight times the size
	byName   map[string]map[workload.Ref]struct{} // those that name sources by patterns, by namespace
}

func newIndex(woken func(workload.Ref), concern func(workload.Ref, *subject) []checksum.Source, now func() time.Time) *index {
	return &index{woken: woken, remade: func(workload.Ref) {}, concern: concern, now: now, subjects: map[workload.Ref]*subject{}, bySource: map[rollout.SourceRef][]workload.Ref{}, byName: map[string]map[workload.Ref]struct{}{}}
}

func (x *index) get(user workload.Ref) *subject {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.subjects[user]
}

func (x *index) count() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.subjects)
}

func (x *index) users(namespace string, source checksum.Source) []workload.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	users := slices.Clone(x.bySource[rollout.SourceRef{Namespace: namespace, Source: source}])
	for user := range x.byName[namespace] {
		if s := x.subjects[user]; s.foreign.Named(source) && !slices.Contains(s.sources, source) {
			users = append(users, user)
		}
	}
	return users
}

func (x *index) all() []workload.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(x.subjects), workload.Ref.Compare)
}

// put takes a workload as it was received, unless something newer is known of
// that name, and reports whether anything that counts is new. An object
// whose generation stays has the template that it had.
func (x *index) put(user workload.Ref, s *subject) (news bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.take(user, s)
}

func (x *index) take(user workload.Ref, s *subject) (news bool) {
	known := x.subjects[user]
	if known != nil {
		if order, err := resourceversion.CompareResourceVersion(s.resourceVersion, known.resourceVersion); err == nil && order < 0 {
			return false
		}
	}
	x.set(user, s)
	return known == nil || known.uid != s.uid || known.generation != s.generation || !known.records.Equal(s.records) ||
		known.status.Phase != s.status.Phase || known.fault != s.fault || !known.saysAs(s)
}

// set replaces what is known of a workload; nil forgets it.
func (x *index) set(user workload.Ref, s *subject) {
	known := x.subjects[user]
	var was, is []checksum.Source
	if known != nil {
		was = known.sources
		if s != nil && s.uid != known.uid {
			x.remade(user)
		}
	}
	if s == nil {
		delete(x.subjects, user)
	} else {
		x.subjects[user] = s
		s.compare(known, x.now())
		if is = x.concern(user, s); slices.Equal(was, is) {
			is = was // one copy is enough
		}
		s.sources = is
	}
	x.putByName(user, s != nil && s.foreign != nil && len(s.foreign.Names) > 0)
	if slices.Equal(was, is) {
		return
	}
	for _, source := range was {
		if !isAmong(is, source) {
			x.unuse(rollout.SourceRef{Namespace: user.Namespace, Source: source}, user)
		}
	}
	for _, source := range is {
		if !isAmong(was, source) {
			at := rollout.SourceRef{Namespace: user.Namespace, Source: source}
			x.bySource[at] = append(x.bySource[at], user)
		}
	}
}

// isAmong reports whether a source is one of many, which are sorted.
func isAmong(sorted []checksum.Source, source checksum.Source) bool {
	_, found := slices.BinarySearchFunc(sorted, source, checksum.Source.Compare)
	return found
}

// unuse takes a workload from those that use a source.
func (x *index) unuse(at rollout.SourceRef, user workload.Ref) {
	users := x.bySource[at]
	if len(users) == 1 {
		delete(x.bySource, at)
		return
	}
	i, last := slices.Index(users, user), len(users)-1
	users[i], users[last] = users[last], workload.Ref{}
	x.bySource[at] = users[:last]
}

// putByName has a workload among those that name sources by patterns, or not.
func (x *index) putByName(user workload.Ref, in bool) {
	if !in {
		if delete(x.byName[user.Namespace], user); len(x.byName[user.Namespace]) == 0 {
			delete(x.byName, user.Namespace)
		}
		return
	}
	if x.byName[user.Namespace] == nil {
		x.byName[user.Namespace] = map[workload.Ref]struct{}{}
	}
	x.byName[user.Namespace][user] = struct{}{}
}

func (x *index) remove(user workload.Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.set(user, nil)
}

// renew takes the answer to a re-admission, unless the watch has told of
// something newer meanwhile, such as a deletion. Who has looked at the workload
// knows what that has changed; what others have said of it since is news, that the
// watch will not tell any more.
func (x *index) renew(user workload.Ref, s *subject) {
	x.update(func() []workload.Ref {
		if known := x.subjects[user]; known != nil && x.take(user, s) && !known.saysAs(s) {
			return []workload.Ref{user}
		}
		return nil
	})
}

// gone forgets a workload that the API server does not know, if nothing newer
// of that name has come meanwhile.
func (x *index) gone(user workload.Ref, was *subject) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.subjects[user] == was {
		x.set(user, nil)
	}
}

// replace makes a list of one kind in one namespace ("" for all) the truth, and
// wakes those that it holds, and those that are gone.
func (x *index) replace(kind *workload.Kind, namespace string, list map[workload.Ref]*subject) {
	x.update(func() (wake []workload.Ref) {
		for user := range x.subjects {
			if _, ok := list[user]; !ok && user.Kind == kind && (namespace == "" || user.Namespace == namespace) {
				x.set(user, nil)
				wake = append(wake, user)
			}
		}
		for user, s := range list {
			x.set(user, s)
			wake = append(wake, user)
		}
		return wake
	})
}

// refresh looks anew at what concerns every workload.
func (x *index) refresh() {
	x.update(func() []workload.Ref {
		x.refreshed("")
		return nil
	})
}

// reconsider looks anew at what concerns the workloads of a namespace, and wakes
// them.
func (x *index) reconsider(namespace string) {
	x.update(func() []workload.Ref { return x.refreshed(namespace) })
}

// refreshed indexes workloads under their present policy. What others hold of them does
// not change under them.
func (x *index) refreshed(namespace string) (all []workload.Ref) {
	for user, s := range x.subjects {
		if namespace == "" || user.Namespace == namespace {
			same := *s
			x.set(user, &same)
			all = append(all, user)
		}
	}
	return all
}

// update does something under the lock, and wakes workloads after that.
func (x *index) update(do func() (wake []workload.Ref)) {
	wake := func() []workload.Ref {
		x.mu.Lock()
		defer x.mu.Unlock()
		return do()
	}()
	for _, user := range wake {
		x.woken(user)
	}
}
