package inspect_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// What the plugin takes where it cannot read the cluster's settings is what the chart
// publishes of a server without flags, and that is what the program itself says
// (TestPublishedSettings of cmd/configstamp).
func TestDefaults_AreThoseThatTheChartPublishes(t *testing.T) {
	text, err := os.ReadFile("../../../../deploy/chart/files/settings.yaml")
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
	server, cluster := start(t)
	server.Put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": inspect.SettingsName, "namespace": "configstamp"}, "data": data,
	}})
	without, bare := start(t)
	without.Delete(t, "/api/v1/namespaces/configstamp/configmaps/"+inspect.SettingsName)
	got, want := settings(t, bare), settings(t, cluster)
	same := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(checksum.Policy{}), cmpopts.IgnoreFields(seen.Settings{}, "Installation", "Read", "Absent", "Kinds"), cmp.Comparer(func(a, b interface{ String() string }) bool { return a.String() == b.String() })}
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("the chart (-) and the plugin (+) differ:\n%s", diff)
	}
}

// A flag whose value stands in another object is published as unknown.
func TestSettings_AFlagThatTheChartDoesNotKnow(t *testing.T) {
	server, cluster := start(t)
	server.Apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: configstamp-settings, namespace: configstamp}\ndata: {settle: unknown, soak: 20s, first-soak: 40s}\n")
	s := settings(t, cluster)
	if gaps := cluster.Gaps(); s.Limits.Settle != 2*time.Second || s.Limits.Soak != 20*time.Second || s.Limits.FirstSoak != 40*time.Second || len(gaps) != 1 || !strings.Contains(gaps[0].String(), "settle") {
		t.Errorf("read %+v; not seen: %v", s.Limits, gaps)
	}
}
