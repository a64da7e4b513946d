package inspect

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// inParallel does something with each of some items, atOnce at a time at most. It ends at
// the first error, which it returns.
func inParallel[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, item := range items {
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}
