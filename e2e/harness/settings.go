package harness

import (
	"os"
	"time"
)

// The environment variables that steer a run.
const (
	// EnvEnabled has the tests run at all; `go test ./...` must not start clusters.
	EnvEnabled = "CONFIGSTAMP_E2E"
	// EnvCluster names a running cluster to use instead of making one.
	EnvCluster = "CONFIGSTAMP_E2E_CLUSTER"
	// EnvKeep leaves namespaces, logs and the cluster as they are at the end.
	EnvKeep = "CONFIGSTAMP_E2E_KEEP"
	// EnvBreak breaks something on purpose, to see tests fail; see Breakage.
	EnvBreak = "CONFIGSTAMP_E2E_BREAK"
)

// Breakage is what EnvBreak can hold: a way in which the run is made wrong, so
// that tests which pass with it prove nothing.
type Breakage string

// The ways.
const (
	// ProductStopped: no process of configstamp runs.
	ProductStopped Breakage = "product-stopped"
	// WebhookStopped: the controllers run, the webhooks do not.
	WebhookStopped Breakage = "webhook-stopped"
	// ControllerStopped: the webhooks run, the controllers do not.
	ControllerStopped Breakage = "controller-stopped"
	// ExtraRollouts: somebody restarts every workload, now and then.
	ExtraRollouts Breakage = "extra-rollouts"
	// NothingFresh: webhooks believe their memory without a check.
	NothingFresh Breakage = "nothing-fresh"
)

// broken reports whether the run is broken in one of these ways; none: in any.
func broken(ways ...Breakage) bool {
	if len(ways) == 0 {
		return os.Getenv(EnvBreak) != ""
	}
	for _, way := range ways {
		if os.Getenv(EnvBreak) == string(way) {
			return true
		}
	}
	return false
}

// Settle is the --settle of the processes, small so that tests are quick.
const Settle = 300 * time.Millisecond

// margin is how much longer than Settle nothing must happen before "nothing
// happens" is believed; two cores under load need it.
const margin = 1200 * time.Millisecond

// patience bounds every wait for something that must happen.
func patience() time.Duration {
	if broken() {
		return 4 * time.Second
	}
	return 60 * time.Second
}

func kept() bool { return os.Getenv(EnvKeep) != "" }
