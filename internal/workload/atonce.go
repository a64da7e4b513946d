package workload

import (
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// AtOnce is about how many pods of an object are replaced together when its template
// changes, at least one: maxSurge and maxUnavailable of its strategy (spec.strategy of
// Deployments and the like, spec.updateStrategy of the others), all of them by Recreate.
// What cannot be read is one.
func (k *Kind) AtOnce(raw []byte) int32 {
	var o struct {
		Spec struct {
			Replicas       *int32 `json:"replicas"`
			Strategy       pace   `json:"strategy"`
			UpdateStrategy pace   `json:"updateStrategy"`
		} `json:"spec"`
		Status struct {
			DesiredNumberScheduled int32 `json:"desiredNumberScheduled"`
		} `json:"status"`
	}
	if unmarshal(raw, &o) != nil {
		return 1
	}
	wanted := int32(1)
	if o.Spec.Replicas != nil {
		wanted = *o.Spec.Replicas
	}
	if k.Signs.Counts == CountsNodes {
		wanted = o.Status.DesiredNumberScheduled
	}
	strategy := o.Spec.UpdateStrategy
	if strategy == (pace{}) {
		strategy = o.Spec.Strategy
	}
	if strategy.Type == "Recreate" {
		return max(wanted, 1)
	}
	surge, unavailable := strategy.RollingUpdate.MaxSurge, strategy.RollingUpdate.MaxUnavailable
	if surge == nil && unavailable == nil { // apps.kruise.io
		surge, unavailable = strategy.MaxSurge, strategy.MaxUnavailable
	}
	together := min(int64(share(surge, wanted, true))+int64(share(unavailable, wanted, false)), math.MaxInt32)
	return int32(min(max(together, 1), int64(max(wanted, 1))))
}

// pace is what a strategy says of how many pods go at once.
type pace struct {
	Type           string              `json:"type"`
	MaxSurge       *intstr.IntOrString `json:"maxSurge"`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable"`
	RollingUpdate  struct {
		MaxSurge       *intstr.IntOrString `json:"maxSurge"`
		MaxUnavailable *intstr.IntOrString `json:"maxUnavailable"`
	} `json:"rollingUpdate"`
}

// share is a number, or a percentage of all; 0 when it is not there or cannot be read.
func share(of *intstr.IntOrString, all int32, up bool) int {
	if of == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(of, int(all), up)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
