package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/configstamp/configstamp/e2e/cluster/node"
	"github.com/configstamp/configstamp/e2e/cluster/process"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

const goneWithin = 10 * time.Second

// Down takes a cluster down, whole or half, and removes everything of it. It says whether there was one.
func (h Host) Down(ctx context.Context, name string) (bool, error) {
	if err := state.ValidateName(name); err != nil {
		return false, err
	}
	release, err := h.take(ctx, name)
	if err != nil {
		return false, err
	}
	defer release()
	if err := os.RemoveAll(state.FailedLogs(h.Cache, name)); err != nil {
		return false, fmt.Errorf("removing old logs of cluster %s: %w", name, err)
	}
	c := state.New(h.Cache, name)
	if _, err := os.Stat(c.Dir()); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return true, h.remove(ctx, c)
}

// abandon removes a cluster that did not come up, but for its logs. It does so although ctx may have ended: that is
// what an interrupt asks for.
func (h Host) abandon(ctx context.Context, c *state.Cluster) error {
	kept := state.FailedLogs(h.Cache, c.Name)
	if err := os.RemoveAll(kept); err != nil {
		return fmt.Errorf("removing older logs: %w", err)
	}
	if err := os.Rename(c.Logs(), kept); err == nil {
		h.Log.Step("taking down what was started; logs are kept in %s", kept)
	}
	return h.remove(context.WithoutCancel(ctx), c)
}

// remove needs nothing but the cluster's name, so that it works on what any interruption leaves.
func (h Host) remove(ctx context.Context, c *state.Cluster) error {
	err := errors.Join(
		process.KillAll(c.Records(), goneWithin),
		process.KillMarked(c.Dir()),
	)
	if os.Geteuid() == 0 {
		err = errors.Join(err,
			node.RemoveCgroups(c.Cgroup(), goneWithin),
			node.Unmount(ctx, c),
			namespace(c).Remove(ctx),
			node.RemoveLogLinks(c),
			os.RemoveAll(c.RunDir()),
		)
	}
	if err != nil {
		return fmt.Errorf("taking down cluster %s (try again: cluster down --name %s): %w", c.Name, c.Name, err)
	}
	if err := os.RemoveAll(c.Dir()); err != nil {
		return fmt.Errorf("removing the files of cluster %s: %w", c.Name, err)
	}
	return nil
}
