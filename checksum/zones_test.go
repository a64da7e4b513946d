package checksum

import (
	"strings"
	"testing"
)

// A policy is read at each admission: its zones are read once. However many ways people
// find to write them, no more than some are kept.
func TestZonesAreReadOnceAndBounded(t *testing.T) {
	policy := DefaultPolicy()
	level := Level{OfWorkload, map[string]string{settingPrefix + "window": "22:00-04:00 Europe/Berlin"}}
	if n := testing.AllocsPerRun(100, func() { policy.With(level) }); n > 5 {
		t.Errorf("reading a window again makes %.0f allocations", n)
	}
	for i := range mostZones + 10 {
		text := "22:00-04:00 Europe/" + strings.Repeat("./", i) + "Berlin"
		again := policy.With(Level{OfWorkload, map[string]string{settingPrefix + "window": text}})
		if len(again.Faults) > 0 && i < 10 {
			t.Skip("the time zones are not in files here: there is one way to write them")
		}
	}
	if n := len(policy.zones.known); n != mostZones {
		t.Errorf("%d zones are remembered, want %d", n, mostZones)
	}
}
