package controller

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Workload is all that is kept of one workload.
type Workload struct {
	uid             types.UID
	resourceVersion string
	generation      int64
	inject          string // value of the opt-in label
	deleting        bool
	owned           bool // its owner rolls it
	records         checksum.Records
	settings        map[string]string    // its annotations that are a policy
	foreign         *checksum.Foreign    // what they say in other products' dialects
	references      []checksum.Reference // joined
	fault           string               // why the template could not be read
	sources         []checksum.Source    // what it is found by
	status          workload.Status      // how far its newest revision is
	still           time.Time            // since when it rolls without any progress
	best            rollout.Extent       // how far it has been while it rolls
	calm            time.Time            // since when it rolls no more, as far as we have seen
	relapsed        bool                 // it was rolled out before, at this generation, and fell back
}

// read reads a workload as the API server writes it.
func (o *Options) read(form workload.Reader, body []byte) (*workload.Object, *Workload, error) {
	object, err := form.Decode(body)
	if err != nil {
		return nil, nil, err
	}
	status, err := form.Status(body)
	if err != nil {
		return nil, nil, err
	}
	references, err := object.References()
	s := faulty(object, err)
	s.references = checksum.Joined(references)
	s.foreign = object.Foreign(o.Dialects)
	s.owned = object.RolledByOwner(o.Kinds)
	s.status = status
	// A baseline that cannot be read counts as none; the webhook drops it.
	s.records, _ = object.Records()
	return object, s, nil
}

// faulty is a workload with its metadata alone. err, if not nil, is why its template cannot
// be read.
func faulty(object *workload.Object, err error) *Workload {
	s := &Workload{
		uid:             object.UID,
		resourceVersion: object.ResourceVersion,
		generation:      object.Generation,
		inject:          object.Labels[checksum.InjectLabel],
		deleting:        object.DeletionTimestamp != nil,
		settings:        checksum.SettingsOf(object.Annotations),
	}
	if err != nil {
		s.fault = err.Error()
	}
	return s
}

// received carries a Workload through client-go's Reflector.
type received struct {
	workload.Ref
	*Workload
}

// GetObjectKind implements runtime.Object.
func (r received) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object; what was received never changes.
func (r received) DeepCopyObject() runtime.Object { return r }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (r received) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, ResourceVersion: r.resourceVersion}
}

// saysAs reports whether what people and owners say in a workload's metadata, for
// which no generation counts, is what another version of it has.
func (s *Workload) saysAs(other *Workload) bool {
	return s.inject == other.inject && s.deleting == other.deleting && s.owned == other.owned &&
		maps.Equal(s.settings, other.settings) && reflect.DeepEqual(s.foreign, other.foreign)
}

// compare finds out, from what was known before, since when a workload that rolls has
// made no progress, and since when one that is rolled out is.
func (s *Workload) compare(known *Workload, now time.Time) {
	same := known != nil && known.uid == s.uid && known.generation == s.generation
	s.relapsed = same && (known.relapsed || known.status.Phase == workload.RolledOut && s.status.Phase == workload.Rolling)
	if s.status.Phase != workload.Rolling {
		if same {
			s.still, s.best, s.calm = known.still, known.best, known.calm
			if known.status.Phase == workload.Rolling {
				s.calm = now
			}
		}
		return
	}
	s.still, s.best = now, rollout.NoExtent()
	if same && (known.status.Phase == workload.Rolling || now.Sub(known.calm) < rollout.CalmAfter) {
		s.still, s.best = known.still, known.best
	}
	if s.best.Grows(&s.status) {
		s.still = now
	}
}

// index holds the workloads, and for each source those that reference it, so
// that a change lists nothing.
type index struct {
	woken func(workload.Ref)
	// remade is called of a workload that is another one of its name.
	remade func(workload.Ref)
	// concern gives the sources that concern a workload, by its policy, sorted.
	concern func(workload.Ref, *Workload) []checksum.Source
	now     func() time.Time

	mu        sync.RWMutex
	workloads map[workload.Ref]*Workload
	bySource  map[rollout.SourceRef][]workload.Ref // most have one, for which a map is eight times the size
}

func newIndex(woken func(workload.Ref), concern func(workload.Ref, *Workload) []checksum.Source, now func() time.Time) *index {
	return &index{woken: woken, remade: func(workload.Ref) {}, concern: concern, now: now, workloads: map[workload.Ref]*Workload{}, bySource: map[rollout.SourceRef][]workload.Ref{}}
}

func (x *index) get(user workload.Ref) *Workload {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.workloads[user]
}

// count counts some workloads; nil: all.
func (x *index) count(counts func(workload.Ref, *Workload) bool) (n int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for user, s := range x.workloads {
		if counts == nil || counts(user, s) {
			n++
		}
	}
	return n
}

func (x *index) users(namespace string, source checksum.Source) []workload.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	users := slices.Clone(x.bySource[rollout.SourceRef{Namespace: namespace, Source: source}])
	for _, user := range x.bySource[rollout.SourceRef{Namespace: namespace}] {
		if s := x.workloads[user]; s.foreign.Named(source) && !slices.Contains(s.sources, source) {
			users = append(users, user)
		}
	}
	return users
}

func (x *index) all() []workload.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(x.workloads), workload.Ref.Compare)
}

// take takes a workload as it was received, unless something newer is known of that
// name, and reports whether anything that counts is new. An object whose generation stays
// has the template that it had.
func (x *index) take(user workload.Ref, s *Workload) (news bool) {
	known := x.workloads[user]
	if known != nil {
		if order, err := resourceversion.CompareResourceVersion(s.resourceVersion, known.resourceVersion); err == nil && order < 0 {
			return false
		}
	}
	x.set(user, s)
	return known == nil || known.uid != s.uid || known.generation != s.generation || !known.records.Equal(s.records) ||
		known.status.Phase != s.status.Phase || known.fault != s.fault || !known.saysAs(s)
}

// foundBy is what the index finds a workload by, sorted. The zero Source is for all that
// it names by patterns.
func (s *Workload) foundBy() []checksum.Source {
	switch {
	case s == nil:
		return nil
	case s.foreign == nil || len(s.foreign.Names) == 0:
		return s.sources
	}
	return append([]checksum.Source{{}}, s.sources...)
}

// set replaces what is known of a workload; nil forgets it.
func (x *index) set(user workload.Ref, s *Workload) {
	known := x.workloads[user]
	if s == nil {
		delete(x.workloads, user)
	} else {
		x.workloads[user] = s
		s.compare(known, x.now())
		s.sources = x.concern(user, s)
	}
	if known != nil && s != nil {
		if s.uid != known.uid {
			x.remade(user)
		}
		if slices.Equal(known.sources, s.sources) {
			s.sources = known.sources // one copy is enough
		}
	}
	was, is := known.foundBy(), s.foundBy()
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
	users := slices.DeleteFunc(x.bySource[at], func(other workload.Ref) bool { return other == user })
	if x.bySource[at] = users; len(users) == 0 {
		delete(x.bySource, at)
	}
}

// renew takes the answer to a re-admission, unless the watch has told of
// something newer meanwhile, such as a deletion. It wakes the workload if somebody else has
// changed its settings since: the watch will not tell of that any more.
func (x *index) renew(user workload.Ref, s *Workload) {
	x.update(func() (wake []workload.Ref) {
		if known := x.workloads[user]; known != nil && x.take(user, s) && !known.saysAs(s) {
			wake = append(wake, user)
		}
		return wake
	})
}

// gone forgets a workload that the API server does not know, if nothing newer
// of that name has come meanwhile.
func (x *index) gone(user workload.Ref, was *Workload) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.workloads[user] == was {
		x.set(user, nil)
	}
}

// replace makes a list of one kind in one namespace ("" for all) the truth, and
// wakes those that it holds, and those that are gone.
func (x *index) replace(kind *workload.Kind, namespace string, list map[workload.Ref]*Workload) {
	x.update(func() (wake []workload.Ref) {
		for user := range x.workloads {
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

// refresh indexes every workload under its present policy.
func (x *index) refresh() {
	x.update(func() []workload.Ref {
		x.refreshed("")
		return nil
	})
}

// reconsider indexes the workloads of a namespace under their present policy, and wakes
// them.
func (x *index) reconsider(namespace string) {
	x.update(func() []workload.Ref { return x.refreshed(namespace) })
}

// refreshed indexes workloads of a namespace ("": of all) under their present policy. It
// copies each, so that a reader's copy does not change.
func (x *index) refreshed(namespace string) (all []workload.Ref) {
	for user, s := range x.workloads {
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
