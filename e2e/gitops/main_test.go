package gitops

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/configstamp/configstamp/e2e/harness"
)

// run is the cluster and the product of this test binary.
var run *harness.Run

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // controller-runtime complains when nobody does
	os.Exit(harness.Main(m, func(r *harness.Run) { run = r }))
}
