package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What people set by annotations.

// settings are annotations of a policy, by the names of the settings.
type settings = map[string]string

// withPolicy writes settings on an object itself.
func withPolicy(manifest string, settings settings) string {
	lines := ""
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		lines += fmt.Sprintf("configstamp.dev/%s: %q, ", name, settings[name])
	}
	return strings.Replace(manifest, "metadata: {name:", "metadata: {annotations: {"+lines+"}, name:", 1)
}

// wantStamps checks that a workload is stamped for these sources, truly, and for
// no others.
func wantStamps(t *testing.T, s *harness.Space, workload string, sources ...string) {
	t.Helper()
	for _, source := range sources {
		wantStamp(t, s, workload, source)
	}
	wantStamped(t, s, workload, sources...)
}

// wantStamped checks for which sources a workload is stamped, true or not.
func wantStamped(t *testing.T, s *harness.Space, workload string, sources ...string) {
	t.Helper()
	keys := make([]string, len(sources))
	for i, source := range sources {
		keys[i] = harness.StampKey(source)
	}
	slices.Sort(keys)
	if got := slices.Sorted(maps.Keys(harness.Stamps(s.Get(workload)))); !slices.Equal(got, keys) {
		t.Errorf("%s is stamped for %v, want %v", workload, got, keys)
	}
}
