// Package gates proves that two hundred workloads of all kinds, with every gate
// there is, all roll, and never more at once than --max-unsettled. Nodes are fake:
// kwok's, whose Pods are soon ready.
package gates

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

const (
	settle       = time.Second
	soak         = 2 * time.Second // what is compared has whole seconds
	maxUnsettled = 5
)

// court is the cluster, the product and the Witness of this test binary.
var court *faults.Court

func TestMain(m *testing.M) {
	wanted := harness.Wanted{
		Node:  harness.Kwok,
		Audit: &harness.Audit{},
		// Its default of 20 requests a second would be what is measured.
		Up: []string{"--nodes=2", "--controller-manager-arg=kube-api-qps=200", "--controller-manager-arg=kube-api-burst=400"},
		Options: harness.Options{Settle: settle, Controller: []string{"--step=1",
			"--soak=" + soak.String(), fmt.Sprintf("--max-unsettled=%d", maxUnsettled),
		}},
	}
	ctx, stop := context.WithCancel(context.Background())
	code := wanted.Main(m, func(run *harness.Run) error {
		witness, err := faults.Watch(ctx, run.Dynamic)
		if err != nil {
			return err
		}
		court = &faults.Court{Run: run, Witness: witness, Outages: &faults.Outages{}}
		return nil
	})
	stop()
	os.Exit(code)
}
