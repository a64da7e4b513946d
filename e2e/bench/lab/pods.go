package lab

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// Births watches the Pods of a namespace and knows when each was created, bound
// to a node, and ready. Stop it.
type Births struct {
	watch *toolswatch.RetryWatcher

	mu   sync.Mutex
	pods map[types.UID]*birth
}

type birth struct{ created, bound, ready time.Time }

// Births begins to watch; Pods that are there already do not count.
func (l *Lab) Births(ctx context.Context, namespace string) (*Births, error) {
	client := l.Client.CoreV1().Pods(namespace)
	list, err := client.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("listing Pods of %s: %w", namespace, err)
	}
	b := &Births{pods: map[types.UID]*birth{}}
	b.watch, err = toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching Pods of %s: %w", namespace, err)
	}
	go func() {
		for event := range b.watch.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				b.see(pod, event.Type == watch.Added)
			}
		}
	}()
	return b, nil
}

// Stop ends the watch.
func (b *Births) Stop() { b.watch.Stop() }

func (b *Births) see(pod *corev1.Pod, added bool) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.pods[pod.UID]
	if known == nil {
		if !added {
			return
		}
		known = &birth{created: now}
		b.pods[pod.UID] = known
	}
	if known.bound.IsZero() && pod.Spec.NodeName != "" {
		known.bound = now
	}
	if known.ready.IsZero() && podReady(pod) {
		known.ready = now
	}
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Took is, of every Pod that became ready, the time from its creation until a
// node was found for it, and from then until it was ready.
func (b *Births) Took() (toBound, toReady []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, known := range b.pods {
		if !known.ready.IsZero() {
			toBound, toReady = append(toBound, known.bound.Sub(known.created)), append(toReady, known.ready.Sub(known.bound))
		}
	}
	return toBound, toReady
}
