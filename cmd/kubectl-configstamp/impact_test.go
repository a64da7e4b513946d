package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

func TestImpact(t *testing.T) {
	server := fakecluster.New(t, "testdata/impact/shop.yaml")
	golden(t, "impact", server, "impact", "configmap/payment-api-config")
	golden(t, "impact-key", server, "impact", "cm", "payment-api-config", "--key", "LOG_LEVEL")
	golden(t, "impact-ignored-key", server, "impact", "cm/payment-api-config", "--key", "build-date", "--exit-code")
	golden(t, "impact-delete", server, "impact", "cm/payment-api-config", "--delete", "--exit-code")
	golden(t, "impact-name", server, "impact", "cm/payment-api-config", "-o", "name")
	golden(t, "impact-json", server, "impact", "cm/payment-api-config", "--key", "DB_HOST", "-o", "json")
	golden(t, "impact-of-nothing", server, "impact", "secret/nobody-uses-this", "--exit-code")
	golden(t, "impact-of-what-is-not-there", server, "impact", "cm/gone")
	golden(t, "impact-nothing-asked", server, "impact")
}

func TestImpact_OfManifests(t *testing.T) {
	server := fakecluster.New(t, "testdata/impact/shop.yaml")
	golden(t, "impact-manifests", server, "impact", "-f", "testdata/impact/next.yaml", "--exit-code")
	golden(t, "impact-manifests-same", server, "impact", "-f", "testdata/impact/same.yaml", "--exit-code")
	golden(t, "impact-two-questions", server, "impact", "cm/x", "-f", "testdata/impact/next.yaml")
	golden(t, "impact-no-such-file", server, "impact", "-f", "testdata/impact/nowhere.yaml")
}

// Who may read little is told what was not looked at, and --exit-code is not 0 for it.
func TestImpact_WithFewRights(t *testing.T) {
	server := fakecluster.New(t, "testdata/impact/shop.yaml")
	server.Forbid = func(_, resource, _ string) bool { return resource != "deployments" }
	golden(t, "impact-few-rights", server, "impact", "cm/payment-api-config", "--key", "DB_HOST", "--exit-code")
	golden(t, "impact-manifests-few-rights", server, "impact", "-f", "testdata/impact/same.yaml", "--exit-code")
	server.Forbid = func(_, resource, _ string) bool { return resource != "configmaps" }
	golden(t, "impact-no-workloads", server, "impact", "cm/payment-api-config", "--exit-code")
}

// A thousand users of one source are all counted, and listed in part.
func TestImpact_AThousand(t *testing.T) {
	server := fakecluster.New(t, "testdata/impact/shop.yaml")
	const one = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%03d, namespace: shop, generation: 2}
spec:
  replicas: 3
  selector: {matchLabels: {app: web-%03d}}
  template:
    metadata: {annotations: {configmap.configstamp.dev/payment-api-config: "v1:01234567:f8e039cb:00112233445566778899aabbccddeeff"}}
    spec: {containers: [{name: app, envFrom: [{configMapRef: {name: payment-api-config}}]}]}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3, readyReplicas: 3}
`
	for n := range 1000 {
		server.Apply(t, fmt.Sprintf(one, n, n))
	}
	out, errOut, code := run(t, server, "impact", "cm/payment-api-config")
	if code != 0 || errOut != "" || !strings.Contains(out, "\n1006 workloads would restart") || !strings.Contains(out, "\nand 992 more; -o wide lists them.\n") {
		t.Errorf("exit code %d\n%s\n%s", code, out, errOut)
	}
}
