package neighbours

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/harness"
)

// istio is Istio's control plane. It adds a sidecar to Pods, never to the templates of workloads.
const istio = neighbour("istio")

// sidecarImage takes the place of Istio's proxy: e2e/podtruth/app, whose environment can be looked at.
const sidecarImage = "neighbours-sidecar:1"

// istioTemplate is a template of the user's own, beside Istio's: the sidecar reads what the app reads,
// and a ConfigMap of its own.
const istioTemplate = `
spec:
  initContainers:
  - name: istio-proxy
    args: [lenient, "3001"]
    envFrom:
    - {prefix: FROM_, configMapRef: {name: settings}}
    - {prefix: OWN_, configMapRef: {name: proxy}}
`

// istioTurns are the names of the webhook configuration: the API server asks in the order of names.
var istioTurns = []struct{ when, configuration, reinvocation string }{
	{"AskedBeforeUs", "a-istio-sidecar-injector", "IfNeeded"},
	{"AskedAfterUs", "istio-sidecar-injector", "Never"}, // as Istio's chart has it
}

// injected is a namespace whose Pods Istio adds a sidecar to.
type injected struct {
	*harness.Space
	readers
	began time.Time
	word  string
}

// TestIstio: a sidecar that reads ConfigMaps, in Pods whose templates do not know of it.
func TestIstio(t *testing.T) {
	harness.Must(t, run.LoadImage(bounded(), "./e2e/podtruth/app", sidecarImage))
	port := startIstio(t)
	for _, turn := range istioTurns {
		t.Run(turn.when, func(t *testing.T) {
			istioWebhook(t, turn.configuration, turn.reinvocation, port)
			n := newInjected(t, "false")
			n.edits(t)
			n.alonePod(t)
			n.wantWrites(t, 2)
		})
	}
	for _, turn := range istioTurns {
		t.Run("Pinned"+turn.when, func(t *testing.T) {
			withPins(t)
			istioWebhook(t, turn.configuration, turn.reinvocation, port)
			n := newInjected(t, "true")
			n.held(t)
			n.wantWrites(t, 1)
		})
	}
}

// edits has people edit nothing, then what all read, then what the sidecars alone read.
func (n *injected) edits(t *testing.T) {
	t.Helper()
	n.wantStill(t, time.Minute)
	n.wantWrites(t, 0)

	before := n.counts()
	n.word = "second"
	n.Edit("configmap/settings", "setting", n.word)
	n.wantRolled(t, before, 4*time.Minute, once)
	n.wantServing(t, 2*time.Minute)
	n.wantTruth(t)
	n.wantRead(t, n.word, "first", n.all()...)

	before = n.counts()
	n.Edit("configmap/proxy", "level", "second")
	names := func(r reader) int { // templates name nothing that the sidecar alone reads, but for "also"
		if r.name == "also" {
			return 1
		}
		return 0
	}
	n.wantRolled(t, before, 4*time.Minute, names)
	n.wantServing(t, 2*time.Minute)
	n.wantTruth(t)
	n.wantRead(t, n.word, "second", "also")
	n.wantRead(t, n.word, "first", "web")
}

// alonePod makes a Pod that nobody owns: it is stamped itself, with what Istio has added.
func (n *injected) alonePod(t *testing.T) {
	t.Helper()
	created := n.Create(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: alone}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: app, image: %s, imagePullPolicy: Never, args: [lenient],
    env: [{name: SETTING, valueFrom: {configMapKeyRef: {name: settings, key: setting}}}]}]
`, app))
	for _, source := range []string{"configmap/settings", "configmap/proxy", "configmap/istio-ca-root-cert"} {
		if stamp, want := created[0].GetAnnotations()[harness.StampKey(source)], n.Digest(source); stamp != want {
			t.Errorf("the pod's stamp of %s is %q, want %q", source, stamp, want)
		}
	}
}

// held has a change held, and pods that begin meanwhile: both containers read what the template was
// stamped with. What the sidecar alone reads is not pinned.
func (n *injected) held(t *testing.T) {
	t.Helper()
	old := n.word
	n.SetPolicy("namespace", map[string]string{"pause": "true"})
	time.Sleep(2 * time.Second) // all processes know of it
	before := n.counts()
	n.word = "second"
	n.Edit("configmap/settings", "setting", n.word)
	time.Sleep(settle + 3*time.Second)
	n.restartPods(t)
	n.wantServing(t, 2*time.Minute)
	n.wantRead(t, old, "first", n.all()...)
	n.wantRolled(t, before, time.Minute, func(reader) int { return 0 })

	n.SetPolicy("namespace", map[string]string{"pause": "false"})
	n.wantRolled(t, before, 4*time.Minute, once)
	n.wantServing(t, 2*time.Minute)
	n.wantTruth(t)
	n.wantRead(t, n.word, "first", n.all()...)
}

// startIstio starts the control plane outside the cluster, and returns the port of its webhooks.
func startIstio(t *testing.T) int {
	t.Helper()
	files := istio.files(t, "istio.io/istio")
	install(t, filepath.Join(files, "manifests/charts/base/files/crd-all.gen.yaml"))
	kubectl(t, "create", "namespace", "istio-system")
	t.Cleanup(func() { kubectl(t, "delete", "namespace", "istio-system", "--wait=false") })
	kubectlInput(t, istioSettings(t, filepath.Join(files, "manifests/charts/istio-control/istio-discovery")), "apply", "--server-side", "-f", "-")

	certificate, key, err := run.Authority.Pair(time.Now().Add(time.Hour))
	harness.Must(t, err)
	dir := t.TempDir()
	for name, text := range map[string][]byte{"ca.crt": run.Authority.PEM, "tls.crt": certificate, "tls.key": key} {
		harness.Must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	port := freePort(t)
	istio.start(t, "istio.io/istio/pilot/cmd/pilot-discovery",
		[]string{"POD_NAMESPACE=istio-system", "POD_NAME=istiod", "REVISION=default", "ENABLE_NATIVE_SIDECARS=true", "VALIDATION_WEBHOOK_CONFIG_NAME="},
		"discovery", "--kubeconfig="+run.Kubeconfig(), "--namespace=istio-system", "--ctrlz_port=0",
		"--httpsAddr="+net.JoinHostPort(run.HostAddress(), strconv.Itoa(port)), "--httpAddr="+freeAddress(t),
		"--grpcAddr="+freeAddress(t), "--secureGRPCAddr="+freeAddress(t), "--monitoringAddr="+freeAddress(t),
		"--caCertFile="+filepath.Join(dir, "ca.crt"), "--tlsCertFile="+filepath.Join(dir, "tls.crt"), "--tlsKeyFile="+filepath.Join(dir, "tls.key"))
	return port
}

// istioSettings are the ConfigMaps that Istio's chart makes for its injector, with its own template of
// the sidecar and its own values, but for what an image that is no proxy cannot do.
func istioSettings(t *testing.T, chart string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	harness.Must(t, err)
	var values struct {
		Defaults map[string]any `json:"_internal_defaults_do_not_set"`
	}
	harness.Must(t, yaml.Unmarshal(text, &values))
	of := func(parent map[string]any, name string) map[string]any {
		child, ok := parent[name].(map[string]any)
		if !ok {
			t.Fatalf("Istio's chart has no value %s", name)
		}
		return child
	}
	global, webhook := of(values.Defaults, "global"), of(values.Defaults, "sidecarInjectorWebhook")
	global["imagePullPolicy"] = "Never"
	proxy := of(global, "proxy")
	proxy["image"], proxy["statusPort"], proxy["resources"] = "docker.io/library/"+sidecarImage, 0, map[string]any{}
	webhook["rewriteAppHTTPProbe"] = false // the proxy answers probes in the app's place
	picked, err := json.Marshal(map[string]any{
		"global": global, "sidecarInjectorWebhook": webhook, "revision": "", "gateways": values.Defaults["gateways"],
		"pilot": map[string]any{"cni": values.Defaults["cni"], "env": values.Defaults["env"]},
	})
	harness.Must(t, err)
	template, err := os.ReadFile(filepath.Join(chart, "files", "injection-template.yaml"))
	harness.Must(t, err)
	config, err := yaml.Marshal(map[string]any{
		"policy": "enabled", "defaultTemplates": []string{"sidecar", "settings"},
		"templates": map[string]string{"sidecar": string(template), "settings": istioTemplate},
	})
	harness.Must(t, err)
	configMap := func(name string, data map[string]string) string {
		text, err := yaml.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "istio-system"}, "data": data,
		})
		harness.Must(t, err)
		return string(text)
	}
	// Traffic goes past the sidecar: nothing is to be set up for it.
	return configMap("istio", map[string]string{"mesh": "defaultConfig: {interceptionMode: NONE}"}) + "---\n" +
		configMap("istio-sidecar-injector", map[string]string{"config": string(config), "values": string(picked)})
}

// istioWebhook has the API server ask Istio about Pods, as its chart does. Istio itself has it trust the
// webhook; until then no pod can be made, and when this returns, a sidecar is added.
func istioWebhook(t *testing.T, name, reinvocation string, port int) {
	t.Helper()
	run.Install(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: %[1]s, labels: {istio.io/rev: default, app: sidecar-injector}}
webhooks:
- name: namespace.sidecar-injector.istio.io
  clientConfig: {url: 'https://%[2]s/inject'}
  namespaceSelector: {matchLabels: {istio-injection: enabled}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  reinvocationPolicy: %[3]s
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`, name, net.JoinHostPort(run.HostAddress(), strconv.Itoa(port)), reinvocation))
	probe := istioSpace(t, run.PlainSpace(t))
	eventually(t, "waiting until Istio adds a sidecar", time.Minute, func() error {
		result := probe.TryKubectl("run", "probe", "--image=example.com/probe", "--dry-run=server", "--output=yaml")
		if !strings.Contains(result.Stdout, "name: istio-proxy") {
			return errors.New(result.Stderr)
		}
		return nil
	})
}

// istioSpace has Istio add sidecars in a namespace, and waits for what these mount.
func istioSpace(t *testing.T, space *harness.Space) *harness.Space {
	t.Helper()
	space.Patch("namespace/"+space.Namespace, `{"metadata":{"labels":{"istio-injection":"enabled"}}}`)
	space.WaitServiceAccount()
	eventually(t, "waiting for Istio's certificate", time.Minute, func() error {
		_, err := space.TryGet("configmap/istio-ca-root-cert")
		return err
	})
	return space
}

// newInjected makes a namespace in which all pods run, with sidecars.
func newInjected(t *testing.T, pin string) *injected {
	t.Helper()
	n := &injected{Space: istioSpace(t, run.Space(t)), word: "first"}
	// Several edits within ten minutes are what this test is made of.
	n.SetPolicy("namespace", map[string]string{"min-interval": "1ms", "pin": pin})
	n.Set("configmap/settings", "setting", n.word)
	n.Set("configmap/proxy", "level", "first")
	time.Sleep(2 * time.Second) // the namespace's settings are known to all processes
	for _, name := range []string{"web", "worker", "also"} {
		n.readers = append(n.readers, reader{space: n.Space, name: name, source: "configmap/settings", key: "setting", manner: "lenient", replicas: 1})
	}
	for _, r := range n.readers {
		r.create()
	}
	if pin == "false" {
		n.SetPolicy("deployment/also", map[string]string{"also": "configmap/proxy"})
	}
	n.wantServing(t, 4*time.Minute)
	for _, r := range n.readers {
		n.Settled(r.workload())
	}
	n.wantTruth(t)
	n.wantRead(t, n.word, "first", n.all()...)
	n.began = time.Now()
	return n
}

// all are the names of the readers.
func (n *injected) all() (names []string) {
	for _, r := range n.readers {
		names = append(names, r.name)
	}
	return names
}

// wantRead waits until both containers of some readers have read what they are to: the app and the
// sidecar of what they share, and the sidecar of its own.
func (n *injected) wantRead(t *testing.T, shared, own string, names ...string) {
	t.Helper()
	for _, r := range n.readers {
		if slices.Contains(names, r.name) {
			r.wantRead(t, map[string]string{"app/SETTING": shared, "istio-proxy/FROM_setting": shared, "istio-proxy/OWN_level": own})
		}
	}
}

// restartPods deletes all pods.
func (n *injected) restartPods(t *testing.T) {
	t.Helper()
	n.Kubectl("delete", "pods", "--all", "--wait=true")
}

// wantWrites checks that configstamp wrote each Deployment so often at most, and that Istio wrote none.
func (n *injected) wantWrites(t *testing.T, most int) {
	t.Helper()
	here := func(q request) bool { return q.Namespace == n.Namespace }
	ours, _ := written(t, n.began, controller, "deployments", here)
	theirs, _ := written(t, n.began, "pilot-discovery", "deployments", here)
	t.Logf("configstamp wrote Deployments: %s; Istio: %s", spread(ours), spread(theirs))
	for object, times := range ours {
		if times > most {
			t.Errorf("configstamp wrote %s %d times, want at most %d", object, times, most)
		}
	}
	if len(theirs) > 0 {
		t.Errorf("Istio wrote %v", theirs)
	}
	t.Log("writes of everybody:\n" + strings.Join(tally(requests(t, n.began, func(q request) bool { return here(q) && q.writes() })), "\n"))
}

// withPins has the product pin, with the rights and the webhooks of that, to the end of the test.
func withPins(t *testing.T) {
	t.Helper()
	run.Exclusive(t)
	for _, kind := range []string{"ClusterRole", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingWebhookConfiguration"} {
		run.Configure(t, kind, "e2e/testdata/pins.yaml")
	}
	pins := options()
	pins.Webhook, pins.Controller = append(pins.Webhook, "--pins"), append(pins.Controller, "--pins")
	harness.Must(t, run.Product.Restart(t.Context(), pins))
}
