package gitops

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/configstamp/configstamp/e2e/harness"
)

// run is the cluster and the product of this test binary. The product has pins switched
// on; namespaces say whether they pin.
var run *harness.Run

func options() harness.Options {
	return harness.Options{Settle: harness.Settle, Webhook: []string{"--pins"}, Controller: []string{"--pins"}}
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // controller-runtime complains when nobody does
	wanted := harness.Wanted{Manifest: "pins.yaml", Options: options()}
	os.Exit(wanted.Main(m, func(r *harness.Run) error { run = r; return nil }))
}
