package lab

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// Rollouts watches all Deployments of the cluster and knows when each one began
// to roll and when it was done. Stop it.
type Rollouts struct {
	watch *toolswatch.RetryWatcher

	mu     sync.Mutex
	seen   map[types.NamespacedName]*deployed
	broken error
}

type deployed struct {
	annotations map[string]string // of the template
	whole       bool
	rolls       []Roll
}

// Roll is one rollout, by when a watch showed it. Done is zero while it is under way.
type Roll struct{ Began, Done time.Time }

// Rollouts begins to watch. Only a change of the template's annotations counts
// as a rollout; nothing else changes templates here.
func (l *Lab) Rollouts(ctx context.Context) (*Rollouts, error) {
	client := l.Client.AppsV1().Deployments("")
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing Deployments: %w", err)
	}
	r := &Rollouts{seen: map[types.NamespacedName]*deployed{}}
	for i := range list.Items {
		r.see(&list.Items[i])
	}
	r.watch, err = toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching Deployments: %w", err)
	}
	go func() {
		for event := range r.watch.ResultChan() {
			if deployment, ok := event.Object.(*appsv1.Deployment); ok {
				r.see(deployment)
			} else if event.Type == watch.Error {
				r.mu.Lock()
				r.broken = fmt.Errorf("watching Deployments: %v", event.Object)
				r.mu.Unlock()
			}
		}
	}()
	return r, nil
}

// Stop ends the watch.
func (r *Rollouts) Stop() { r.watch.Stop() }

func (r *Rollouts) see(d *appsv1.Deployment) {
	now, key := time.Now(), types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.seen[key]
	if known == nil {
		known = &deployed{annotations: d.Spec.Template.Annotations}
		r.seen[key] = known
	}
	if !maps.Equal(known.annotations, d.Spec.Template.Annotations) {
		known.annotations = d.Spec.Template.Annotations
		known.rolls = append(known.rolls, Roll{Began: now})
	}
	known.whole = whole(d)
	if last := len(known.rolls) - 1; last >= 0 && known.whole && known.rolls[last].Done.IsZero() {
		known.rolls[last].Done = now
	}
}

// whole reports whether all Pods are of the present template and available.
func whole(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.Replicas == *d.Spec.Replicas &&
		s.UpdatedReplicas == s.Replicas && s.AvailableReplicas == s.Replicas
}

// Whole is how many Deployments have nothing but available Pods of their present
// template.
func (r *Rollouts) Whole() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.seen {
		if known.whole {
			n++
		}
	}
	return n
}

// Since are the rollouts that began at a moment or later, by Deployment.
func (r *Rollouts) Since(begin time.Time) map[types.NamespacedName][]Roll {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[types.NamespacedName][]Roll{}
	for key, known := range r.seen {
		for _, roll := range known.rolls {
			if !roll.Began.Before(begin) {
				found[key] = append(found[key], roll)
			}
		}
	}
	return found
}

// Wait asks several times a second until there is no error. It fails when bound
// is over, or when the watch broke.
func (r *Rollouts) Wait(ctx context.Context, bound time.Duration, done func() error) error {
	deadline := time.Now().Add(bound)
	for {
		err := done()
		if err == nil {
			return nil
		}
		r.mu.Lock()
		broken := r.broken
		r.mu.Unlock()
		if broken != nil {
			return broken
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waiting for rollouts: not within %s: %w", bound, err)
		}
		if err := Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
