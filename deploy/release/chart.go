package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// makeChart has helm package the chart, with the version, the image, and what is new for
// Artifact Hub.
func (r *release) makeChart(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "configstamp-chart-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	chart := filepath.Join(folder, "configstamp")
	if err := os.CopyFS(chart, os.DirFS(filepath.Join(r.root, "deploy", "chart"))); err != nil {
		return err
	}
	for name, change := range map[string]func([]byte) ([]byte, error){"Chart.yaml": r.metadata, "values.yaml": r.values} {
		file := filepath.Join(chart, name)
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if text, err = change(text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	// helm puts the times of the files into the package.
	if err := filepath.WalkDir(chart, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, r.made, r.made))
	}); err != nil {
		return err
	}
	_, err = r.runHelm(ctx, "package", chart, "--destination", r.out)
	return err
}

func (r *release) chartFile() string { return "configstamp-" + r.number() + ".tgz" }

// metadata is Chart.yaml as it is released.
func (r *release) metadata(text []byte) ([]byte, error) {
	chart := map[string]any{}
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return nil, err
	}
	notes, is := chart["annotations"].(map[string]any)
	if !is {
		return nil, errors.New("it has no annotations")
	}
	chart["version"], chart["appVersion"] = r.number(), r.version
	changes, err := r.changes()
	if err != nil {
		return nil, err
	}
	notes["artifacthub.io/changes"] = changes
	notes["artifacthub.io/images"] = fmt.Sprintf("- name: configstamp\n  image: %s\n  platforms: [linux/%s]\n", r.pulled(), strings.Join(architectures(), ", linux/"))
	notes["artifacthub.io/prerelease"] = fmt.Sprint(semver.Prerelease(r.version) != "")
	return yaml.Marshal(chart)
}

// values is values.yaml with the image. One that is pulled from a registry is named by its
// digest; one that is brought to the nodes has none there, and is named by its tag.
func (r *release) values(text []byte) ([]byte, error) {
	changes := []string{"\n  repository: configstamp\n", "\n  repository: " + r.image + "\n"}
	if r.pinned() {
		changes = append(changes, "\n  digest: \"\"\n", "\n  digest: "+r.index+"\n")
	}
	for i := 0; i < len(changes); i += 2 {
		if bytes.Count(text, []byte(changes[i])) != 1 {
			return nil, fmt.Errorf("it does not have %q once", strings.TrimSpace(changes[i]))
		}
	}
	return []byte(strings.NewReplacer(changes...).Replace(string(text))), nil
}

func (r *release) pinned() bool { return strings.Contains(r.image, "/") }

// pulled is the image as nodes pull it.
func (r *release) pulled() string {
	if r.pinned() {
		return r.image + "@" + r.index
	}
	return r.image + ":" + r.version
}

// makeManifests renders the packaged chart for those who have no Helm.
func (r *release) makeManifests(ctx context.Context) error {
	for name, values := range map[string][]string{
		"install.yaml":              nil,
		"install-self-managed.yaml": {"--set=certificates.mode=self-managed"},
	} {
		text, err := r.runHelm(ctx, append([]string{"template", "configstamp", filepath.Join(r.out, r.chartFile()), "--namespace=configstamp",
			"--skip-tests", "--set=namespace.create=true"}, values...)...)
		if err != nil {
			return err
		}
		head := fmt.Sprintf("# configstamp %s: kubectl apply -f %s\n", r.version, name)
		if err := r.write(name, append([]byte(head), text...)); err != nil {
			return err
		}
	}
	return nil
}

// runHelm runs helm without the settings and the plugins of whoever runs it.
func (r *release) runHelm(ctx context.Context, args ...string) ([]byte, error) {
	home, err := os.MkdirTemp("", "helm-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(home) }()
	return r.command(ctx, []string{"HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home, "KUBECONFIG="}, r.helm, args...)
}
