package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/discovery"
	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/refusal"
)

// ErrNotWatched is wrapped by what Store.Cached returns when the Store cannot
// know: before the initial fill, or for a namespace that it does not watch.
var ErrNotWatched = errors.New("not watched")

// Options say what a Store watches.
type Options struct {
	// Namespaces to watch; none means all, which needs cluster-wide rights.
	Namespaces []string
	// ConfigMapsAlone leaves Secrets out: none is watched, and none can be read.
	ConfigMapsAlone bool
	// Classes returns whether the API server serves what the pods of
	// SecretProviderClasses report; nil: that is not watched.
	Classes discovery.Client
	// Clock gives the times of LastProgress; nil means the real one.
	Clock clock.PassiveClock
}

// Store holds a Record for each ConfigMap and Secret, except Helm's release
// Secrets (type helm.sh/release.v1), which are many, big and not configuration;
// for a Store they do not exist; and for each SecretProviderClass of which a pod
// reports, where that is watched. Its methods may be called at any time and from
// anywhere, unless they say otherwise.
type Store struct {
	client    *rest.RESTClient
	condenser *condenser
	sinks     map[sinkKey]*sink
	classes   *classes
	reports   *discovery.Resources // nil: they are not watched
	all       bool
	onChange  []onChange

	clock     clock.PassiveClock
	unwatched sync.Map // of place: when it was read (time.Time); see Confirm

	onSnapshot []func(namespace, name string)
	onFilled   []func(namespace string)
}

// cache holds all sources of one kind, of one namespace or of all.
type cache interface {
	get(namespace, name string) (Record, bool)
	names(namespace string) []string
	Filled() bool
}

// sinkKey says what one Reflector watches; namespace is "" for all.
type sinkKey struct {
	kind      checksum.Kind
	namespace string
}

// NewStore makes a Store; it is empty until Run. cfg is expected to have QPS -1:
// with the default of five requests a second a Checker proves nothing in time.
func NewStore(cfg *rest.Config, options Options) (*Store, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	own := rest.CopyConfig(cfg)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
	client, err := follow.Typed(own, corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		return nil, fmt.Errorf("making the client that reads ConfigMaps and Secrets: %w", err)
	}
	s := &Store{client: client, condenser: &condenser{clock: options.Clock}, sinks: map[sinkKey]*sink{}, clock: options.Clock}
	s.classes = newClasses(s.changed)
	namespaces := slices.Compact(slices.Sorted(slices.Values(options.Namespaces)))
	if len(namespaces) == 0 || slices.Contains(namespaces, metav1.NamespaceAll) {
		namespaces, s.all = []string{metav1.NamespaceAll}, true
	}
	kinds := []checksum.Kind{checksum.ConfigMap, checksum.Secret}
	if options.ConfigMapsAlone {
		kinds = kinds[:1]
	}
	for _, namespace := range namespaces {
		for _, kind := range kinds {
			sink := newSink(kind, options.Clock, s.changed)
			sink.Namespace, sink.Transform = namespace, s.condenser.condense
			sink.snapshotChanged = s.snapshotChanged
			if namespace != metav1.NamespaceAll {
				sink.First = func() { s.filled(namespace) }
			}
			s.sinks[sinkKey{kind, namespace}] = sink
		}
	}
	if options.Classes != nil {
		s.reports = discovery.New(options.Classes, s.classes.resource(cfg, namespaces))
	}
	return s, nil
}

// OnChange has call called, from the goroutine of a Reflector and outside all
// locks, whenever the content of a source changes (by Content.Equal), a source
// appears or disappears, or an annotation that is kept changes; not for writes
// that change nothing of these. It must return soon. The Store holds the new
// state, or a later one, by then.
//
// There is no call during the initial fill of a kind (and namespace, when only
// some are watched): a caller that needs that looks at everything once HasSynced, and OnFilled.
// What changes while the API server could not be watched is called for after
// the next fill. Of SecretProviderClasses there is a call for the first report too,
// as HasSynced does not wait for it. It must be called before Run.
//
// was is what the source held before, nil when it did not exist, or when that is not
// known.
func (s *Store) OnChange(call func(namespace string, source checksum.Source, was *checksum.Content)) {
	s.onChange = append(s.onChange, call)
}

func (s *Store) changed(namespace string, source checksum.Source, was *checksum.Content) {
	for _, call := range s.onChange {
		call(namespace, source, was)
	}
}

// OnFilled has call called when the initial fill of a kind is complete in one of given namespaces: it
// may come after HasSynced, which does not wait for one that the API server refuses. It must be
// called before Run.
func (s *Store) OnFilled(call func(namespace string)) { s.onFilled = append(s.onFilled, call) }

func (s *Store) filled(namespace string) {
	for _, call := range s.onFilled {
		call(namespace)
	}
}

// onChange receives a source that has changed, and what it held before.
type onChange func(namespace string, source checksum.Source, was *checksum.Content)

// Run watches until ctx ends, and comes back by itself from whatever the API
// server does. It must be called once.
func (s *Store) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, sink := range s.sinks {
		running.Go(func() { sink.Run(ctx, s.client) })
	}
	if s.reports != nil {
		running.Go(func() { s.reports.Run(ctx) })
	}
	running.Wait()
	return nil
}

func resourceOf(kind checksum.Kind) string { return string(kind) + "s" }

// HasSynced reports whether the initial fill is complete, SecretProviderClasses
// aside: of those nothing is known until the first report. Of given namespaces
// those do not count that the API server refuses, as it does when one is gone:
// the others do not wait for them, and Cached has nothing of them.
func (s *Store) HasSynced() bool {
	filled := false
	for _, sink := range s.sinks {
		if sink.Pending() {
			return false
		}
		filled = filled || sink.Filled()
	}
	return filled
}

// LastProgress is when the watch of ConfigMaps or Secrets that has been silent longest last delivered
// anything; zero until each has.
func (s *Store) LastProgress() time.Time { return follow.Oldest(s.progress()...) }

// LastSign is when the watch that has shown no life for longest last did; zero until
// each has: see follow.Progress.Sign.
func (s *Store) LastSign() time.Time { return follow.OldestSign(s.progress()...) }

func (s *Store) progress() []*follow.Progress {
	all := make([]*follow.Progress, 0, len(s.sinks))
	for _, sink := range s.sinks {
		all = append(all, &sink.Progress)
	}
	return all
}

// Counts is the number of sources held, by kind.
func (s *Store) Counts() map[checksum.Kind]int {
	counts := map[checksum.Kind]int{checksum.SecretProviderClass: s.classes.len()}
	for key, sink := range s.sinks {
		counts[key.kind] += sink.len()
	}
	return counts
}

// Get returns what is held of one source; false when it does not exist as far
// as is known, or is not watched.
func (s *Store) Get(namespace string, source checksum.Source) (Record, bool) {
	cache := s.cacheOf(namespace, source.Kind)
	if cache == nil {
		return Record{}, false
	}
	return cache.get(namespace, source.Name)
}

// Content is what memory holds of a source, nil when it does not exist.
func (s *Store) Content(namespace string, source checksum.Source) *checksum.Content {
	record, had := s.Get(namespace, source)
	if at, known := s.unwatched.Load(place{namespace, source}); !had && known && s.clock.Since(at.(time.Time)) < believedFor { //nolint:forcetypeassert // Confirm stores it
		return &checksum.Content{Unwatched: true}
	}
	return record.Content
}

// believedFor is how long a Secret that is not watched is believed to be there: no watch shows
// its removal.
const believedFor = 10 * time.Minute

// Confirm asks the API server whether a source that is missing in memory is there all the same, as a Secret that
// is not watched. Content says so from then on.
func (s *Store) Confirm(ctx context.Context, namespace string, source checksum.Source) error {
	record, err := s.read(ctx, namespace, source)
	switch {
	case err != nil:
		return err
	case record.Content != nil && record.Content.Unwatched:
		s.unwatched.Store(place{namespace, source}, s.clock.Now())
	default:
		s.unwatched.Delete(place{namespace, source})
	}
	return nil
}

// read reads a source, the zero Record when it does not exist.
func (s *Store) read(ctx context.Context, namespace string, source checksum.Source) (Record, error) {
	obj, err := s.client.Get().Namespace(namespace).Resource(resourceOf(source.Kind)).Name(source.Name).Do(ctx).Get()
	if err != nil {
		if err = refusal.Plain(err); isAbsent(err, source) {
			return Record{}, nil
		}
		return Record{}, fmt.Errorf("reading %s: %w", source, err)
	}
	o, ok := s.condenser.condense(obj)
	if !ok {
		return Record{}, fmt.Errorf("reading %s: the API server answered with %T", source, obj)
	}
	if o.snapshot != nil { // which is no source
		return Record{}, nil
	}
	return o.record(), nil
}

// Written is when a source's data was last written, and when the source was created;
// zero when that is not known.
func (s *Store) Written(namespace string, source checksum.Source) (written, created time.Time) {
	record, _ := s.Get(namespace, source)
	return record.Written, record.Created
}

// Version is a source's metadata.resourceVersion, "" when that is not known.
func (s *Store) Version(namespace string, source checksum.Source) string {
	record, _ := s.Get(namespace, source)
	return record.ResourceVersion
}

// Findings calls yield with each source that has something to report, such as
// settings that cannot be read.
func (s *Store) Findings(yield func(namespace string, source checksum.Source, found []checksum.Finding)) {
	for _, sink := range s.sinks {
		for at, found := range sink.found() {
			yield(at.Namespace, sink.source(at.Name), found)
		}
	}
}

// MadeAnew reports whether a source has the name of one that was immutable and held something else,
// so that nodes may never read it.
func (s *Store) MadeAnew(namespace string, source checksum.Source) bool {
	sink, watched := s.cacheOf(namespace, source.Kind).(*sink)
	return watched && slices.ContainsFunc(sink.found()[types.NamespacedName{Namespace: namespace, Name: source.Name}],
		func(f checksum.Finding) bool { return f.Reason == reason.MadeAnew })
}

// Names lists the sources of a kind in a namespace, as far as is known.
func (s *Store) Names(namespace string, kind checksum.Kind) []string {
	cache := s.cacheOf(namespace, kind)
	if cache == nil {
		return nil
	}
	return cache.names(namespace)
}

// count is how many sources of a kind are in a namespace, as far as is known.
func (s *Store) count(namespace string, kind checksum.Kind) int {
	sink, watched := s.cacheOf(namespace, kind).(*sink)
	if !watched {
		return 0
	}
	return sink.countIn(namespace)
}

// Namespaces lists those in which there is a source of a kind and name, sorted, as far
// as is known. It costs a look at each namespace.
func (s *Store) Namespaces(of checksum.Source) (namespaces []string) {
	for key, sink := range s.sinks {
		if key.kind == of.Kind {
			namespaces = append(namespaces, sink.namespaces(of.Name)...)
		}
	}
	slices.Sort(namespaces)
	return namespaces
}

// Cached answers from memory what Checker.Fresh answers from the API server. It
// fails, with ErrNotWatched, when the Store cannot know.
func (s *Store) Cached(namespace string, sources []checksum.Source) (checksum.Contents, error) {
	contents := make(checksum.Contents, len(sources))
	for _, source := range sources {
		cache := s.cacheOf(namespace, source.Kind)
		if cache == nil {
			return nil, fmt.Errorf("looking up %s in namespace %q: %w: the namespace is not among those given", source, namespace, ErrNotWatched)
		}
		if !cache.Filled() {
			return nil, fmt.Errorf("looking up %s in namespace %q: %w yet: the first list of %s is not complete; if it stays so, see the log for missing rights (list, watch)",
				source, namespace, ErrNotWatched, resourceOf(source.Kind))
		}
		record, _ := cache.get(namespace, source.Name)
		contents[source] = record.Content
	}
	return contents, nil
}

// cacheOf returns what holds the sources of a kind in a namespace, nil if they are not watched.
func (s *Store) cacheOf(namespace string, kind checksum.Kind) cache {
	if kind == checksum.SecretProviderClass {
		return s.classes
	}
	if s.all {
		namespace = metav1.NamespaceAll
	}
	if sink, watched := s.sinks[sinkKey{kind, namespace}]; watched {
		return sink
	}
	return nil
}
