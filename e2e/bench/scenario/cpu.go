package scenario

import "github.com/configstamp/configstamp/e2e/bench/product"

// cpuOf is what each process has spent so far, in seconds.
func cpuOf(installation *product.Installation) (map[string]float64, error) {
	spent := map[string]float64{}
	for role, process := range installation.Processes() {
		seconds, err := process.CPU()
		if err != nil {
			return nil, err
		}
		spent[role] = seconds
	}
	return spent, nil
}

func cpuSince(installation *product.Installation, before map[string]float64) (map[string]float64, error) {
	now, err := cpuOf(installation)
	for role := range now {
		now[role] -= before[role]
	}
	return now, err
}
