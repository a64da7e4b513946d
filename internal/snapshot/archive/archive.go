package archive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/objects"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/snapshot"
)

// Why there is no snapshot. Errors of Ensure wrap one of these, or are something else, such
// as a request that took too long.
var (
	ErrQuota     = errors.New("the quota of the namespace has no room for a snapshot")
	ErrForbidden = errors.New("the API server, or an admission webhook or policy, refuses snapshots in the namespace")
	ErrForeign   = errors.New("a ConfigMap with the snapshot's name exists, and is not a snapshot of configstamp")
	ErrChanged   = errors.New("the source no longer holds that content")
)

var errNoKey = errors.New("there is no digest key yet")

// Reason is what an error of Ensure is called in metrics and warnings; nil is SnapshotKnown.
func Reason(err error) reason.Reason {
	for _, known := range []struct {
		err    error
		reason reason.Reason
	}{
		{ErrQuota, reason.SnapshotQuota}, {ErrForbidden, reason.SnapshotForbidden},
		{ErrForeign, reason.SnapshotForeign}, {ErrChanged, reason.SnapshotOvertaken},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	if err != nil {
		return reason.SnapshotFailed
	}
	return reason.SnapshotKnown
}

// Store is what the cluster holds, as far as is known (package source).
type Store interface {
	Snapshot(namespace, name string) (snapshot.Snapshot, bool)
	OnSnapshot(call func(namespace, name string))
}

// Options are what an Archive needs; Clock nil is the real one.
type Options struct {
	Store    Store
	Ring     func() *checksum.Ring
	Clock    clock.PassiveClock
	Registry prometheus.Registerer
}

// configMaps reads and writes those of a namespace.
type configMaps interface {
	Get(ctx context.Context, name string) (*corev1.ConfigMap, error)
	Create(ctx context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error)
}

// Archive makes and reads snapshots. Its methods may be called from anywhere.
type Archive struct {
	options Options
	client  func(namespace string) configMaps
	results *prometheus.CounterVec
	making  *calls[bool]
	looking *calls[*snapshot.Snapshot]

	mu     sync.Mutex
	recent map[types.NamespacedName]recent
}

// recent is what an answer of the API server told of a snapshot that memory does not know
// yet: nil, that there is none.
type recent struct {
	snapshot *snapshot.Snapshot
	until    time.Time
}

const (
	// within is how long a snapshot may take to be made, or read.
	within = time.Second
	// makingAtOnce bounds the bytes that are held: 1 MiB for each, and two copies on the wire.
	makingAtOnce  = 16
	lookingAtOnce = 8
	// The watch brings within these what an answer has told.
	recentFor = 10 * time.Second
	absentFor = time.Second
	// mostRecent bounds what is remembered of answers.
	mostRecent = 4096
)

// New makes an Archive. It must be before the Store runs.
func New(config *rest.Config, options Options) (*Archive, error) {
	client, err := objects.New[*corev1.ConfigMap](config, corev1.SchemeGroupVersion, corev1.AddToScheme, "configmaps", "")
	if err != nil {
		return nil, err
	}
	return newArchive(func(namespace string) configMaps { return client.In(namespace) }, options), nil
}

func newArchive(client func(namespace string) configMaps, options Options) *Archive {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	a := &Archive{
		options: options, client: client,
		making: newCalls[bool](makingAtOnce), looking: newCalls[*snapshot.Snapshot](lookingAtOnce),
		recent: map[types.NamespacedName]recent{},
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_snapshots_made_total",
			Help: "Snapshots that a workload needs, by result. Only with --pins.",
		}, []string{"result"}),
	}
	for _, result := range []reason.Reason{
		reason.SnapshotMade, reason.SnapshotKnown, reason.SnapshotQuota, reason.SnapshotForbidden,
		reason.SnapshotForeign, reason.SnapshotOvertaken, reason.SnapshotFailed,
	} {
		a.results.WithLabelValues(result.Label())
	}
	if options.Registry != nil {
		options.Registry.MustRegister(a.results)
	}
	options.Store.OnSnapshot(a.forget)
	return a
}

// Ensure sees to it that the snapshot called name of a source is there, is ours, and holds
// what its name says. There is no request when memory knows that. It must not be called for
// a dry run. An error wraps one of ErrQuota, ErrForbidden, ErrForeign, ErrChanged, or else.
func (a *Archive) Ensure(ctx context.Context, namespace string, of checksum.Source, name string) error {
	made, err := a.ensure(ctx, namespace, of, name)
	result := Reason(err)
	if made {
		result = reason.SnapshotMade
	}
	a.results.WithLabelValues(result.Label()).Inc()
	if err != nil {
		return fmt.Errorf("making snapshot %s of %s in namespace %q: %w", name, of, namespace, err)
	}
	return nil
}

func (a *Archive) ensure(ctx context.Context, namespace string, of checksum.Source, name string) (made bool, err error) {
	ring := a.options.Ring()
	if ring == nil {
		return false, errNoKey
	}
	if s, known := a.remembered(namespace, name); known && s != nil {
		return false, ours(ring, s, of)
	}
	at := types.NamespacedName{Namespace: namespace, Name: name}
	return a.making.do(ctx, at, func(ctx context.Context) (bool, error) { return a.write(ctx, ring, namespace, of, name) })
}

// ours is nil for a verified snapshot of a source.
func ours(ring *checksum.Ring, s *snapshot.Snapshot, of checksum.Source) error {
	if s.Of != of || !s.Verified(ring) {
		return ErrForeign
	}
	return nil
}

// makingPerCall is how many snapshots are made at once for one request: more than workloads
// have, so that all of them take one GET and one POST, and less than all that are made at once.
const makingPerCall = 12

// EnsureAll is Ensure for all that one request needs, within a second. It returns an error
// for each source whose snapshot is not there.
func (a *Archive) EnsureAll(ctx context.Context, namespace string, names map[checksum.Source]string) map[checksum.Source]error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	failed := map[checksum.Source]error{}
	var mu sync.Mutex
	var making sync.WaitGroup
	slots := make(chan struct{}, makingPerCall)
	for of, name := range names {
		making.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := a.Ensure(ctx, namespace, of, name); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[of] = err
			}
		})
	}
	making.Wait()
	return failed
}

// Content is what the snapshot called name of a source holds; nil without an error: there is
// none of that name, or it is not ours. An error says that it is not known.
func (a *Archive) Content(ctx context.Context, namespace, name string, of checksum.Source) (*checksum.Content, error) {
	ring := a.options.Ring()
	if ring == nil {
		return nil, errNoKey
	}
	s, known := a.remembered(namespace, name)
	if !known {
		var err error
		at := types.NamespacedName{Namespace: namespace, Name: name}
		s, err = a.looking.do(ctx, at, func(ctx context.Context) (*snapshot.Snapshot, error) { return a.look(ctx, namespace, name) })
		if err != nil {
			return nil, fmt.Errorf("reading snapshot %s of %s in namespace %q: %w", name, of, namespace, err)
		}
	}
	if s == nil || s.Of != of || !s.Verified(ring) {
		return nil, nil
	}
	return s.Content, nil
}

// Known is Content by memory alone: nil also where that does not know.
func (a *Archive) Known(namespace, name string, of checksum.Source) *checksum.Content {
	ring := a.options.Ring()
	s, _ := a.remembered(namespace, name)
	if s == nil || ring == nil || ours(ring, s, of) != nil {
		return nil
	}
	return s.Content
}

// look reads a snapshot, nil when there is none. A ConfigMap that does not even say that it
// is one is returned as one that nobody can verify.
func (a *Archive) look(ctx context.Context, namespace, name string) (*snapshot.Snapshot, error) {
	cm, err := a.client(namespace).Get(ctx, name)
	if err != nil {
		if err = refusal.Plain(err); isAbsent(err) {
			a.remember(namespace, name, nil, absentFor)
			return nil, nil
		}
		return nil, err
	}
	found, is := snapshot.From(cm)
	if !is {
		return &snapshot.Snapshot{Namespace: namespace, Name: name}, nil
	}
	a.remember(namespace, name, &found, recentFor)
	return &found, nil
}

// isAbsent reports whether an error is the API server's own word that an object does not
// exist. A 404 may come from something between us.
func isAbsent(err error) bool {
	var answer apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &answer) && answer.Status().Details != nil && answer.Status().Details.Name != ""
}

// remembered is what is known of a snapshot without a request; nil: there is none.
func (a *Archive) remembered(namespace, name string) (s *snapshot.Snapshot, known bool) {
	if found, ok := a.options.Store.Snapshot(namespace, name); ok {
		return &found, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	told, ok := a.recent[types.NamespacedName{Namespace: namespace, Name: name}]
	if !ok || !a.options.Clock.Now().Before(told.until) {
		return nil, false
	}
	return told.snapshot, true
}

func (a *Archive) remember(namespace, name string, s *snapshot.Snapshot, lasting time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.recent) >= mostRecent {
		clear(a.recent)
	}
	a.recent[types.NamespacedName{Namespace: namespace, Name: name}] = recent{s, a.options.Clock.Now().Add(lasting)}
}

// forget is called with what the watch has brought.
func (a *Archive) forget(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.recent, types.NamespacedName{Namespace: namespace, Name: name})
}

// MadeAt is when a snapshot was made, as it says itself; zero if that is not known.
func (a *Archive) MadeAt(namespace, name string) time.Time {
	s, known := a.remembered(namespace, name)
	if !known || s == nil {
		return time.Time{}
	}
	made, err := time.Parse(time.RFC3339, s.Made)
	if err != nil {
		return time.Time{}
	}
	return made
}
