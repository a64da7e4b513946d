package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	"github.com/configstamp/configstamp/e2e/cluster/process"
)

// Freeze stops components of a cluster in their tracks, as a paused virtual machine: they
// keep their connections, accept new ones, and answer nobody.
func (h Host) Freeze(ctx context.Context, name string, components []string) error {
	return h.signal(ctx, name, components, syscall.SIGSTOP)
}

// Thaw ends Freeze.
func (h Host) Thaw(ctx context.Context, name string, components []string) error {
	return h.signal(ctx, name, components, syscall.SIGCONT)
}

func (h Host) signal(ctx context.Context, name string, components []string, signal syscall.Signal) error {
	_, all, release, err := h.hold(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	for _, component := range components {
		record, err := find(all, name, component)
		if err != nil {
			return err
		}
		if err := record.Signal(signal); err != nil {
			return err
		}
	}
	return nil
}

// find is the record of a component.
func find(all []process.Record, name, component string) (process.Record, error) {
	i := slices.IndexFunc(all, func(record process.Record) bool { return record.Component == component })
	if i < 0 {
		return process.Record{}, fmt.Errorf("cluster %s has no component %s (cluster status names them)", name, component)
	}
	return all[i], nil
}
