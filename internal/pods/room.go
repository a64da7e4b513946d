package pods

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/podtruth"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Sources is the store of digests.
type Sources interface {
	// Content is what memory holds of a source, nil when it does not exist.
	Content(namespace string, source checksum.Source) *checksum.Content
	// Written is when a source's data was last written, and when the source was created.
	Written(namespace string, source checksum.Source) (written, created time.Time)
	// Listed is when all sources of a kind were last read anew: what came and went before that
	// was not seen. Zero: they are not watched.
	Listed(namespace string, kind checksum.Kind) time.Time
	// LastProgress is when the watch that has been silent longest last told anything.
	LastProgress() time.Time
}

// Options say what a Room asks.
type Options struct {
	Sources Sources
	// Ring is nil while there is no key.
	Ring func() *checksum.Ring
	// Wanted reports whether the pods of a namespace are to be followed.
	Wanted func(namespace string) bool
	// Policy is what counts for a workload, which is the first of several that there is; false
	// when it is not served, or there is none.
	Policy func(makers []workload.Ref) (policy checksum.Policy, served bool)
	Kinds  workload.Table
	// Namespaces restricts it to these; empty: all.
	Namespaces []string
	// Settle is --settle.
	Settle time.Duration
	Clock  clock.WithTicker
}

// Room knows all pods that are followed. Make it with New. Its methods may be called at any
// time, from any goroutine.
type Room struct {
	options  Options
	rules    podtruth.Rules
	messages *workload.PodMessages
	groups   groups
	passed   passed

	mu      sync.Mutex // for what follows
	leads   bool
	pods    map[string]map[uid]kept // by namespace
	sources map[rollout.SourceRef]*remembered
	counts  map[string]*Counts // by namespace, of the last count
}

// Counts are how many pods are in each state.
type Counts [podtruth.Uncounted]int

// remembered is what is remembered of a source that a pod uses. content is what it held when
// that was last noted: the store may be a moment ahead, as it tells of an edit after it has it.
type remembered struct {
	podtruth.Memory
	content *checksum.Content
	edited  bool // while it is remembered
}

// New makes a Room that follows nothing until Run.
func New(options Options) *Room {
	r := &Room{options: options, rules: podtruth.Rules{Settle: options.Settle}, messages: workload.NewPodMessages(), passed: passed{anew: make(chan struct{}, 1)}}
	r.begin(false)
	r.passed.begin()
	return r
}

// begin lets go of everything; leads tells that it is to be filled.
func (r *Room) begin(leads bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leads, r.pods, r.sources, r.counts = leads, map[string]map[uid]kept{}, map[rollout.SourceRef]*remembered{}, nil
	r.groups.sweep(nil)
}

// told takes a pod as a watch tells of it.
func (r *Room) told(a *arrived, deleted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if deleted || a.group == nil {
		r.remove(a.namespace, a.uid)
		return
	}
	r.put(a)
}

func (r *Room) remove(namespace string, id uid) {
	in := r.pods[namespace]
	if delete(in, id); len(in) == 0 {
		delete(r.pods, namespace)
	}
}

// put keeps a pod, with what was proven of it while its containers have not started anew.
func (r *Room) put(a *arrived) {
	now := a.kept
	in := r.pods[now.group.namespace]
	if in == nil {
		in = map[uid]kept{}
		r.pods[now.group.namespace] = in
	}
	if was, known := in[a.uid]; known && was.group == now.group && was.proof != nil {
		now.proof = was.proof
		if !was.sameStarts(&now) {
			now.proof = now.group.without(was.proof, func(use int) bool {
				container := now.group.uses[use].Container
				return was.start(container) != now.start(container)
			})
		}
	}
	in[a.uid] = now
}

// replace makes a list of one namespace ("" for all) the truth.
func (r *Room) replace(namespace string, all []*arrived) {
	r.mu.Lock()
	defer r.mu.Unlock()
	listed := make(map[uid]bool, len(all))
	for _, a := range all {
		if a.group != nil {
			listed[a.uid] = true
			r.put(a)
		}
	}
	for in, pods := range r.pods {
		for id := range pods {
			if !listed[id] && (namespace == "" || namespace == in) {
				r.remove(in, id)
			}
		}
	}
}

// Edited tells that a source may hold something else than before.
func (r *Room) Edited(namespace string, source checksum.Source, _ *checksum.Content) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.sources[rollout.SourceRef{Namespace: namespace, Source: source}]
	if known == nil { // no pod uses it
		return
	}
	is := r.options.Sources.Content(namespace, source) // before its time: see memory
	if !known.content.SameEntries(is) {
		now := r.options.Clock.Now()
		written, _ := r.options.Sources.Written(namespace, source)
		next := known.Changed(now, written)
		edited := next.Written // not before that
		if edited.IsZero() {
			edited = now.Add(-podtruth.Heard - podtruth.Skew)
		}
		r.proveBefore(namespace, source, edited)
		known.Memory, known.edited = next, true
	}
	known.content = is
}

// memory is what is remembered of a source; it begins when somebody asks for the first time,
// and again when sources were listed.
func (r *Room) memory(at rollout.SourceRef) *remembered {
	known, listed := r.sources[at], r.options.Sources.Listed(at.Namespace, at.Source.Kind)
	if known != nil && !listed.After(known.Since) {
		return known
	}
	// If an edit comes between, the time is too late, which makes it less certain and not wrong.
	content := r.options.Sources.Content(at.Namespace, at.Source)
	written, _ := r.options.Sources.Written(at.Namespace, at.Source)
	known = &remembered{Memory: podtruth.Begin(r.options.Clock.Now(), written), content: content}
	r.sources[at] = known
	return known
}
