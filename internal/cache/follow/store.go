package follow

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Store passes on the objects of one watch, all of type T, and keeps none of them. It
// records how the watch goes. It is a cache.ReflectorStore whose methods never return an
// error: a Reflector would log the object with it.
type Store[T runtime.Object] struct {
	// Resource is what is watched, in the plural (configmaps).
	Resource string
	// Namespace is where; "" is everywhere.
	Namespace string
	// Selector restricts it; nil is no restriction.
	Selector fields.Selector
	// Transform returns what is kept of an object as the client decodes it; false if the object is of
	// another kind, which ends the list or the watch. nil passes on objects as they are, such as a
	// single one that is only watched for changes.
	Transform func(whole runtime.Object) (T, bool)
	// Event is called with each object that was made or changed, or that was deleted.
	Event func(object T, deleted bool)
	// All is called with all objects that there are, as of a resourceVersion.
	All func(objects []T, resourceVersion string)
	// Forbidden is called each time that the API server refuses the list (403); it may end
	// the context of Run. nil: it is asked again for ever.
	Forbidden func()
	// First is called once, when all objects were listed for the first time; may be nil.
	First func()
	// Clock gives the times of progress; nil is the real one.
	Clock clock.PassiveClock

	Progress        Progress
	filled, refused atomic.Bool
}

// Run watches until ctx ends, whatever the API server does.
func (s *Store[T]) Run(ctx context.Context, client cache.Getter) {
	lw := newListWatch(asking{client, s.asked}, s.Resource, s.Namespace, s.Selector, s.keep)
	list := lw.ListWithContextFunc
	lw.ListWithContextFunc = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		found, err := list(ctx, options)
		forbidden := apierrors.IsForbidden(err)
		if forbidden && s.Namespace != metav1.NamespaceAll {
			s.progressed() // there is no more to be known: the namespace may be gone
		}
		if forbidden || err == nil { // what else fails says nothing of rights
			s.refused.Store(forbidden)
		}
		if forbidden && s.Forbidden != nil {
			s.Forbidden()
		}
		return found, err
	}
	logger := klog.FromContext(ctx)
	// It expects no type: bookmarks are of another one than what is kept.
	cache.NewReflectorWithOptions(lw, nil, s, cache.ReflectorOptions{
		Logger: &logger, Name: "configstamp", TypeDescription: s.Resource, Backoff: Backoff(),
	}).RunWithContext(ctx)
}

// keep is Transform for a Reflector.
func (s *Store[T]) keep(whole runtime.Object) (runtime.Object, bool) {
	if s.Transform == nil {
		return whole, true
	}
	kept, ok := s.Transform(whole)
	return kept, ok
}

// Filled reports whether the first list is complete, and All has returned from it.
func (s *Store[T]) Filled() bool { return s.filled.Load() }

// Refused reports whether the API server refused the last list (403): the right to it
// is missing, as it is when a namespace is gone and its Role with it.
func (s *Store[T]) Refused() bool { return s.refused.Load() }

// Pending reports whether the first list is still to be waited for. Nobody waits for a
// single namespace that the API server refuses: it may be gone.
func (s *Store[T]) Pending() bool {
	return !s.Filled() && (s.Namespace == metav1.NamespaceAll || !s.Refused())
}

// Add implements cache.ReflectorStore.
func (s *Store[T]) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *Store[T]) Update(object any) error {
	s.event(object, false)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *Store[T]) Delete(object any) error {
	s.event(object, true)
	return nil
}

func (s *Store[T]) event(object any, deleted bool) {
	s.progressed()
	if typed, ok := object.(T); ok {
		s.Event(typed, deleted)
	}
}

// Replace implements cache.ReflectorStore.
func (s *Store[T]) Replace(objects []any, resourceVersion string) error {
	s.progressed()
	all := make([]T, 0, len(objects))
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			all = append(all, typed)
		}
	}
	s.All(all, resourceVersion)
	s.refused.Store(false)
	if first := !s.filled.Swap(true); first && s.First != nil {
		s.First()
	}
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (s *Store[T]) Bookmark(string) error {
	s.progressed()
	return nil
}

// Resync implements cache.ReflectorStore; there is nothing to do.
func (s *Store[T]) Resync() error { return nil }

func (s *Store[T]) now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock.Now()
}

func (s *Store[T]) progressed() { s.Progress.Made(s.now()) }

func (s *Store[T]) asked() { s.Progress.Asked(s.now()) }
