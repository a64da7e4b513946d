package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A tool that applies an annotation may write it again. A person who wrote it by hand does not.
func TestAppliedBy(t *testing.T) {
	const (
		pause  = `{"f:metadata": {"f:annotations": {".": {}, "f:configstamp.dev/pause": {}}}}`
		all    = `{"f:metadata": {"f:annotations": {"f:configstamp.dev/pause": {}}, "f:labels": {"f:app": {}}}}`
		whole  = `{"f:metadata": {"f:annotations": {"f:configstamp.dev/pause": {}}}, "f:spec": {"f:replicas": {}}}`
		labels = `{"f:metadata": {"f:labels": {"f:app": {}}}}`
	)
	entry := func(manager, operation, fields string) string {
		return "\n  - {manager: " + manager + ", operation: " + operation + `, time: "2026-11-22T01:00:00Z", fieldsV1: ` + fields + "}"
	}
	for name, test := range map[string]struct{ entries, want string }{
		"Flux, and all server-side appliers":          {entry("kustomize-controller", "Apply", pause), "kustomize-controller"},
		"kubectl apply --server-side":                 {entry("kubectl", "Apply", pause), "kubectl apply"},
		"an applier of other things":                  {entry("kustomize-controller", "Apply", labels) + entry("kubectl-annotate", "Update", pause), ""},
		"Helm 3":                                      {entry("helm", "Update", whole), "helm"},
		"Helm 3, of a Namespace":                      {entry("helm", "Update", all), "helm"},
		"kubectl apply":                               {entry("kubectl-client-side-apply", "Update", all), "kubectl apply"},
		"Argo CD":                                     {entry("argocd-controller", "Update", all), "argocd-controller"},
		"Argo CD, with something else in Git":         {entry("argocd-controller", "Update", labels) + entry("configstamp-order", "Update", pause), ""},
		"kubectl replace":                             {entry("kubectl-replace", "Update", all), "kubectl-replace"},
		"a person":                                    {entry("kubectl-annotate", "Update", pause), ""},
		"a person under a name of their own":          {entry("oncall", "Update", pause), ""},
		"a person who wrote more":                     {entry("kubectl-edit", "Update", whole), ""},
		"before the first apply":                      {entry("before-first-apply", "Update", whole), ""},
		"the previous order":                          {entry("configstamp-order", "Update", pause), ""},
		"nothing":                                     {"", ""},
		"a subresource, whose writer applies nothing": {strings.Replace(entry("controller", "Update", whole), "operation", "subresource: status, operation", 1), ""},
	} {
		manifest := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n"
		if test.entries != "" {
			manifest += "  managedFields:" + test.entries + "\n"
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			t.Fatal(err)
		}
		if got := appliedBy(object, "configstamp.dev/pause"); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
