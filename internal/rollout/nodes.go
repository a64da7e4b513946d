package rollout

import (
	"maps"
	"slices"

	"github.com/configstamp/configstamp/internal/workload"
)

// mostNodes bounds how many nodes are asked for one workload.
const mostNodes = 200

// nodesOf is about a workload with a replica for each node. Of the nodes on which it
// lacks one, down tells which are not ready. alone tells that it lacks no others. ask are
// the nodes for which that has to be read first; never one on which a pod is ready, as
// that pod is an old one, or as it shall be.
func (f *Facts) nodesOf() (down map[string]bool, alone bool, ask []string) {
	pods, fine := f.Pods.All, map[string]bool{}
	for i := range pods {
		if pod := &pods[i]; pod.Ready && isMade(pod, f.Records.Stamps) {
			fine[pod.Node] = true
		}
	}
	down = map[string]bool{}
	alone = len(fine) > 0 && f.Status.Missing > 0
	for i := range pods {
		pod := &pods[i]
		if _, asked := down[pod.Node]; asked || fine[pod.Node] {
			continue
		}
		if pod.Node == "" || pod.Ready && alive(pod) || len(down) == mostNodes {
			alone = false
			continue
		}
		ready, known := f.Nodes[pod.Node]
		if !known {
			ask = append(ask, pod.Node)
		}
		down[pod.Node] = !ready
		alone = alone && !ready
	}
	return down, alone && int(f.Status.Missing) <= len(down), ask
}

// stalledByNodes reports whether nodes that are down keep a rollout from going on, as
// they do when they use up maxUnavailable: nothing new has been tried in vain elsewhere.
func (f *Facts) stalledByNodes(down map[string]bool) bool {
	inVain := slices.ContainsFunc(f.Pods.All, func(pod workload.Pod) bool {
		return isMade(&pod, f.Records.Stamps) && !pod.Ready && !down[pod.Node]
	})
	return !inVain && slices.Contains(slices.Collect(maps.Values(down)), true)
}
