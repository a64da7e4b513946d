package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/fakecluster"
	"github.com/configstamp/configstamp/internal/rules"
	"github.com/configstamp/configstamp/internal/workload"
)

// settingsIn reads the settings of a cluster.
func settingsIn(t *testing.T, server *fakecluster.Server) (*clusterSettings, error) {
	t.Helper()
	p := newPlugin(genericiooptions.NewTestIOStreamsDiscard(), atThree)
	kubeconfig, cache, installation := server.Kubeconfig(t, "shop"), t.TempDir(), "configstamp"
	p.config.KubeConfig, p.config.CacheDir, p.installation = &kubeconfig, &cache, installation
	p.config.WrapConfigFn = func(config *rest.Config) *rest.Config { return p.wrap(server.Wrap(config)) }
	return p.readSettings(t.Context())
}

func withSettings(t *testing.T, data map[string]any) *fakecluster.Server {
	t.Helper()
	server := fakecluster.New(t)
	server.Put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": settingsName, "namespace": "configstamp"}, "data": data,
	}})
	return server
}

// Where the cluster's settings cannot be read, the plugin assumes what the chart publishes of a server without flags. That
// is what the program itself does (TestPublishedSettings of cmd/configstamp).
func TestDefaults_AreThoseThatTheChartPublishes(t *testing.T) {
	text, err := os.ReadFile("../../deploy/chart/files/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var published struct {
		Both, Controller map[string]string
	}
	if err := yaml.Unmarshal(text, &published); err != nil {
		t.Fatal(err)
	}
	data := map[string]any{}
	for _, flags := range []map[string]string{published.Both, published.Controller} {
		for flag, value := range flags {
			data[flag] = value
		}
	}
	if len(data) < 20 {
		t.Fatalf("%d flags are published", len(data))
	}
	want, err := settingsIn(t, withSettings(t, data))
	if err != nil || !want.Read {
		t.Fatalf("read: %+v, error %v", want, err)
	}
	got, err := settingsIn(t, fakecluster.New(t))
	if err != nil || !got.Absent {
		t.Fatalf("read: %+v, error %v", got, err)
	}
	same := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(checksum.Policy{}, rules.Flags{}), cmpopts.IgnoreFields(clusterSettings{}, "Read", "Absent", "Unread"), cmp.Comparer(func(a, b *workload.Kind) bool { return a.String() == b.String() })}
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("the chart (-) and the plugin (+) differ:\n%s", diff)
	}
}

func TestSettings(t *testing.T) {
	for name, test := range map[string]struct {
		data map[string]any
		want func(*clusterSettings) bool
	}{
		"pins":       {map[string]any{"pins": "true"}, func(s *clusterSettings) bool { return s.Pins }},
		"configMaps": {map[string]any{"sources": "configmaps"}, func(s *clusterSettings) bool { return !s.Policy.Serves(checksum.Secret) }},
		"observe":    {map[string]any{"mode": "observe"}, func(s *clusterSettings) bool { return s.Policy.Observe }},
		"all opted in": {map[string]any{"opt-in": "all"}, func(s *clusterSettings) bool {
			return s.OptIn == checksum.OptInAll && s.excludes("kube-node-lease") && !s.excludes("shop")
		}},
		"two dialects":    {map[string]any{"dialects": "reloader,wave"}, func(s *clusterSettings) bool { return len(s.Dialects) == 2 }},
		"ignored sources": {map[string]any{"ignore-sources": "configmap/a"}, func(s *clusterSettings) bool { return len(s.Policy.Ignored) == 1 }},
		// A flag whose value stands in another object is published as unknown.
		"an unknown value": {map[string]any{"pins": "unknown"}, func(s *clusterSettings) bool {
			return !s.Pins && len(s.Unread) == 1 && strings.HasPrefix(s.Unread[0], "the flag pins: ")
		}},
	} {
		if s, err := settingsIn(t, withSettings(t, test.data)); err != nil || !test.want(s) {
			t.Errorf("%s: read %+v, error %v", name, s, err)
		}
	}
	for key, value := range map[string]any{"dialects": "nonsense", "opt-in": "nonsense", "ignore-sources": "nonsense", "workload": "nonsense"} {
		if _, err := settingsIn(t, withSettings(t, map[string]any{key: value})); err == nil || !strings.Contains(err.Error(), "configmaps configstamp-settings in namespace configstamp: --"+key+": ") {
			t.Errorf("%s: the error is %v", key, err)
		}
	}
	server := withSettings(t, map[string]any{"pins": "true"})
	server.Forbid = func(_, resource, _ string) bool { return resource == "configmaps" }
	if s, err := settingsIn(t, server); err != nil || s.Read || s.Absent || s.Pins || len(s.Unread) != 1 {
		t.Errorf("without the right: read %+v, error %v", s, err)
	}
}

func TestFindKind(t *testing.T) {
	table := workload.Builtin().With(workload.Known()...)
	for word, want := range map[string]string{
		"deploy": "deployments.apps", "Deployment": "deployments.apps", "deployments.apps": "deployments.apps", "deployment.v1.apps": "deployments.apps",
		"sts": "statefulsets.apps", "po": "pods", "rollout": "rollouts.argoproj.io", "cj": "cronjobs.batch",
	} {
		kind, err := findKind(table, word)
		if err != nil || kind.String() != want {
			t.Errorf("%s is %v, error %v", word, kind, err)
		}
	}
	for _, word := range []string{"", "configmap", "deployments.example.com"} {
		if kind, err := findKind(table, word); err == nil {
			t.Errorf("%q is %s", word, kind)
		}
	}
}

// version tells what runs in the cluster, or that this is not known.
func TestVersion(t *testing.T) {
	server := fakecluster.New(t)
	want := func(part string) {
		t.Helper()
		out, errOut, code := run(t, server, "version")
		if code != 0 || errOut != "" || !strings.HasPrefix(out, "kubectl-configstamp dev ") || !strings.Contains(out, "in namespace configstamp: "+part) {
			t.Errorf("exit code %d, want %q in\n%s%s", code, part, out, errOut)
		}
	}
	want("no Deployment with the label app.kubernetes.io/name=configstamp")
	server.Apply(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: configstamp, namespace: configstamp, labels: {app.kubernetes.io/name: configstamp, app.kubernetes.io/version: v1.2.3}}
spec: {template: {spec: {containers: [{name: webhook, image: "example.com/configstamp:v1.2.3"}, {name: controller, image: "example.com/configstamp:v1.2.3"}]}}}`)
	want("deployment/configstamp v1.2.3, webhook example.com/configstamp:v1.2.3, controller example.com/configstamp:v1.2.3\n")
	server.Forbid = func(_, resource, _ string) bool { return resource == "deployments" }
	want("not known: deployments is forbidden")
}
