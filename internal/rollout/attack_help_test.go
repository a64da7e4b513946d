package rollout

// Unseen is how many changes wait for one workload to be looked at, at most.
func (p *Plan) Unseen() (most int) {
	for _, r := range p.records {
		most = max(most, len(r.unseen))
	}
	return most
}
