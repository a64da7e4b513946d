package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Leader waits until one controller leads, and no other thinks that it does.
func (c *Court) Leader(ctx context.Context) (*harness.Process, error) {
	last := errors.New("nobody was asked")
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		var leaders []*harness.Process
		for _, controller := range c.Run.Product.Controllers {
			values, err := controller.Metrics()
			if err != nil {
				leaders, last = nil, err
				break
			}
			if values["configstamp_leader"] == 1 {
				leaders = append(leaders, controller)
			}
		}
		if len(leaders) == 1 {
			return leaders[0], nil
		}
		if leaders != nil {
			last = fmt.Errorf("%d controllers lead", len(leaders))
		}
	}
	return nil, fmt.Errorf("waiting for one leader: %w", last)
}

// Calm ends a disturbance: everything is healed, everything runs, one leads.
func (c *Court) Calm(ctx context.Context) error {
	stop := c.Supervise()
	defer stop()
	if err := c.Heal(ctx, false); err != nil {
		return err
	}
	_, err := c.Leader(ctx)
	return err
}
