package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/configstamp/configstamp/e2e/cluster/api"
	"github.com/configstamp/configstamp/e2e/cluster/process"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

// Restart is what to break of a cluster that is up.
type Restart struct {
	// Components are ended as a crash ends them, the last first, and started again
	// in the order given.
	Components []string
	// Save and Restore are directories: while everything is down, etcd's data is
	// copied to the one, or put back from the other, as from a backup.
	Save, Restore string
}

// Restart ends components of a cluster without asking, and starts them again as they were.
func (h Host) Restart(ctx context.Context, name string, r Restart) error {
	c, all, release, err := h.hold(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	var records []process.Record
	for _, component := range r.Components {
		record, err := find(all, name, component)
		if err != nil {
			return err
		}
		records = append(records, record)
	}
	for i := len(records) - 1; i >= 0; i-- {
		if err := end(records[i]); err != nil {
			return err
		}
	}
	if err := copyData(ctx, c, r); err != nil {
		return err
	}
	return Client(c, func(client *api.Client) error {
		s := starter{Host: h, cluster: c, client: client}
		for _, record := range records {
			if err := s.again(ctx, record); err != nil {
				return err
			}
			h.Log.Step("%s is ready again", record.Component)
		}
		return nil
	})
}

// find is the record of a component.
func find(all []process.Record, name, component string) (process.Record, error) {
	i := slices.IndexFunc(all, func(record process.Record) bool { return record.Component == component })
	if i < 0 {
		return process.Record{}, fmt.Errorf("cluster %s has no component %s (cluster status names them)", name, component)
	}
	return all[i], nil
}

// again starts a component as it was started before. For a moment the dead one's
// sockets may still be there, and the new one ends: then it is started once more.
func (s *starter) again(ctx context.Context, record process.Record) error {
	const tries = 5
	others := s.running
	for try := 1; ; try++ {
		running, err := process.Start(process.Program{
			Component: record.Component, Path: record.Command[0], Args: record.Command[1:], Health: record.Health,
			Mark: s.cluster.Dir(), Logs: s.cluster.Logs(), Records: s.cluster.Records(),
		})
		if err != nil {
			return err
		}
		s.running = append(slices.Clone(others), running)
		if record.Health == "" {
			return nil
		}
		err = s.wait(ctx, record.Component, func(ctx context.Context) error { return s.client.Healthy(ctx, record.Health) })
		if err == nil || try == tries || running.Ended() == nil {
			return err
		}
		time.Sleep(time.Second)
	}
}

func end(record process.Record) error {
	if err := record.Kill(); err != nil {
		return err
	}
	for deadline := time.Now().Add(goneWithin); record.Alive(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s (process %d) was killed but is not gone after %s", record.Component, record.PID, goneWithin)
		}
	}
	return nil
}

// copyData saves or restores etcd's data, which must not run.
func copyData(ctx context.Context, c *state.Cluster, r Restart) error {
	for _, way := range []struct{ from, to string }{{c.File("etcd"), r.Save}, {r.Restore, c.File("etcd")}} {
		if way.from == "" || way.to == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(way.from, "member")); err != nil {
			return fmt.Errorf("copying etcd's data: %w", err)
		}
		if err := os.RemoveAll(way.to); err != nil {
			return fmt.Errorf("copying etcd's data: %w", err)
		}
		if out, err := exec.CommandContext(ctx, "cp", "-a", way.from, way.to).CombinedOutput(); err != nil {
			return errors.Join(fmt.Errorf("copying etcd's data: %s", out), err)
		}
	}
	return nil
}
