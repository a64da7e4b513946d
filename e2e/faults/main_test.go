package faults_test

import (
	"context"
	"os"
	"testing"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

// court is the cluster, the product and the Witness of this test binary.
var court *faults.Court

func TestMain(m *testing.M) {
	ctx, stop := context.WithCancel(context.Background())
	code := harness.Wanted{AsShipped: true, Manifest: "pins.yaml"}.Main(m, func(run *harness.Run) error {
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
