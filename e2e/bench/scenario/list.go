package scenario

// All are the scenarios, in the order in which they run.
func All() []Scenario {
	return []Scenario{
		handler(),
		admission(),
		impact(),
		edit(),
		fanout(),
		overload(),
		largeTemplate(),
		unused(),
		idle(),
		coalescing(),
		startWithLarge(),
		startWithMany(),
		memoryOfLarge(),
		memoryOfMany(),
		workloads(),
		pods(),
		pinnedPods(),
		pinnedWorkloads(),
		pinnedKubelets(),
		snapshotsHeld(),
		snapshotsKept(),
		growth(),
		largest(),
		steps(),
	}
}
