package matrix

import (
	"regexp"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// gates are the feature gates of the API server that change what configstamp asks or is asked. One
// that is always on is not listed any more.
var gates = []string{"WatchList", "ConsistentListFromCache", "MutatingAdmissionPolicy"}

// What a version has is asked of its API server, for the table of docs/kubernetes-versions.md.
func TestWhatThisVersionHas(t *testing.T) {
	get := func(path string) string {
		t.Helper()
		text, err := run.Client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(t.Context())
		harness.Must(t, err)
		return string(text)
	}
	t.Logf("Kubernetes %s", version(t))
	all := regexp.MustCompile(`(?m)^kubernetes_feature_enabled\{name="([^"]+)",stage="([^"]*)"\} ([01])$`).FindAllStringSubmatch(get("/metrics"), -1)
	if len(all) < 20 {
		t.Fatalf("the API server lists %d feature gates", len(all))
	}
	for _, gate := range gates {
		found := "no such gate: not there yet, or always on"
		for _, each := range all {
			if each[1] == gate {
				found = map[string]string{"0": "off", "1": "on"}[each[3]] + " (" + strings.ToLower(each[2]) + ")"
			}
		}
		t.Logf("%s: %s", gate, found)
	}
	groups, err := run.Client.Discovery().ServerGroups()
	harness.Must(t, err)
	for _, group := range groups.Groups {
		if group.Name != "admissionregistration.k8s.io" {
			continue
		}
		for _, served := range group.Versions {
			resources, err := run.Client.Discovery().ServerResourcesForGroupVersion(served.GroupVersion)
			harness.Must(t, err)
			for _, resource := range resources.APIResources {
				if !strings.Contains(resource.Name, "/") && strings.HasSuffix(resource.Name, "admissionpolicies") {
					t.Logf("%s: %s", resource.Name, served.GroupVersion)
				}
			}
		}
	}
	// What the chart installs, with match conditions and policies in CEL, is what stands there.
	for _, kind := range []string{"mutatingwebhookconfiguration/configstamp", "validatingadmissionpolicy/configstamp"} {
		result, err := run.Kubectl("", "get", kind, "-o", "name")
		harness.Must(t, err)
		t.Log(strings.TrimSpace(result.Stdout))
	}
	expressions, err := run.Kubectl("", "get", "mutatingwebhookconfiguration/configstamp", "-o", "jsonpath={.webhooks[*].matchConditions[*].expression}")
	harness.Must(t, err)
	if strings.TrimSpace(expressions.Stdout) == "" {
		t.Error("the webhook has lost its match conditions")
	}
	warnings, err := run.Kubectl("", "get", "validatingadmissionpolicies", "-o", "jsonpath={.items[*].status.typeChecking.expressionWarnings}")
	harness.Must(t, err)
	if strings.TrimSpace(warnings.Stdout) != "" {
		t.Errorf("this version finds fault with a policy: %s", warnings.Stdout)
	}
}
