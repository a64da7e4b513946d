package workload

import (
	"cmp"
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"
)

type trigger struct {
	Type string `json:"type"`
}

type strategy struct {
	Type          string              `json:"type"`
	Paused        bool                `json:"paused"`
	Partition     *intstr.IntOrString `json:"partition"`      // CloneSet
	Unavailable   *intstr.IntOrString `json:"maxUnavailable"` // CloneSet
	RollingUpdate struct {
		Partition   *intstr.IntOrString `json:"partition"` // StatefulSet
		Unavailable *intstr.IntOrString `json:"maxUnavailable"`
	} `json:"rollingUpdate"`
}

// rolls reports whether pods are replaced a few at a time.
func (s *rolloutSpec) rolls() bool {
	// Custom is a DeploymentConfig's own image, which does what it likes.
	return s.Strategy.Type != "Custom" && s.UpdateStrategy.Type != "OnDelete"
}

// recreates reports whether all pods end before new ones come (of a StatefulSet: from
// Kubernetes 1.37 on).
func (s *rolloutSpec) recreates() bool {
	return s.Strategy.Type == "Recreate" || s.UpdateStrategy.Type == "Recreate"
}

// interrupts reports whether a rollout may replace all of the wanted pods at once: by Recreate, or by a
// maxUnavailable of all, which is 1 by default for StatefulSets and DaemonSets. Deployments round a
// percentage down, the others up.
func (s *rolloutSpec) interrupts(wanted int64) bool {
	if s.recreates() {
		return true
	}
	update := &s.UpdateStrategy
	most := cmp.Or(s.Strategy.RollingUpdate.Unavailable, update.RollingUpdate.Unavailable, update.Unavailable)
	if most == nil && update.Type == "RollingUpdate" {
		most = new(intstr.FromInt32(1))
	}
	if most == nil || wanted <= 0 {
		return false
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(most, int(wanted), update.Type != "")
	return err == nil && int64(n) >= wanted
}

// hasDeadline reports whether the object did not switch its deadline off
// (k8s.io/api/apps/v1, ProgressDeadlineSeconds).
func (s *rolloutSpec) hasDeadline() bool {
	return s.ProgressDeadlineSeconds == nil || *s.ProgressDeadlineSeconds != math.MaxInt32
}
