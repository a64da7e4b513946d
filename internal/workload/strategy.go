package workload

import (
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"
)

type trigger struct {
	Type string `json:"type"`
}

type strategy struct {
	Type          string              `json:"type"`
	Paused        bool                `json:"paused"`
	Partition     *intstr.IntOrString `json:"partition"` // CloneSet
	RollingUpdate struct {
		Partition *intstr.IntOrString `json:"partition"` // StatefulSet
	} `json:"rollingUpdate"`
}

// rolls reports whether pods are replaced a few at a time.
func (s *rolloutSpec) rolls() bool {
	// Custom is a DeploymentConfig's own image, which does what it likes.
	return !s.recreates() && s.Strategy.Type != "Custom" && s.UpdateStrategy.Type != "OnDelete"
}

// recreates reports whether all pods end before new ones come (of a StatefulSet: from
// Kubernetes 1.37 on).
func (s *rolloutSpec) recreates() bool {
	return s.Strategy.Type == "Recreate" || s.UpdateStrategy.Type == "Recreate"
}

// hasDeadline reports whether the object did not switch its deadline off
// (k8s.io/api/apps/v1, ProgressDeadlineSeconds).
func (s *rolloutSpec) hasDeadline() bool {
	return s.ProgressDeadlineSeconds == nil || *s.ProgressDeadlineSeconds != math.MaxInt32
}
