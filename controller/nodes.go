package controller

import (
	"context"

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
