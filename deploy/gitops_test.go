package deploy

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What GitOps tools are to apply leads to the chart, with values that it takes. Argo CD and
// Flux themselves do not run here.
func TestGitOps(t *testing.T) {
	t.Parallel()
	for _, tool := range []struct {
		file, kind   string
		chart, value []string
	}{
		{"argocd-application.yaml", "Application", []string{"spec", "source", "path"}, []string{"spec", "source", "helm", "valuesObject"}},
		{"flux-helmrelease.yaml", "HelmRelease", []string{"spec", "chart", "spec", "chart"}, []string{"spec", "values"}},
	} {
		t.Run(tool.file, func(t *testing.T) {
			manifest, err := os.ReadFile(filepath.Join("gitops", tool.file))
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range bytes.Split(manifest, []byte("\n---\n")) {
				var object unstructured.Unstructured
				if err := yaml.UnmarshalStrict(text, &object.Object); err != nil {
					t.Fatal(err)
				}
				if object.GetKind() != tool.kind {
					continue
				}
				chart, _, _ := unstructured.NestedString(object.Object, tool.chart...)
				if _, err := os.Stat(filepath.Join("..", chart, "Chart.yaml")); err != nil {
					t.Errorf("%s leads to no chart: %v", strings.Join(tool.chart, "."), err)
				}
				values, found, err := unstructured.NestedMap(object.Object, tool.value...)
				if err != nil || !found {
					t.Fatalf("no values: %v", err)
				}
				file := filepath.Join(t.TempDir(), "values.yaml")
				encoded, err := json.Marshal(values)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, encoded, 0o600); err != nil {
					t.Fatal(err)
				}
				rendered(t, "--values="+file)
				return
			}
			t.Errorf("there is no %s", tool.kind)
		})
	}
}

// Each example can be read.
func TestGitOps_EveryExampleCanBeRead(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("gitops", "*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%d examples, error %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var object unstructured.Unstructured
			if err := yaml.UnmarshalStrict(document, &object.Object); err != nil || object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
				t.Errorf("%s: %v in\n%s", file, err, document)
			}
		}
	}
}
