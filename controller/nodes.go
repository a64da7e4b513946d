package controller

import (
	"context"

	"github.com/configstamp/configstamp/internal/workload"
)

// mostNodes bounds how many nodes are asked for one workload.
const mostNodes = 200

// lacksNodesAlone reports whether all that a rollout lacks is on nodes that are not
// ready.
func (c *Controller) lacksNodesAlone(ctx context.Context, s *subject, pods []workload.Pod) (bool, error) {
	lacking := int32(0)
	asked := map[string]bool{}
	for i := range pods {
		pod := &pods[i]
		if pod.Node == "" || asked[pod.Node] || len(asked) == mostNodes || pod.Ready && !pod.Deleting && pod.Carries(s.records.Stamps) {
			continue
		}
		asked[pod.Node] = true
		ready, err := c.api.nodeReady(ctx, pod.Node)
		if err != nil {
			return false, err
		}
		if !ready {
			lacking++
		}
	}
	return lacking >= s.rollout.Missing, nil
}
