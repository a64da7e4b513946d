package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
)

// A change that concerns a thousand workloads makes as many events. Each is a
// write, like a roll; all at once they would halve the rate of the rolls.
const (
	eventsPerSecond = 10
	eventsAtOnce    = 10
)

// paced hands events on a few at once and then slowly. None is lost meanwhile,
// while an EventRecorder drops what it cannot queue.
type paced struct {
	to events.EventRecorder

	mu      sync.Mutex
	waiting []func()
	woken   chan struct{} // holds one when something waits
}

func newPaced(to events.EventRecorder) *paced {
	return &paced{to: to, woken: make(chan struct{}, 1)}
}

// Eventf implements events.EventRecorder.
func (p *paced) Eventf(regarding, related runtime.Object, eventType, why, action, note string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, func() { p.to.Eventf(regarding, related, eventType, why, action, note, args...) })
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// run hands events on until ctx ends; then all that wait at once.
func (p *paced) run(ctx context.Context) {
	limiter := flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventsAtOnce)
	defer limiter.Stop()
	for {
		select {
		case <-p.woken:
		case <-ctx.Done():
		}
		for _, hand := range p.take() {
			_ = limiter.Wait(ctx) // it fails when ctx ends: then nothing is paced
			hand()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (p *paced) take() []func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.waiting
	p.waiting = nil
	return taken
}
