package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// Templates watches the Deployments of a namespace and knows when each pod
// template last changed, and how often. Stop it.
type Templates struct {
	watch *toolswatch.RetryWatcher

	mu     sync.Mutex
	seen   map[string]*history
	woken  chan struct{} // closed at the next change
	broken error
}

type history struct {
	template string
	changes  int
	last     time.Time
}

// Templates begins to watch; what is there already counts as unchanged.
func (l *Lab) Templates(ctx context.Context, namespace string) (*Templates, error) {
	client := l.Client.AppsV1().Deployments(namespace)
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing Deployments of %s: %w", namespace, err)
	}
	t := &Templates{seen: map[string]*history{}, woken: make(chan struct{})}
	for i := range list.Items {
		t.see(&list.Items[i])
	}
	t.watch, err = toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching Deployments of %s: %w", namespace, err)
	}
	go func() {
		for event := range t.watch.ResultChan() {
			if deployment, ok := event.Object.(*appsv1.Deployment); ok {
				t.see(deployment)
			} else if event.Type == watch.Error {
				t.mu.Lock()
				t.broken = fmt.Errorf("watching Deployments of %s: %v", namespace, event.Object)
				t.mu.Unlock()
			}
		}
	}()
	return t, nil
}

// Stop ends the watch.
func (t *Templates) Stop() { t.watch.Stop() }

func (t *Templates) see(deployment *appsv1.Deployment) {
	now := time.Now()
	text, err := json.Marshal(&deployment.Spec.Template) // keys are sorted
	if err != nil {
		return // templates always marshal
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.seen[deployment.Name]
	switch {
	case known == nil:
		t.seen[deployment.Name] = &history{template: string(text)}
		return
	case known.template == string(text):
		return
	}
	known.template, known.last = string(text), now
	known.changes++
	close(t.woken)
	t.woken = make(chan struct{})
}

// Changes is how often templates have changed, by Deployment.
func (t *Templates) Changes() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	changes := make(map[string]int, len(t.seen))
	for name, known := range t.seen {
		changes[name] = known.changes
	}
	return changes
}

// Progress is what has changed since some counters were taken.
type Progress struct {
	Changed int       // Deployments that changed at least once
	Total   int       // all their changes
	Last    time.Time // when the last of them was seen
}

// Since compares with earlier counters.
func (t *Templates) Since(before map[string]int) (p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, known := range t.seen {
		more := known.changes - before[name]
		if more == 0 {
			continue
		}
		p.Changed++
		p.Total += more
		if known.last.After(p.Last) {
			p.Last = known.last
		}
	}
	return p
}

// Wait waits until n Deployments have changed since before. When bound is over
// it returns what has changed by then, and an error.
func (t *Templates) Wait(ctx context.Context, before map[string]int, n int, bound time.Duration) (Progress, error) {
	timeout := time.NewTimer(bound)
	defer timeout.Stop()
	for {
		t.mu.Lock()
		woken, broken := t.woken, t.broken
		t.mu.Unlock()
		progress := t.Since(before)
		if progress.Changed >= n {
			return progress, nil
		}
		select {
		case <-woken:
			time.Sleep(time.Millisecond) // when a change came is on record; counting must not compete with it
		case <-timeout.C:
			return progress, fmt.Errorf("waiting for pod templates to change: %d of %d did within %s", progress.Changed, n, bound)
		case <-ctx.Done():
			return progress, ctx.Err()
		}
		if broken != nil {
			return progress, broken
		}
	}
}
