// Package pins proves on real containers what docs/pins.md promises (P1 to P5 there): pods of
// a workload that is held, or that was undone, read the content that their template was stamped
// with, whatever befalls them. What containers have read is looked at from outside (package
// process).
//
// Begin at TestHeldPodsKeepTheirContent (held_test.go). room_test.go has a namespace of
// workloads, act_test.go what befalls their pods, away_test.go
// what happens while the product, or its rights, are away; node_test.go what befalls the node
// and the snapshots; injector_test.go has a webhook that is not ours; argo_test.go an Argo Rollout with its own
// controller. What needs no container is in package pins/records.
package pins

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// A short run by default; PINS_ARGS="-args -times=100" is the long one.
var (
	times = flag.Int("times", 6, "how often each operation befalls held pods")
	seed  = flag.Uint64("seed", 1, "which pods these are follows from it")
)

// image is e2e/pins/app.
const image = "pins-app:1"

// run is the cluster and the product of this test binary.
var run *harness.Run

// options are the flags of the processes.
func options() harness.Options {
	return harness.Options{Settle: time.Second, Webhook: []string{"--pins"}, Controller: []string{
		"--pins", "--step=1", "--soak=1s", "--crash-deadline=5s", "--max-unsettled=20", "--rollout-deadline=40s",
	}}
}

func TestMain(m *testing.M) {
	wanted := harness.Wanted{Node: harness.Kubelet, Manifest: "pins.yaml", Options: options()}
	os.Exit(wanted.Main(m, func(r *harness.Run) error {
		run = r
		return run.LoadImage(context.Background(), "./e2e/pins/app", image)
	}))
}
