package install

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/pods"
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

// What the chart renders is what the API server says that its kinds are: to
// kubeconform, and, all of it together, to the API server itself.
func TestEverythingConforms(t *testing.T) {
	prometheusOperator(t)
	schemas := t.TempDir()
	writeSchemas(t, schemas)
	for name, values := range map[string][]string{
		"nothing set": nil, "everything": everything,
		"self-managed": {"--set=certificates.mode=self-managed"}, "namespaced": {"--set=namespaces={a,b}"},
		"a service monitor": {"--set=metrics.serviceMonitor.enabled=true", "--set=namespace.create=true"},
	} {
		manifest := filepath.Join(t.TempDir(), "manifest.yaml")
		out, err := cluster.Helm(t.Context(), append([]string{"template", "configstamp", "deploy/chart", "--namespace=configstamp"}, values...)...)
		harness.Must(t, err)
		harness.Must(t, os.WriteFile(manifest, []byte(out), 0o600))
		said, err := pods.Program(t.Context(), "kubeconform", os.Environ(), "-strict", "-summary",
			"-schema-location", filepath.Join(schemas, "{{.ResourceKind}}{{.KindSuffix}}.json"), manifest)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
		t.Logf("%s: %s", name, strings.TrimSpace(said))
	}
}

// writeSchemas writes the API server's own OpenAPI as kubeconform reads schemas:
// a file for each kind. A field that is not in it is an error.
func writeSchemas(t *testing.T, to string) {
	t.Helper()
	var document struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	harness.Must(t, json.Unmarshal([]byte(cluster.Kubectl(t, "get", "--raw", "/openapi/v2")), &document))
	all := filepath.Join(to, "definitions.json")
	for name, definition := range document.Definitions {
		_, properties := definition["properties"]
		_, further := definition["additionalProperties"]
		if properties && !further && definition["x-kubernetes-preserve-unknown-fields"] != true {
			definition["additionalProperties"] = false
		}
		if definition["format"] == "int-or-string" { // OpenAPI 2 cannot say it
			document.Definitions[name] = map[string]any{"type": []string{"string", "integer"}}
		}
		for _, kind := range kindsOf(t, definition) {
			file := strings.ToLower(kind.Kind) + "-" + kind.Version
			if group, _, _ := strings.Cut(kind.Group, "."); group != "" {
				file = strings.ToLower(kind.Kind) + "-" + group + "-" + kind.Version
			}
			write(t, filepath.Join(to, file+".json"), map[string]any{"$ref": "file://" + all + "#/definitions/" + name})
		}
	}
	write(t, all, map[string]any{"definitions": document.Definitions})
}

// kindsOf are the kinds that a definition is of.
func kindsOf(t *testing.T, definition map[string]any) (kinds []schema.GroupVersionKind) {
	t.Helper()
	encoded, err := json.Marshal(definition["x-kubernetes-group-version-kind"])
	harness.Must(t, err)
	harness.Must(t, json.Unmarshal(encoded, &kinds))
	return kinds
}

func write(t *testing.T, file string, content any) {
	t.Helper()
	encoded, err := json.Marshal(content)
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(file, encoded, 0o600))
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
