package neighbours

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Flux's helm-controller installs and upgrades a chart, and corrects drift from it. Its module is
// not on the proxy, so its program is built elsewhere (docs/gitops.md says how), in a checkout
// that has its CustomResourceDefinitions, too.
var helmProgram = flag.String("helm-controller", "", "the program of fluxcd/helm-controller, in its checkout; without it TestHelmController is skipped")

const (
	// helmInterval is how often it compares the cluster with the release.
	helmInterval = 5 * time.Second
	// helmTimeout is how long an upgrade waits for health.
	helmTimeout = 20 * time.Second
	// What its log says of a comparison that finds nothing, and of one that does.
	helmUndrifted = "release in-sync with desired state"
	helmDrifted   = "detected changes in cluster state"
)

// helmed is a namespace with a release of a chart: a ConfigMap and two workloads.
type helmed struct {
	*fluxed
	helm        *program
	configstamp func(args ...string) string
	values      map[string]any
	actions     map[string]int // of helm-controller, that write each object once
}

var (
	helmUses = []string{"deployment/web configmap/setting", "deployment/worker configmap/setting"}
	helmBoth = harness.Rolls{"deployment/web": 1, "deployment/worker": 1}
)

func TestHelmController(t *testing.T) {
	stories := []struct {
		name string
		tell func(*testing.T, *helmed)
	}{
		{"NothingChanges", helmQuiet},
		{"Upgrades", helmUpgrades},
		{"TheConfigMapByHand", helmDrift},
		{"TheTemplateByHand", helmDriftTemplate},
		{"APause", helmPause},
		{"ABadEditOfTheConfigMapAlone", helmHalt},
		{"ABadRelease", helmRollback},
	}
	needs(t, "helm-controller", *helmProgram, "docs/gitops.md", len(stories))
	for _, files := range []string{filepath.Dir(*helmProgram), fluxSource.files(t, "github.com/fluxcd/source-controller")} {
		install(t, filepath.Join(files, "config", "crd", "bases"))
	}
	shop := newHelmed(t, launch(t, *helmProgram, []string{"RUNTIME_NAMESPACE=flux-system"},
		"--metrics-addr=0", "--health-addr=0", "--log-level=debug", "--feature-gates=ExternalArtifact=true"))
	for _, story := range stories {
		if !t.Run(story.name, func(t *testing.T) {
			same := *shop
			same.fluxed = shop.in(t)
			story.tell(t, &same)
			same.wantTruth(t, helmUses...)
		}) {
			return
		}
	}
	all, rolls := shop.asked(t, shop.since), 0
	for _, count := range shop.Counts() {
		rolls = max(rolls, count.Rolls)
	}
	helm, byHelm := busiest(all, filepath.Base(*helmProgram))
	ours, byUs := busiest(all, configstampAgent)
	t.Logf("in %s, %v:\n%s\nmost writes: %d of %s by helm-controller, %d of %s by configstamp\nrollouts: %v",
		time.Since(shop.since).Round(time.Second), shop.actions, strings.Join(tally(all), "\n"), byHelm, helm, byUs, ours, shop.Counts())
	actions := 0
	for _, times := range shop.actions {
		actions += times
	}
	if byHelm == 0 || byHelm > actions || byUs == 0 || byUs > 1+rolls {
		t.Errorf("want at most %d writes of an object by helm-controller, at most %d by configstamp, and some by each", actions, 1+rolls)
	}
	drift := 0
	for line := range strings.Lines(shop.log(t)) {
		if strings.Contains(line, "resource modified") {
			drift++
			if strings.Contains(line, "configstamp.dev") || strings.Count(line, `"op":`) != 1 {
				t.Errorf("more has drifted than the one field that somebody edited: %s", line)
			}
		}
	}
	if drift != shop.actions["correction"] {
		t.Errorf("it found drift in %d objects, want %d", drift, shop.actions["correction"])
	}
}

// newHelmed installs the chart.
func newHelmed(t *testing.T, helm *program) *helmed {
	t.Helper()
	h := &helmed{
		fluxed: &fluxed{Space: run.Space(t), since: time.Now()}, helm: helm, configstamp: fluxPlugin(t),
		values: map[string]any{"setting": "good-0", "version": "1", "unused": "0"}, actions: map[string]int{},
	}
	h.SetPolicy("namespace", map[string]string{"min-interval": "1ms"}) // many edits within ten minutes
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(h.Report(), h.release(t, "{.status}"), helm.tail())
		}
		kubectl(t, "delete", "--namespace="+h.Namespace, "helmreleases.helm.toolkit.fluxcd.io", "shop")
	})
	h.publish(t, map[string]string{
		"shop/Chart.yaml":             "apiVersion: v2\nname: shop\nversion: 0.1.0\n",
		"shop/templates/setting.yaml": fluxConfigMap("setting", "{{ .Values.setting }}"),
		"shop/templates/web.yaml":     fluxApp("Deployment", "web", "{{ .Values.version }}", "configmap/setting"),
		"shop/templates/worker.yaml":  fluxApp("Deployment", "worker", "{{ .Values.version }}", "configmap/setting"),
	})
	h.upgrade(t, nil)
	h.wantTruth(t, helmUses...)
	h.Settled("deployment/web", "deployment/worker")
	h.Quiet()
	for workload, count := range h.Counts() {
		if count.Rolls != 0 {
			t.Errorf("the installation rolled %s %d times", workload, count.Rolls)
		}
	}
	return h
}

// publish offers a chart, in place of a source-controller.
func (h *helmed) publish(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range h.named(files) {
		file := filepath.Join(dir, name)
		harness.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		harness.Must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	chart, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "-cz", "shop").Output()
	harness.Must(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(chart) }))
	t.Cleanup(server.Close)
	kubectlInput(t, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: ExternalArtifact\nmetadata: {name: shop, namespace: "+h.Namespace+"}\nspec: {}\n", "apply", "-f", "-")
	now := time.Now().UTC().Format(time.RFC3339)
	kubectl(t, "--namespace="+h.Namespace, "patch", "externalartifact", "shop", "--subresource=status", "--type=merge", "--patch", fmt.Sprintf(
		`{"status": {"artifact": {"url": %q, "path": "shop.tgz", "revision": "0.1.0", "digest": "sha256:%x", "lastUpdateTime": %q},
		"conditions": [{"type": "Ready", "status": "True", "reason": "Published", "message": "", "lastTransitionTime": %q}]}}`,
		server.URL+"/shop.tgz", sha256.Sum256(chart), now, now))
}

// upgrade changes values of the release, of which helm-controller makes a revision, and waits until
// it says so.
func (h *helmed) upgrade(t *testing.T, values map[string]any) {
	t.Helper()
	h.actions["upgrade"]++
	h.set(t, values, "Ready")
	if revision := h.release(t, "{.status.history[0].version}"); revision != strconv.Itoa(h.actions["upgrade"]+h.actions["rollback"]) {
		t.Fatalf("the release has the revision %s after %v", revision, h.actions)
	}
}

// set changes values of the release, and waits until a condition is true.
func (h *helmed) set(t *testing.T, values map[string]any, condition string) {
	t.Helper()
	maps.Copy(h.values, values)
	release := &unstructured.Unstructured{}
	harness.Must(t, yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: NAMESPACE}
spec:
  interval: %s
  timeout: %s
  driftDetection: {mode: enabled}
  chartRef: {kind: ExternalArtifact, name: shop}
  upgrade: {remediation: {retries: 0, remediateLastFailure: true, strategy: rollback}}
`, helmInterval, helmTimeout), &release.Object))
	field(t, release, h.values, "spec", "values")
	h.apply(t, release)
	eventually(t, "the release is "+condition, 2*time.Minute, func() error {
		says := h.release(t, fmt.Sprintf(`{.metadata.generation} {.status.conditions[?(@.type==%q)]['observedGeneration','status']}`, condition))
		if at := strings.Fields(says); len(at) != 3 || at[0] != at[1] || at[2] != "True" {
			return fmt.Errorf("it says %s", says)
		}
		return nil
	}, h.helm.tail)
}

// release is a field of the HelmRelease.
func (h *helmed) release(t *testing.T, path string) string {
	t.Helper()
	return kubectl(t, "get", "helmreleases.helm.toolkit.fluxcd.io", "shop", "--namespace="+h.Namespace, "-o=jsonpath="+path)
}

// asked are the requests of all about what the chart makes.
func (h *helmed) asked(t *testing.T, since time.Time) []request {
	t.Helper()
	all := requests(t, since, func(q request) bool {
		return q.Namespace == h.Namespace && q.Subresource == "" && (q.Resource == "deployments" || q.Resource == "configmaps" && q.Name == "setting")
	})
	for i := range all {
		if all[i].Agent == "Go-http-client" { // Helm's own library, in helm-controller
			all[i].Agent = filepath.Base(*helmProgram)
		}
	}
	return all
}

// log is what helm-controller has logged.
func (h *helmed) log(t *testing.T) string {
	t.Helper()
	log, err := os.ReadFile(h.helm.log)
	harness.Must(t, err)
	return string(log)
}
