package archive

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/internal/panics"
)

// calls have those who ask for one thing at the same time share one answer. They bound
// how many are under way, and for how long.
type calls[T any] struct {
	slots chan struct{}

	mu    sync.Mutex
	going map[types.NamespacedName]*call[T]
}

type call[T any] struct {
	done  chan struct{}
	found T
	err   error
}

func newCalls[T any](atOnce int) *calls[T] {
	return &calls[T]{slots: make(chan struct{}, atOnce), going: map[types.NamespacedName]*call[T]{}}
}

// do returns what run finds, or what another's run does that is under way.
func (f *calls[T]) do(ctx context.Context, at types.NamespacedName, run func(context.Context) (T, error)) (T, error) {
	f.mu.Lock()
	one, joined := f.going[at]
	if !joined {
		one = &call[T]{done: make(chan struct{})}
		f.going[at] = one
		// It serves others too, and does not end with the request that began it.
		go f.run(context.WithoutCancel(ctx), at, one, run)
	}
	f.mu.Unlock()
	select {
	case <-one.done:
		return one.found, one.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (f *calls[T]) run(ctx context.Context, at types.NamespacedName, one *call[T], run func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	defer func() {
		if value := recover(); value != nil { // nobody above this goroutine could
			one.err = fmt.Errorf("internal error: a panic of type %s", panics.What(value))
		}
		f.mu.Lock()
		delete(f.going, at)
		f.mu.Unlock()
		close(one.done)
	}()
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
		one.found, one.err = run(ctx)
	case <-ctx.Done():
		one.err = fmt.Errorf("waiting for one of %d parallel requests: %w", cap(f.slots), ctx.Err())
	}
}
