package checksum_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/checksum"
)

// Each file of testdata/references is a list of pod specs, with a sentence and
// what the spec references, one line each in the form of describe.
func TestReferences(t *testing.T) {
	files, err := filepath.Glob("testdata/references/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			About string
			Spec  corev1.PodSpec
			Want  []string
		}
		if err := yaml.UnmarshalStrict(raw, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		group := strings.TrimSuffix(filepath.Base(file), ".yaml")
		for _, c := range cases {
			t.Run(group+"/"+c.About, func(t *testing.T) {
				var got []string
				for _, r := range checksum.References(&c.Spec) {
					got = append(got, describe(r))
				}
				if diff := cmp.Diff(c.Want, got); diff != "" {
					t.Errorf("references differ (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// describe writes a reference as a line: use, source, selected keys, then what
// it needs to exist.
func describe(r checksum.Reference) string {
	line := string(r.Use) + " " + r.Source.String()
	switch {
	case r.All:
		line += ", all keys"
	case len(r.Keys) == 0:
		line += ", no key"
	}
	if len(r.Keys) > 0 {
		line += ", keys " + strings.Join(r.Keys, " ")
	}
	if r.Optional {
		line += ", optional"
	}
	if len(r.RequiredKeys) > 0 {
		line += ", needs " + strings.Join(r.RequiredKeys, " ")
	}
	if r.Env {
		line += ", by env"
	}
	return line
}

func TestReferencesSayWhereTheyStand(t *testing.T) {
	var spec corev1.PodSpec
	raw := `
initContainers:
- {name: migrate, envFrom: [{configMapRef: {name: a}}]}
containers:
- name: web
  env: [{name: MESSAGE, valueFrom: {secretKeyRef: {name: b, key: k}}}]
  volumeMounts: [{name: files, mountPath: /etc/files}]
- {name: "", envFrom: [{secretRef: {name: g}}]}
volumes:
- {name: files, configMap: {name: c}}
- {name: spare, secret: {secretName: d}}
- {name: disk, csi: {driver: x, nodePublishSecretRef: {name: e}}}
imagePullSecrets: [{name: f}]
`
	if err := yaml.UnmarshalStrict([]byte(raw), &spec); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"configmap/a": "container migrate, envFrom",
		"secret/b":    "container web, env MESSAGE",
		"configmap/c": "volume files, container web, mount /etc/files",
		"secret/d":    "volume spare",
		"secret/e":    "volume disk",
		"secret/f":    "imagePullSecrets",
		"secret/g":    "envFrom", // Knative's containers need no name
	}
	got := map[string]string{}
	for _, r := range checksum.References(&spec) {
		got[r.Source.String()] = r.Where.String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
