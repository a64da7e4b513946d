package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Templates watches the Deployments of a namespace and knows when each pod
// template last changed, and how often. Stop it.
type Templates struct {
	stop context.CancelFunc

	mu    sync.Mutex
	seen  map[string]*history
	woken chan struct{} // closed at the next change
}

type history struct {
	template string
	changes  int
	last     time.Time
}

// Templates begins to watch; what is there already counts as unchanged.
func (l *Lab) Templates(ctx context.Context, namespace string) (*Templates, error) {
	t := &Templates{seen: map[string]*history{}, woken: make(chan struct{})}
	factory := informers.NewSharedInformerFactoryWithOptions(l.Client, 0, informers.WithNamespace(namespace))
	see := func(object any) {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			t.see(deployment)
		}
	}
	handler, err := factory.Apps().V1().Deployments().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, now any) { see(now) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching Deployments of %s: %w", namespace, err)
	}
	watching, stop := context.WithCancel(ctx)
	t.stop = stop
	factory.Start(watching.Done())
	if !cache.WaitForCacheSync(watching.Done(), handler.HasSynced) {
		stop()
		return nil, fmt.Errorf("watching Deployments of %s: %w", namespace, ctx.Err())
	}
	return t, nil
}

// Stop ends the watch.
func (t *Templates) Stop() { t.stop() }

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
		woken := t.woken
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
	}
}
