package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

const unlabelled = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: configstamp-settings, namespace: configstamp}
data: {settle: 2s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: left-alone, namespace: shop, labels: {configstamp.dev/inject: disabled}}
spec: {template: {spec: {containers: [{name: c, envFrom: [{configMapRef: {name: web}}]}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: shop}
spec:
  replicas: 1
  template:
    metadata: {annotations: {configmap.configstamp.dev/web: "v1:aaaaaaaa:all:11111111111111111111111111111111"}}
    spec: {containers: [{name: c, envFrom: [{configMapRef: {name: web}}]}]}
status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: another, namespace: shop}
spec: {template: {spec: {containers: [{name: c, envFrom: [{configMapRef: {name: other}}]}]}}}
status: {observedGeneration: 0}
`

// Which namespaces --namespaces lists is not published. Of one without a label it is the
// webhook that says whether it serves it, asked once.
func TestServed_WhereNoLabelSaysSo(t *testing.T) {
	said := map[string]struct{ users, impact string }{
		"served": {"1 of 2 restart", "1 workload would restart"},
		"silent": {"0 of 2 restart", "No workload would roll"},
		"hidden": {"0 of 2 restart", "No workload would roll"},
	}
	for name, want := range said {
		t.Run(name, func(t *testing.T) {
			server := fakecluster.New(t)
			server.Apply(t, fmt.Sprintf(unlabelled, name))
			switch name {
			case "served":
				server.Everywhere = true
				server.Dry = func(string, *unstructured.Unstructured) ([]string, error) { return []string{inStep}, nil }
			case "hidden":
				server.Forbid = func(verb, _, _ string) bool { return verb == "patch" }
			}
			for args, part := range map[string]string{"users cm/web": want.users, "impact cm/web": want.impact} {
				out, errOut, code := run(t, server, strings.Fields(args)...)
				if code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(part), " ")) {
					t.Errorf("%s: exit code %d, want %q in\n%s%s", args, code, part, out, errOut)
				}
				asked := slices.DeleteFunc(server.Requests(), func(request string) bool { return !strings.HasPrefix(request, "PATCH") })
				if most := map[bool]int{true: 3, false: 1}[name == "served"]; len(asked) == 0 || len(asked) > most {
					t.Errorf("%s: asked %q", args, asked)
				}
			}
			if out, _, code := run(t, server, "pause", "-A"); code == 0 { // no label tells which these are
				t.Errorf("pause -A says\n%s", out)
			}
		})
	}
}
