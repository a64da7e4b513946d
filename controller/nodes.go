package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// mostNodes bounds how many nodes are asked for one workload.
const mostNodes = 200

// nodesOf tells, of the nodes on which a workload with a replica for each lacks one,
// which are down, that is not ready, and whether it lacks nothing else. It asks for
// no node on which a pod is ready: that one is old, or as it shall be.
func (c *Controller) nodesOf(ctx context.Context, s *subject, pods []workload.Pod) (down map[string]bool, alone bool, err error) {
	fine := map[string]bool{}
	for i := range pods {
		if pod := &pods[i]; pod.Ready && isMade(pod, s.records.Stamps) {
			fine[pod.Node] = true
		}
	}
	down = map[string]bool{}
	alone = len(fine) > 0 && s.rollout.Missing > 0
	for i := range pods {
		pod := &pods[i]
		if _, asked := down[pod.Node]; asked || fine[pod.Node] {
			continue
		}
		if pod.Node == "" || pod.Ready && alive(pod) || len(down) == mostNodes {
			alone = false
			continue
		}
		ready, err := c.api.nodeReady(ctx, pod.Node)
		if err != nil {
			return nil, false, err
		}
		down[pod.Node] = !ready
		alone = alone && !ready
	}
	return down, alone && int(s.rollout.Missing) <= len(down), nil
}

// stalledByNodes reports whether nodes that are down keep a rollout from going on, as
// they do when they use up maxUnavailable: nothing new has been tried in vain elsewhere.
func (c *Controller) stalledByNodes(ctx context.Context, s *subject, pods []workload.Pod) (bool, error) {
	down, _, err := c.nodesOf(ctx, s, pods)
	if err != nil {
		return false, err
	}
	inVain := slices.ContainsFunc(pods, func(pod workload.Pod) bool {
		return isMade(&pod, s.records.Stamps) && !pod.Ready && !down[pod.Node]
	})
	return !inVain && slices.Contains(slices.Collect(maps.Values(down)), true), nil
}

// beforeTurn is how far a workload is that waits for its turn, and when to look
// again, zero: when something happens. One that lacks nothing, but on nodes that are
// not ready, is rolled out. stands is since when it makes no progress.
func (c *Controller) beforeTurn(ctx context.Context, user ref, s *subject, stands time.Duration) (phase workload.Phase, again time.Duration, err error) {
	phase = s.rollout.Phase
	if phase != workload.Rolling {
		return phase, 0, nil
	}
	again = max(0, unwellAfter-stands)
	if !s.rollout.PerNode || s.rollout.Missing == 0 {
		return phase, again, nil
	}
	if soak := min(c.options.Limits.soak(s), unwellAfter); stands < soak {
		return phase, soak - stands, nil
	}
	alone, err := c.lacksNodesAlone(ctx, user, s)
	if err != nil {
		return phase, 0, fmt.Errorf("looking whether it lacks nodes alone: %w", err)
	}
	if alone {
		return workload.RolledOut, 0, nil
	}
	return phase, again, nil
}

// lacksNodesAlone reports whether a workload that waits for its turn lacks nothing,
// but on nodes that are not ready.
func (c *Controller) lacksNodesAlone(ctx context.Context, user ref, s *subject) (bool, error) {
	now := c.options.Clock.Now()
	if alone, known := c.lacks.of(user, s, now); known {
		return alone, nil
	}
	pods, _, err := c.podsSeen(ctx, user, s, &health{})
	if err != nil {
		return false, err
	}
	_, alone, err := c.nodesOf(ctx, s, pods)
	if err == nil {
		c.lacks.note(user, s, alone, now)
	}
	return alone, err
}

// lacks remember what was found of workloads that wait for their turn, as each look
// at one wants to know: for a while, and as long as it stands as it did.
type lacks struct {
	mu    sync.Mutex
	found map[ref]lack
}

type lack struct {
	status workload.Status
	still  time.Time
	when   time.Time
	alone  bool
}

// lackFor is how long what was found counts.
const lackFor = time.Minute

func newLacks() *lacks { return &lacks{found: map[ref]lack{}} }

func (l *lacks) of(user ref, s *subject, now time.Time) (alone, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	is, known := l.found[user]
	return is.alone, known && now.Sub(is.when) < lackFor && is.status == s.rollout && is.still.Equal(s.still)
}

func (l *lacks) note(user ref, s *subject, alone bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.found, func(_ ref, old lack) bool { return now.Sub(old.when) >= lackFor })
	l.found[user] = lack{s.rollout, s.still, now, alone}
}
