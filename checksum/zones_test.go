package checksum

import (
	"fmt"
	"testing"
	"time"
)

// A policy is read at each admission: its zones are read once. However many ways people
// find to write them, no more than some are kept.
func TestZonesAreReadOnceAndBounded(t *testing.T) {
	policy := DefaultPolicy()
	level := Level{OfWorkload, map[string]string{settingPrefix + "window": "22:00-04:00 Europe/Berlin"}}
	if n := testing.AllocsPerRun(100, func() { policy.With(level) }); n > 5 {
		t.Errorf("reading a window again makes %.0f allocations", n)
	}
	for i := range mostZones { // as many ways to write one
		policy.zones.known[fmt.Sprint("Europe/", i)] = time.UTC
	}
	before := len(policy.zones.known)
	again := policy.With(Level{OfWorkload, map[string]string{settingPrefix + "window": "22:00-04:00 America/Lima"}})
	if len(again.Faults) > 0 || len(again.Windows) != 1 {
		t.Errorf("a further zone is not read: %v", again.Faults)
	}
	if n := len(policy.zones.known); n != before {
		t.Errorf("%d zones are remembered, and %d were enough", n, before)
	}
}
