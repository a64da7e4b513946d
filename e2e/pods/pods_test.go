package pods

import (
	"os"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

var cluster *Cluster

func TestMain(m *testing.M) { os.Exit(Wanted{}.Main(m, func(c *Cluster) { cluster = c })) }

// What other packages stand on: it installs, stamps, and goes without a trace.
func TestInstalls(t *testing.T) {
	cluster.Install(t)
	version, err := cluster.Helm(t.Context(), "version", "--short")
	harness.Must(t, err)
	t.Logf("helm %s\n%s", version, cluster.Own(t, "get", "pods", "-o", "wide"))
	cluster.Uninstall(t)
	if left := cluster.Kubectl(t, "get", "all,secrets,leases", "--namespace="+harness.OwnNamespace, "-o", "name"); strings.TrimSpace(left) != "" {
		t.Errorf("left after uninstalling: %s", left)
	}
}
