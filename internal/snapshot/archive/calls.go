package archive

import (
	"context"
	"fmt"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/internal/panics"
)

// calls have those who ask for one thing at the same time share one answer. They bound
// how many are under way, and for how long.
type calls[T any] struct {
	slots chan struct{}
	going singleflight.Group
}

func newCalls[T any](atOnce int) *calls[T] { return &calls[T]{slots: make(chan struct{}, atOnce)} }

// do returns what run finds, or what another's run does that is under way.
func (f *calls[T]) do(ctx context.Context, at types.NamespacedName, run func(context.Context) (T, error)) (found T, err error) {
	answers := f.going.DoChan(at.String(), func() (any, error) {
		// It serves others too, and does not end with the request that began it.
		return f.run(context.WithoutCancel(ctx), run)
	})
	select {
	case answer := <-answers:
		found, _ = answer.Val.(T)
		return found, answer.Err
	case <-ctx.Done():
		return found, ctx.Err()
	}
}

func (f *calls[T]) run(ctx context.Context, run func(context.Context) (T, error)) (found T, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	defer func() {
		if value := recover(); value != nil { // nobody above this goroutine could
			err = fmt.Errorf("internal error: a panic of type %s", panics.What(value))
		}
	}()
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
		return run(ctx)
	case <-ctx.Done():
		return found, fmt.Errorf("waiting for one of %d parallel requests: %w", cap(f.slots), ctx.Err())
	}
}
