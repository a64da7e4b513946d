package workload

import (
	"strconv"
	"strings"
	"time"
)

// TemplateOf is the workload whose pod template an object runs instead of one of its own, as
// an Argo Rollout does by spec.workloadRef. That workload has no pods of its own then.
type TemplateOf struct {
	Ref
	// Observed is the generation of that workload of which the object's status speaks.
	Observed int64
}

// TemplateOf reads from JSON whose template one object of the kind runs, if that is a kind of
// the table; nil: it runs its own.
func (k *Kind) TemplateOf(raw []byte, kinds Table) *TemplateOf {
	if !k.Borrows {
		return nil
	}
	var o struct {
		Metadata struct {
			Namespace string `json:"namespace"`
		} `json:"metadata"`
		Spec struct {
			From struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Name       string `json:"name"`
			} `json:"workloadRef"`
		} `json:"spec"`
		Status struct {
			Observed string `json:"workloadObservedGeneration"`
		} `json:"status"`
	}
	if unmarshal(raw, &o) != nil || o.Spec.From.Name == "" {
		return nil
	}
	group, _, _ := strings.Cut(o.Spec.From.APIVersion, "/")
	for _, kind := range kinds {
		if kind.Group == group && kind.Name == o.Spec.From.Kind && kind.Makes == replicaSet && !kind.Custom { // as Argo does
			observed, _ := strconv.ParseInt(o.Status.Observed, 10, 64) // 0: it reports none yet
			return &TemplateOf{Ref{Kind: kind, Namespace: o.Metadata.Namespace, Name: o.Spec.From.Name}, observed}
		}
	}
	return nil
}

// For is the status of the workload whose template an object runs, at a generation, as
// the object's own status reports it.
func (t *TemplateOf) For(generation int64, status Status) Status {
	if t.Observed != generation && status.Waits == "" { // what it counts was new before
		status.Phase, status.Why, status.FailedAt = Rolling, "", time.Time{}
		status.Updated, status.Missing, status.Old = 0, status.Wanted, status.Wanted > 0
	}
	return status
}
