package workload

import "time"

// Muted is since when an object may be unable to say how its rollout is, and what its
// status says of the time before. A time is zero when it is not known.
type Muted struct {
	// Since is when its replicas, or that it is paused, were last written,
	// as far as its managedFields say. An entry that owns the template as well does not
	// count: its time may be that of any other field. Of writes to the subresource scale
	// the API server notes no time.
	Since time.Time
	// RolledOut is when its newest revision was rolled out, as the condition of its kind
	// says; Available is since when enough replicas were available.
	RolledOut, Available time.Time
}

// Muted reads from JSON whether one object of the kind was scaled or paused.
func (k *Kind) Muted(raw []byte) (muted Muted) {
	var object struct {
		Metadata struct {
			ManagedFields []managedFields `json:"managedFields"`
		} `json:"metadata"`
	}
	if err := unmarshal(raw, &object); err != nil {
		return muted
	}
	for _, entry := range object.Metadata.ManagedFields {
		mutes := owns(entry.Fields, []string{"spec", "replicas"}) || owns(entry.Fields, []string{"spec", "paused"})
		if mutes && entry.Time != nil && !owns(entry.Fields, k.Template) && entry.Time.After(muted.Since) {
			muted.Since = entry.Time.Time
		}
	}
	var read struct {
		Status struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	if err := unmarshal(raw, &read); err != nil { // another kind's status may be anything
		return muted
	}
	status := rolloutStatus{Conditions: read.Status.Conditions}
	if done := status.condition(k.Progress); done.Status == "True" && (k.Signs.Over == "" || done.Reason == k.Signs.Over) {
		muted.RolledOut = firstTime(done.LastUpdate, done.LastTransition)
	}
	if enough := status.condition("Available"); enough.Status == "True" {
		muted.Available = firstTime(enough.LastTransition)
	}
	return muted
}
