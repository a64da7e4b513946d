// Package e2e proves what configstamp promises on a real Kubernetes: real
// processes, the real API server, the real controllers of workloads. README.md
// says how to run it, how a test is written, and how each was seen to fail.
package e2e

import (
	"os"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// run is the cluster and the product of this test binary.
var run *harness.Run

func TestMain(m *testing.M) { os.Exit(harness.Main(m, func(r *harness.Run) { run = r })) }
