// Package e2e proves what configstamp promises on a real Kubernetes: real
// processes, the real API server, the real controllers of workloads. README.md
// says how to run it, and how a test is written.
package e2e

import (
	"os"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/rights"
)

// run is the cluster and the product of this test binary.
var run *harness.Run

// audit: these tests use every right that the chart gives, and no others.
var audit = harness.Audit{Whole: true, Except: []rights.Exception{
	{Group: "example.com", Resource: "machines", Why: "TestCustom_ByConfiguration gives this right by a role of its own"},
}, Spare: []rights.Right{ // where OwnerReferencesPermissionEnforcement is on, as on OpenShift
	{Role: "ClusterRole/configstamp", Verb: "delete", Group: "configstamp.dev", Resource: "configrollouts"},
}}

func TestMain(m *testing.M) {
	os.Exit(harness.Wanted{Audit: &audit, Identified: true, Alone: 2}.Main(m, func(r *harness.Run) error { run = r; return nil }))
}
