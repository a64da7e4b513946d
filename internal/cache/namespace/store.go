package namespace

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/refusal"
)

// readEvery is how often Namespaces are read that cannot be watched.
const readEvery = 30 * time.Second

// readWithin bounds one read of a given Namespace; askWithin one for an admission,
// which makes two at most and has to answer within three seconds (timeoutSeconds).
const (
	readWithin = 10 * time.Second
	askWithin  = time.Second
)

// Store holds what Namespaces say. Its methods may be called at any time and
// from anywhere, unless they say otherwise.
type Store struct {
	client   rest.Interface
	given    []string
	optIn    checksum.OptIn
	sink     *sink
	onChange []func(namespace string)
}

// NewStore makes a Store; it is empty until Run. It watches all Namespaces, of which
// optIn says which are opted in, or reads the given ones now and then: these are opted
// in, whatever they are labelled, and where the right to read them is missing they have
// no policy.
func NewStore(cfg *rest.Config, given []string, optIn checksum.OptIn) (*Store, error) {
	s := &Store{given: given, optIn: optIn}
	client, err := follow.Typed(cfg, corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		return nil, fmt.Errorf("making the client that reads Namespaces: %w", err)
	}
	s.client, s.sink = client, newSink(s.changed)
	s.sink.Transform = s.named
	for _, name := range given {
		s.sink.known[name] = checksum.Namespace{OptedIn: true}
	}
	return s, nil
}

// OnChange has call called whenever a Namespace says something else than
// before; after the initial fill, and not for the end of a Namespace. It must be
// called before Run.
func (s *Store) OnChange(call func(namespace string)) { s.onChange = append(s.onChange, call) }

func (s *Store) changed(namespace string) {
	for _, call := range s.onChange {
		call(namespace)
	}
}

// HasSynced reports whether the initial fill is complete.
func (s *Store) HasSynced() bool { return s.sink.filled() }

// LastProgress is when the API server last sent anything of Namespaces, zero
// until it has.
func (s *Store) LastProgress() time.Time { return s.sink.Progress.Last() }

// LastSign is when the watch of Namespaces last showed life, zero until it has: see
// follow.Progress.Sign.
func (s *Store) LastSign() time.Time { return s.sink.Progress.Sign() }

// Get is what is known of a Namespace, from memory.
func (s *Store) Get(namespace string) checksum.Namespace {
	known, _ := s.sink.get(namespace)
	return known
}

// Each calls yield, which must not use the Store, with each Namespace that is known.
func (s *Store) Each(yield func(name string, says checksum.Namespace)) { s.sink.each(yield) }

// Look returns Get, but reads a Namespace that memory does not hold.
func (s *Store) Look(ctx context.Context, namespace string) (checksum.Namespace, error) {
	if known, ok := s.sink.get(namespace); ok {
		return known, nil
	}
	return s.Read(ctx, namespace)
}

// Read reads a Namespace from the API server. A given one is opted in anyway, and returned from memory.
func (s *Store) Read(ctx context.Context, namespace string) (checksum.Namespace, error) {
	if slices.Contains(s.given, namespace) {
		return s.Get(namespace), nil
	}
	found, err := s.read(ctx, namespace, askWithin)
	if err != nil {
		return checksum.Namespace{}, err
	}
	return found.says, nil
}

func (s *Store) read(ctx context.Context, namespace string, within time.Duration) (*named, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	obj, err := s.client.Get().Resource("namespaces").Name(namespace).Do(ctx).Get()
	if err != nil {
		return nil, fmt.Errorf("reading Namespace %s: %w", namespace, refusal.Plain(err))
	}
	found, ok := s.named(obj)
	if !ok {
		return nil, fmt.Errorf("reading Namespace %s: the server answered with %T", namespace, obj)
	}
	return found, nil
}

// Run watches until ctx ends. It must be called once.
func (s *Store) Run(ctx context.Context) error {
	if len(s.given) > 0 {
		s.readGiven(ctx)
		return nil
	}
	s.sink.Run(ctx, s.client)
	return nil
}

// readGiven reads the given Namespaces until ctx ends. A Namespace is a resource
// of the whole cluster, so that a Role within it gives the right to read it by
// name, and none to watch.
func (s *Store) readGiven(ctx context.Context) {
	refused, answered := map[string]bool{}, map[string]bool{}
	for {
		s.sink.Progress.Asked(time.Now())
		var reading sync.WaitGroup
		found := make([]*named, len(s.given))
		errs := make([]error, len(s.given))
		for i, namespace := range s.given {
			reading.Go(func() { found[i], errs[i] = s.read(ctx, namespace, readWithin) })
		}
		reading.Wait()
		for i, namespace := range s.given {
			if apierrors.IsForbidden(errs[i]) {
				s.sink.Progress.Made(time.Now()) // there is no more to be known
			}
			if errs[i] == nil || apierrors.IsForbidden(errs[i]) || apierrors.IsNotFound(errs[i]) {
				answered[namespace] = true
			}
			switch err := errs[i]; {
			case err == nil:
				refused[namespace] = false
				_ = s.sink.Update(found[i])
			case ctx.Err() != nil:
				return
			case apierrors.IsForbidden(err) && !refused[namespace]:
				refused[namespace] = true
				klog.FromContext(ctx).Info("The policy of this Namespace is not known: a Role in it must allow configstamp to get it", "namespace", namespace)
			case !apierrors.IsForbidden(err):
				klog.FromContext(ctx).Info("This Namespace could not be read; its last known policy stays in force", "namespace", namespace, "reason", err.Error())
			}
		}
		pause := readEvery
		if !slices.ContainsFunc(s.given, func(name string) bool { return !answered[name] }) { // else a policy, such as a pause, may be there that is not known
			s.sink.full.Store(true)
		} else {
			pause = time.Second
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// named carries what a Namespace says through client-go's Reflector.
type named struct {
	metav1.PartialObjectMetadata
	says checksum.Namespace
}

// DeepCopyObject implements runtime.Object; what was received never changes.
func (n *named) DeepCopyObject() runtime.Object { return n }

// named returns what a Namespace says, false for any other object.
func (s *Store) named(whole runtime.Object) (*named, bool) {
	namespace, ok := whole.(*corev1.Namespace)
	if !ok {
		return nil, false
	}
	n := &named{
		PartialObjectMetadata: metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: namespace.Name, ResourceVersion: namespace.ResourceVersion}},
		says:                  checksum.NamespaceOf(&namespace.ObjectMeta, s.optIn),
	}
	n.says.OptedIn = n.says.OptedIn || slices.Contains(s.given, namespace.Name)
	return n, true
}
