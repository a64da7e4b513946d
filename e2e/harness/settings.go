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
)

// Settle is the --settle of the processes, small so that tests are quick.
const Settle = 300 * time.Millisecond

// margin is how much longer than Settle nothing must happen before "nothing
// happens" is believed; two cores under load need it.
const margin = 1200 * time.Millisecond

// easyTimeout is the timeoutSeconds of webhooks that are at ease; easyFreshness, the
// time of their check against the API server, is less, so that they get to answer.
const (
	easyTimeout   = 10 * time.Second
	easyFreshness = 7 * time.Second
)

// patience bounds every wait for something that must happen.
const patience = 90 * time.Second

func kept() bool { return os.Getenv(EnvKeep) != "" }
