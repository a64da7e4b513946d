package install

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// operator has the kinds of Prometheus Operator, as its Go module brings them.
const operator = "github.com/prometheus-operator/prometheus-operator@v0.85.0"

// everything is all that the chart can install together.
var everything = []string{
	"--set=dialects={reloader,wave}", "--set=secretProviderClasses=true", "--set=networkPolicy.enabled=true", "--set=flowControl.enabled=true",
	"--set=metrics.exposure=tls", "--set=metrics.podMonitor.enabled=true", "--set=metrics.rules.enabled=true", "--set=metrics.dashboard.enabled=true",
	"--set=workloads[0].group=example.com", "--set=workloads[0].version=v1", "--set=workloads[0].resource=engines", "--set=workloads[0].template=spec.template",
	"--set=pins.enabled=true", "--set=admissionPolicy.alsoOnSnapshots={team}",
}

// prometheusOperator has the API server know the kinds of Prometheus Operator.
func prometheusOperator(t *testing.T) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", operator)
	command.Dir = t.TempDir()
	out, err := command.Output()
	harness.Must(t, err)
	var module struct{ Dir string }
	harness.Must(t, json.Unmarshal(out, &module))
	for _, kind := range []string{"podmonitors", "servicemonitors", "prometheusrules"} {
		cluster.Kubectl(t, "apply", "--server-side", "-f", filepath.Join(module.Dir, "example", "prometheus-operator-crd", "monitoring.coreos.com_"+kind+".yaml"))
		cluster.Kubectl(t, "wait", "--for=condition=Established", "--timeout=30s", "customresourcedefinition/"+kind+".monitoring.coreos.com")
	}
}

// All that the chart can install at once is accepted, runs, and tells of itself
// by TLS alone.
func TestHelm_Everything(t *testing.T) {
	prometheusOperator(t)
	install(t, everything...)
	t.Log(cluster.Own(t, "get", "podmonitor/configstamp", "prometheusrule/configstamp", "networkpolicy/configstamp", "configmap/configstamp-dashboard"))
	cluster.Kubectl(t, "get", "flowschema/configstamp", "prioritylevelconfiguration/configstamp")
	cluster.WaitServing(t)
	for _, port := range []int{8080, 8081} {
		secure := scrape(t, firstPod(t), "https", port)
		if !strings.Contains(secure, "configstamp_info") {
			t.Errorf("port %d by TLS: %.200s", port, secure)
		}
		if plain := scrape(t, firstPod(t), "http", port); strings.Contains(plain, "configstamp_info") {
			t.Errorf("port %d tells of itself without TLS", port)
		}
	}
	helm(t, "upgrade", "configstamp", "deploy/chart", "--wait", "--timeout=3m", "--set=metrics.exposure=loopback")
	cluster.WaitServing(t)
	for _, port := range []int{8080, 8081} {
		if said := scrape(t, firstPod(t), "http", port); strings.Contains(said, "configstamp_info") {
			t.Errorf("port %d, on loopback alone, is reached from outside the Pod", port)
		}
	}
	uninstall(t)
}

// firstPod is one of our Pods.
func firstPod(t *testing.T) string {
	t.Helper()
	return strings.Fields(cluster.Own(t, "get", "pods", "-o", "name"))[0]
}

// scrape reads metrics of a Pod by way of the API server, which trusts any
// certificate of a Pod.
func scrape(t *testing.T, pod, scheme string, port int) string {
	t.Helper()
	result, err := cluster.Run.Kubectl("", "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%s:%d/proxy/metrics",
		harness.OwnNamespace, scheme, strings.TrimPrefix(pod, "pod/"), port))
	harness.Must(t, err)
	return result.Stdout + result.Stderr
}
