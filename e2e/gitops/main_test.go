package gitops

import (
	"os"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// run is the cluster and the product of this test binary.
var run *harness.Run

func TestMain(m *testing.M) { os.Exit(harness.Main(m, func(r *harness.Run) { run = r })) }
