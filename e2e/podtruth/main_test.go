// Package podtruth compares what configstamp says of running pods, in its metrics and in
// "kubectl configstamp pods", with what they really run: an oracle reads, from outside, the
// environment of the first process of each container, and the files that it sees.
//
// Begin at TestPodTruth (oracle_test.go). room_test.go has a namespace of pods and what
// befalls it, truth_test.go reads processes, verdict_test.go asks the product and compares.
package podtruth

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// A short run by default; by hand -for=10m -rooms=10: 200 containers.
var (
	lasts = flag.Duration("for", time.Minute, "how long pods are edited, killed and looked at")
	rooms = flag.Int("rooms", 2, "how many namespaces of twenty containers there are")
	seed  = flag.Uint64("seed", 1, "what befalls them follows from it")
)

// appImage is e2e/podtruth/app.
const appImage = "podtruth-app:1"

// run is the cluster and the product of this test binary.
var run *harness.Run

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", fmt.Sprint(*rooms+1))
	wanted := harness.Wanted{Node: harness.Kubelet, Options: harness.Options{Settle: 2 * time.Second, Controller: []string{
		"--pods", "--namespace-metrics=100",
		"--step=1", "--soak=1s", "--crash-deadline=5s", "--max-unsettled=20",
	}}}
	os.Exit(wanted.Main(m, func(r *harness.Run) error {
		run = r
		return run.LoadImage(context.Background(), "./e2e/podtruth/app", appImage)
	}))
}
