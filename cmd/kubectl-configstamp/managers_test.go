package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Who may write an annotation again is who applies it, not who wrote it by hand.
func TestApplier(t *testing.T) {
	const (
		pause   = `{"f:metadata": {"f:annotations": {".": {}, "f:configstamp.dev/pause": {}}}}`
		all     = `{"f:metadata": {"f:annotations": {"f:configstamp.dev/pause": {}}, "f:labels": {"f:app": {}}}}`
		whole   = `{"f:metadata": {"f:annotations": {"f:configstamp.dev/pause": {}}}, "f:spec": {"f:replicas": {}}}`
		applied = `{"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {}}, "f:labels": {}}}`
		labels  = `{"f:metadata": {"f:labels": {"f:app": {}}}}`
		with    = `{"metadata": {"annotations": {"configstamp.dev/pause": "false"}}}`
		without = `{"metadata": {"annotations": {"configstamp.dev/window": "x"}}}`
	)
	entry := func(manager, operation, fields string) string {
		return "\n  - {manager: " + manager + ", operation: " + operation + `, time: "2026-11-22T01:00:00Z", fieldsV1: ` + fields + "}"
	}
	for name, test := range map[string]struct {
		lastApplied, entries, want string
	}{
		"Flux, and all who apply on the server":        {"", entry("kustomize-controller", "Apply", pause), "kustomize-controller"},
		"kubectl apply --server-side":                  {"", entry("kubectl", "Apply", pause), "kubectl apply"},
		"who applies other things":                     {"", entry("kustomize-controller", "Apply", labels) + entry("kubectl-annotate", "Update", pause), ""},
		"Helm 3":                                       {"", entry("helm", "Update", whole), "helm"},
		"Helm 3, of a Namespace":                       {"", entry("helm", "Update", all), "helm"},
		"kubectl apply":                                {with, entry("kubectl-client-side-apply", "Update", applied), "kubectl apply"},
		"kubectl apply, and somebody has paused since": {with, entry("kubectl-client-side-apply", "Update", applied) + entry("configstamp-order", "Update", pause), "kubectl apply"},
		"Argo CD": {with, entry("argocd-controller", "Update", applied), "argocd-controller"},
		"Argo CD, which has something else in Git":      {without, entry("argocd-controller", "Update", applied) + entry("configstamp-order", "Update", pause), ""},
		"Argo CD, which nothing tells the name of":      {with, "", "kubectl apply"},
		"kubectl replace":                               {"", entry("kubectl-replace", "Update", all), "kubectl-replace"},
		"a person":                                      {"", entry("kubectl-annotate", "Update", pause), ""},
		"a person under a name of their own":            {"", entry("oncall", "Update", pause), ""},
		"a person who wrote more":                       {"", entry("kubectl-edit", "Update", whole), ""},
		"what was there before anybody applied":         {"", entry("before-first-apply", "Update", whole), ""},
		"the order of before":                           {"", entry("configstamp-order", "Update", pause), ""},
		"what was applied last cannot be read":          {"{", "", ""},
		"nobody":                                        {"", "", ""},
		"a subresource, whose writer applies no object": {"", strings.Replace(entry("controller", "Update", whole), "operation", "subresource: status, operation", 1), ""},
	} {
		manifest := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n"
		if test.lastApplied != "" {
			manifest += "  annotations: {kubectl.kubernetes.io/last-applied-configuration: '" + test.lastApplied + "'}\n"
		}
		if test.entries != "" {
			manifest += "  managedFields:" + test.entries + "\n"
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			t.Fatal(err)
		}
		if got := applierOf(object, "configstamp.dev/pause"); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
