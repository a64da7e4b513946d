package servers

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/servers/behind"
)

var (
	long = flag.Duration("for", 4*time.Minute, "how long everything is disturbed at once")
	seed = flag.Uint64("seed", 0, "what decides the disturbances; 0: the time")

	// court is the cluster, the product and the Witness of this test binary.
	court *faults.Court
	// before stands before the etcd of each API server, nil for the first.
	before [count]*behind.Etcd
)

func TestMain(m *testing.M) { os.Exit(judged(m)) }

func judged(m *testing.M) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	wanted := harness.Wanted{APIServers: int(count), AsShipped: true, Options: harness.Options{Settle: settle}}
	return wanted.Main(m, func(run *harness.Run) error {
		court = &faults.Court{Run: run, Outages: &faults.Outages{}, Tally: faults.NewTally()}
		return begin(ctx)
	})
}

// begin has all servers but the first ask etcd through something that can be slow.
func begin(ctx context.Context) (err error) {
	run := court.Run
	for i := first + 1; i < count; i++ {
		if before[i], err = behind.New(run.Etcd(), filepath.Join(run.State(), "credentials")); err != nil {
			return err
		}
		if err := run.RestartCluster(ctx, "--arg", "etcd-servers="+before[i].URL(), i.component()); err != nil {
			return err
		}
	}
	court.Witness, err = faults.Watch(ctx, run.Dynamic)
	return err
}
