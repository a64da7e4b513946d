package e2e

import (
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// The Namespace names another installation of configstamp: everything in it is left alone.
func TestAnotherInstallation_IsLeftItsNamespace(t *testing.T) {
	t.Parallel()
	s, before := one(t, "k", "1")
	s.SetPolicy("namespace", settings{"installation": "elsewhere"})
	s.WantNote("namespace/"+s.Namespace, "ServedElsewhere: the installation of configstamp in the namespace configstamp leaves everything here alone")
	s.Set("configmap/c", "k", "2")
	s.Unchanged(before)
	// It is ours again: what has changed meanwhile rolls.
	s.SetPolicy("namespace", settings{"installation": harness.OwnNamespace})
	s.WantRolls(before, rolls{"deployment/d": 1})
}
