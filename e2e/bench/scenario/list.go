package scenario

// All are the scenarios, in the order in which they run.
func All() []Scenario {
	return []Scenario{admission(), edit(), fanout(), follow(), overload(), idle(), start(), memory()}
}
