package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/harness"
)

// Another installation of configstamp serves the same namespace; here its
// controller is played by an account of its namespace.
func TestAnotherInstallation_IsToldWhoseARecordIs(t *testing.T) {
	t.Parallel()
	s, before := one(t, "k", "1")
	asOther := func(args ...string) harness.Result {
		return s.Kubectl(append([]string{"patch", "deployment", "d", "--type=merge", "--patch={}", "--as=system:serviceaccount:elsewhere:configstamp", "--as-group=system:masters"}, args...)...)
	}
	id := strings.Split(s.Stamp("deployment/d", "configmap/c"), ":")[1]
	claimed := func(result harness.Result) bool {
		return slices.ContainsFunc(result.Warnings(), func(warning string) bool {
			claim, ok := checksum.ParseClaim(warning)
			return ok && claim.Installation == harness.OwnNamespace && slices.Equal(claim.KeyIDs, []string{id})
		})
	}
	if result := asOther("--field-manager=configstamp-record", "--dry-run=server"); !claimed(result) {
		t.Errorf("nobody claims key %s: %s", id, result.Stderr)
	}
	if result := s.Kubectl("patch", "deployment", "d", "--type=merge", "--patch={}", "--field-manager=configstamp-record", "--dry-run=server"); len(result.Warnings()) > 0 {
		t.Errorf("a person is warned: %s", result.Stderr)
	}
	// The Namespace names that one: everything in it is left alone.
	s.SetPolicy("namespace", settings{"installation": "elsewhere"})
	s.WantNote("namespace/"+s.Namespace, "ServedElsewhere: the installation of configstamp in the namespace configstamp leaves everything here alone")
	s.Set("configmap/c", "k", "2")
	s.Unchanged(before)
	if result := asOther("--field-manager=configstamp-record", "--dry-run=server"); claimed(result) {
		t.Errorf("claimed where another one serves: %s", result.Stderr)
	}
	// It is ours again: what has changed meanwhile rolls.
	s.SetPolicy("namespace", settings{"installation": harness.OwnNamespace})
	s.WantRolls(before, rolls{"deployment/d": 1})
}
