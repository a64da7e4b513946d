package main

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// With opt-in all, commands cover Namespaces without the label.
func TestWholeCluster(t *testing.T) {
	server := usedIn(t, "labels: {}", "", "opt-in: all")
	server.Everywhere = true
	server.Apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: out, labels: {configstamp.dev/inject: disabled}}
---
apiVersion: v1
kind: Namespace
metadata: {name: kube-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: kube-node-lease}
---
apiVersion: v1
kind: Namespace
metadata: {name: configstamp}
`)
	web := fmt.Sprintf(usedBy, "", 0, webStamped, "containers: [{name: c, envFrom: [{configMapRef: {name: web}}]}]")
	server.Apply(t, web)
	server.Apply(t, strings.NewReplacer("namespace: shop", "namespace: out", webStamped, "").Replace(web))
	// A workload that is served, and of which the webhook says nothing, is no success.
	server.Dry = func(string, *unstructured.Unstructured) ([]string, error) { return nil, nil }
	if out, errOut, code := run(t, server, "wait", "configmap/web", "--timeout=2s"); code == 0 || !strings.Contains(out+errOut, "deployment/app") {
		t.Errorf("wait ended with %d:\n%s%s", code, out, errOut)
	}
	if out, errOut, code := run(t, server, "pause", "-A", "-o", "name", "--dry-run=client"); code != 0 || strings.TrimSpace(out) != "namespace/shop" {
		t.Errorf("pause ended with %d:\n%s%s", code, out, errOut)
	}
	out, errOut, _ := run(t, server, "why", "deployment/app", "-n", "out")
	if text := strings.Join(strings.Fields(out), " "); !strings.Contains(text, "the label configstamp.dev/inject of its Namespace is disabled") || strings.Contains(text, "--namespaces") || !strings.Contains(text, "kubectl label deployment/app -n out --overwrite configstamp.dev/inject=enabled") {
		t.Errorf("why prints\n%s%s", out, errOut)
	}
}
