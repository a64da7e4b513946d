package workload_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/internal/workload"
)

func TestParseKind(t *testing.T) {
	kind, err := workload.ParseKind("example.com/v1beta2/machines=spec.deep.pod")
	if err != nil || kind.String() != "machines.example.com" || kind.Version != "v1beta2" || strings.Join(kind.Template, " ") != "spec deep pod" || !kind.Custom || kind.CreateOnly {
		t.Fatalf("%+v, %v", kind, err)
	}
	if told, err := workload.ParseKind("example.com/v1/machines=spec.pod,rollout=Ready"); err != nil || told.Progress != "Ready" || len(told.Template) != 2 {
		t.Errorf("%+v, %v", told, err)
	} else if status, err := told.Status([]byte(`{"status":{"conditions":[{"type":"Ready","lastTransitionTime":"2026-02-01T00:00:00Z"}]}}`)); err != nil || status.Current.Year() != 2026 {
		t.Errorf("current since %s, %v", status.Current, err)
	}
	if named := kind.Named("Machine"); named.Name != "Machine" || kind.Name == "Machine" {
		t.Errorf("%+v", named)
	}
	object, err := kind.Decode([]byte(`{"metadata":{"name":"m"},"spec":{"deep":{"pod":{"metadata":{"annotations":{"a":"b"}},"spec":{"containers":[{"name":"c","envFrom":[{"secretRef":{"name":"s"}}]}]}}}}}`))
	if err != nil || object.Template.Metadata.Annotations["a"] != "b" {
		t.Fatalf("%+v, %v", object, err)
	}
	if references, err := object.References(); err != nil || len(references) != 1 || references[0].Source.String() != "secret/s" {
		t.Errorf("%v, %v", references, err)
	}
	for text, named := range map[string]string{
		"":                                             "group/version/resource",
		"example.com/v1/machines":                      "path.to.template",
		"example.com/v1=spec":                          "group/version/resource",
		"apps/v1/deployments=spec":                     `"apps"`,
		"example.com/V1/machines=s":                    `"V1"`,
		"example.com/v1/Machines=s":                    `"Machines"`,
		"example.com/v1/machines=":                     "path",
		"example.com/v1/machines=a..":                  `"a.."`,
		"example.com/v1/machines=a[]":                  `"a[]"`,
		"example.com/v1/machines=spec,rollout=":        "rollout=Condition",
		"example.com/v1/machines=spec,health=Ready":    `"health=Ready"`,
		"example.com/v1/machines=status.template":      "status",
		"example.com/v1/machines=metadata.annotations": "metadata",
	} {
		if _, err := workload.ParseKind(text); err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%q: error %v, want one that names %s", text, err, named)
		}
	}
}

// Revisions and what stands before pods are named by their rows, and nowhere else.
func TestKind_Revisions(t *testing.T) {
	for _, kind := range append(workload.Builtin(), workload.Known()...) {
		if kept := kind.RevisionResource(); kind.Revisions != "" && kept != "replicasets" && kept != "controllerrevisions" {
			t.Errorf("revisions of %s are kept in %q", kind, kept)
		}
		if kind.CopiesAnnotations() && kind.Makes != kind.Revisions {
			t.Errorf("%s makes %q, and keeps revisions in %q", kind, kind.Makes, kind.Revisions)
		}
		if kind.Short != "" && kind.Short == kind.Resource {
			t.Errorf("%s has its resource as short name", kind)
		}
	}
}

func TestATableHasOneRowForEachResource(t *testing.T) {
	own, err := workload.ParseKind("argoproj.io/v1alpha1/rollouts=spec.own.template")
	if err != nil {
		t.Fatal(err)
	}
	table := workload.Builtin().With(workload.Known()...).With(own)
	if found, ok := table.Find("argoproj.io", "rollouts"); !ok || found != own || len(table) != len(workload.Builtin())+len(workload.Known()) {
		t.Errorf("%v of %d", found, len(table))
	}
	for owner, want := range map[schema.GroupKind]bool{
		{Group: "serving.knative.dev", Kind: "Revision"}:    true,
		{Group: "argoproj.io", Kind: "Rollout"}:             true,
		{Group: "argoproj.io", Kind: "ArgoCD"}:              false, // its operator makes Argo CD's own Deployments
		{Group: "apps.kruise.io", Kind: "CloneSet"}:         true,
		{Group: "apps.kruise.io", Kind: "UnitedDeployment"}: false, // it makes Deployments and StatefulSets
		{Group: "apps", Kind: "ReplicaSet"}:                 false,
		{Group: "example.com", Kind: "Rollout"}:             false,
	} {
		if table.Rolls(owner) != want {
			t.Errorf("%s rolls what it owns: %v", owner, !want)
		}
	}
}
