package lifecycle

import (
	"context"

	"github.com/configstamp/configstamp/e2e/cluster/lock"
	"github.com/configstamp/configstamp/e2e/cluster/process"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

// take has a cluster's name for itself until released.
func (h Host) take(ctx context.Context, name string) (release func(), err error) {
	return lock.Take(ctx, state.LockPath(h.Cache, name), func() {
		h.Log.Step("another command works on cluster %s; waiting for it", name)
	})
}

// hold takes a cluster that is up, and tells what runs in it.
func (h Host) hold(ctx context.Context, name string) (c *state.Cluster, records []process.Record, release func(), err error) {
	if release, err = h.take(ctx, name); err != nil {
		return nil, nil, nil, err
	}
	if c, err = state.Load(h.Cache, name); err == nil {
		records, err = process.Records(c.Records())
	}
	if err != nil {
		release()
		return nil, nil, nil, err
	}
	return c, records, release, nil
}
