package faults

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// supervisor starts processes that have ended by themselves, as a kubelet does: a
// controller that has lost its lease ends.
type supervisor struct {
	alone sync.Mutex // held by whoever ends processes himself

	mu       sync.Mutex
	restarts []string
}

// Alone keeps the supervisor from starting what the caller has ended.
func (c *Court) Alone() (done func()) {
	c.supervisor.alone.Lock()
	return c.supervisor.alone.Unlock
}

// Supervise restarts what ends by itself, until stop is called, which returns
// what was restarted, or could not be.
func (c *Court) Supervise() (stop func() []string) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			c.restartEnded()
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() []string {
		cancel()
		watching.Wait()
		c.supervisor.mu.Lock()
		defer c.supervisor.mu.Unlock()
		restarts := c.supervisor.restarts
		c.supervisor.restarts = nil
		return restarts
	}
}

func (c *Court) restartEnded() {
	defer c.Alone()()
	for _, process := range c.Run.Product.All() {
		if process.Running() {
			continue
		}
		text := process.Name + " ended by itself"
		if err := process.Start(c.Run.Product.Args(process)); err != nil {
			text += fmt.Sprintf(", and does not start: %v", err)
		}
		c.supervisor.mu.Lock()
		c.supervisor.restarts = append(c.supervisor.restarts, text)
		c.supervisor.mu.Unlock()
	}
}
