package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

func (c *Controller) sayUnseen(user workload.Ref, s *subject, why error) {
	c.sayOnce(user, s, checksum.PodsUnseen, "its pods cannot be looked at, so that its status alone tells whether it is healthy; give configstamp's service account the right to list pods: "+why.Error())
}

// withdrawn tells, of a workload that has waited and carries what is true again, of
// pods that started with content that has been taken back since.
func (c *Controller) withdrawn(ctx context.Context, user workload.Ref, s *subject, r review) error {
	was := c.notes.waits(user)
	if was == nil || len(r.Untrue) > 0 {
		return nil
	}
	if user.Kind.Restarts && !rollout.RolledBetween(was.records, s.records) {
		if err := c.sayWithdrawn(ctx, user, s, was); err != nil {
			return fmt.Errorf("looking for pods that started with withdrawn content: %w", err)
		}
	}
	c.notes.waited(user)
	return nil
}

func (c *Controller) sayWithdrawn(ctx context.Context, user workload.Ref, s *subject, was *held) error {
	until := time.Time{}
	for _, source := range was.sources {
		if written, _ := c.sources.Written(user.Namespace, source); written.After(until) {
			until = written
		}
	}
	seen, err := c.podsOf(ctx, user, nil)
	if seen.Access == rollout.Forbidden {
		c.sayUnseen(user, s, err)
		return nil
	}
	if err != nil {
		return err
	}
	pods := rollout.Made(seen.All, s.records.Stamps)
	var names []string
	for i := range pods {
		// The times of pods and sources are whole seconds.
		if started := pods[i].Started; !started.Before(was.since.Truncate(time.Second)) && (until.IsZero() || !started.After(until)) {
			names = append(names, pods[i].Name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		c.say.event(user, s, checksum.PodsRunWithdrawnContent, fmt.Sprintf("%s was put back as it was, but %s started in between: "+
			"what it read then it keeps until it is restarted", list(was.sources), joined(names)), was.sources...)
	}
	return nil
}
