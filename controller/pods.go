package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// beginning is when the newest pod with stamps was created, zero when there is
// none, and whether the workload may have been well before: it was not when pods
// of before are left, and none of them is ready.
func beginning(pods []workload.Pod, stamps map[string]string) (began time.Time, wasWell bool) {
	old, ready := 0, 0
	for i := range pods {
		switch pod := &pods[i]; {
		case !alive(pod):
		case !pod.Carries(stamps):
			if old++; pod.Ready {
				ready++
			}
		case pod.Created.After(began):
			began = pod.Created
		}
	}
	return began, old == 0 || ready > 0
}

// alive reports whether a pod runs, or is to.
func alive(pod *workload.Pod) bool { return !pod.Deleting && !pod.Finished }

// podsOf are the pods of a workload, of every revision.
func (c *Controller) podsOf(ctx context.Context, user ref, state *health) ([]workload.Pod, error) {
	if !state.asked {
		body, err := c.api.get(ctx, user)
		if err != nil {
			return nil, err
		}
		// What cannot be read as a selector selects nothing: then the status alone tells.
		state.selector, _ = user.kind.Selector(body)
		state.asked = true
	}
	if state.selector == "" {
		return nil, nil
	}
	return c.api.pods(ctx, user.namespace, state.selector)
}

// podsSeen are the pods of a workload, of every revision, if they may be listed; if
// not, its status alone tells, and people are told that.
func (c *Controller) podsSeen(ctx context.Context, user ref, s *subject, state *health) (pods []workload.Pod, blind bool, err error) {
	pods, err = c.podsOf(ctx, user, state)
	if apierrors.IsForbidden(err) {
		c.sayUnseen(user, s, err)
		return nil, true, nil
	}
	return pods, false, err
}

func (c *Controller) sayUnseen(user ref, s *subject, why error) {
	c.sayOnce(user, s, checksum.PodsUnseen, "its pods cannot be looked at, so that its status alone tells whether it is healthy; give configstamp's service account the right to list pods: "+why.Error())
}

// isMade reports whether a pod that runs, or is to, was made from a template with
// stamps; without stamps, that cannot be told from others.
func isMade(pod *workload.Pod, stamps map[string]string) bool {
	return alive(pod) && (len(stamps) == 0 || pod.Carries(stamps))
}

// made are the pods that were made from a template with stamps and run, or are to;
// without stamps, all that do.
func made(pods []workload.Pod, stamps map[string]string) (from []workload.Pod) {
	for i := range pods {
		if isMade(&pods[i], stamps) {
			from = append(from, pods[i])
		}
	}
	return from
}

// troubleOf says what every one of the pods suffers from, "" when one of them does
// not or there are none, when a container last started, and whether all run. A pod
// whose container has restarted is well when it has lasted for the soak.
func troubleOf(pods []workload.Pod, now time.Time, soak time.Duration) (trouble string, started time.Time, up bool) {
	troubled := 0
	up = true
	for i := range pods {
		pod := &pods[i]
		up = up && !pod.Started.IsZero()
		if pod.Started.After(started) {
			started = pod.Started
		}
		switch {
		case pod.Trouble != "":
			trouble = pod.Trouble
		case pod.Restarted && (pod.Started.IsZero() || now.Sub(pod.Started) < soak):
			if trouble == "" {
				trouble = "its container restarts"
			}
		default:
			continue
		}
		troubled++
	}
	if troubled == 0 || troubled < len(pods) {
		return "", started, up
	}
	return fmt.Sprintf("%s (%d of %d new pods)", trouble, troubled, len(pods)), started, up
}

// withdrawn tells, of a workload that has waited and carries what is true again, of
// pods that started with content that has been taken back since.
func (c *Controller) withdrawn(ctx context.Context, user ref, s *subject, r review) error {
	was := c.notes.waits(user)
	if was == nil || len(r.Untrue) > 0 {
		return nil
	}
	if user.kind.Restarts && !rolledBetween(was.records, s.records) {
		if err := c.sayWithdrawn(ctx, user, s, was); err != nil {
			return fmt.Errorf("looking for pods that started with withdrawn content: %w", err)
		}
	}
	c.notes.waited(user)
	return nil
}

func (c *Controller) sayWithdrawn(ctx context.Context, user ref, s *subject, was *held) error {
	until := time.Time{}
	for _, source := range was.sources {
		if written, _ := c.sources.Written(user.namespace, source); written.After(until) {
			until = written
		}
	}
	all, _, err := c.podsSeen(ctx, user, s, &health{})
	if err != nil {
		return err
	}
	pods := made(all, s.records.Stamps)
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
