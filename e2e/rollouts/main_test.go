// Package rollouts proves, on a real kubelet with containers that crash, that one
// bad edit never takes a fleet down. fleet_test.go makes fleets and says how a
// test is written; what is judged comes from what the API server's own watches
// tell (timeline). e2e/rollouts/gates is about many workloads that hold each other up.
package rollouts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

// The times of the product under test: short, so that tests are. The app crashes
// late after three seconds, which soak has to outlast, and a busy kubelet may be
// five seconds late in telling.
const (
	settle        = 2 * time.Second // the usual: kubelets have to have seen the new content
	soak          = 10 * time.Second
	firstSoak     = 30 * time.Second // twice as long from ten workloads on; a fleet has it by keepFirstSoak
	crashDeadline = 8 * time.Second
	maxUnsettled  = 10
)

// appImage is e2e/rollouts/app.
const appImage = "rollouts-app:1"

// court is the cluster, the product and the Witness of this test binary.
var court *faults.Court

func TestMain(m *testing.M) {
	wanted := harness.Wanted{Node: harness.Kubelet, Audit: &harness.Audit{}, Options: harness.Options{Settle: settle, Controller: []string{"--step=1",
		"--soak=" + soak.String(), "--first-soak=" + firstSoak.String(), "--crash-deadline=" + crashDeadline.String(),
		fmt.Sprintf("--max-unsettled=%d", maxUnsettled),
	}}}
	ctx, stop := context.WithCancel(context.Background())
	code := wanted.Main(m, func(run *harness.Run) error {
		witness, err := faults.Watch(ctx, run.Dynamic)
		if err = errors.Join(err, run.LoadImage(ctx, "./e2e/rollouts/app", appImage)); err != nil {
			return err
		}
		court = &faults.Court{Run: run, Witness: witness, Outages: &faults.Outages{}}
		return nil
	})
	stop()
	os.Exit(code)
}
