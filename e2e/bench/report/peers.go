package report

// compare sets the limits of the targets that other products set.
func (r *Report) compare() {
	for _, result := range r.Results {
		for _, figure := range result.Figures {
			for i := range figure.Targets {
				if t := &figure.Targets[i]; t.Peers {
					r.judge(t, result, figure)
				}
			}
		}
	}
}

// judge compares a figure with the least that other products came to in it.
func (r *Report) judge(t *Target, result *Result, figure *Figure) {
	t.Open = true
	for _, other := range r.Results {
		if other.Scenario != result.Scenario || other.Product == result.Product {
			continue
		}
		for _, theirs := range other.Figures {
			value, known := theirs.number(t.Of)
			if known && theirs.Name == figure.Name && (t.Open || value < t.Limit) {
				t.Open, t.Limit = false, value
			}
		}
	}
	value, known := figure.number(t.Of)
	t.Reached = known && !t.Open && value <= t.Limit
}
