package rollout

import (
	"maps"

	"github.com/configstamp/configstamp/internal/workload"
)

// Unseen is how many changes wait for one workload to be looked at, at most.
func (p *Plan) Unseen() (most int) {
	for _, r := range p.records {
		most = max(most, len(r.unseen))
	}
	return most
}

// Granted are the workloads whose turn has come, and that have not rolled yet.
func (p *Plan) Granted() (refs []workload.Ref) {
	for _, r := range sortedRecords(maps.Values(p.records)) {
		if r.waits != nil && !r.waits.granted.IsZero() {
			refs = append(refs, r.ref)
		}
	}
	return refs
}
