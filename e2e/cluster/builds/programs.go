package builds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Sources is the e2e directory of a checkout, which holds the modules to build.
type Sources string

// FindSources looks for a checkout around the current directory and around this very program.
func FindSources(getenv func(string) string) (Sources, error) {
	if dir := getenv("CONFIGSTAMP_SOURCES"); dir != "" {
		return Sources(dir), nil
	}
	var starts []string
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if file, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(file))
	}
	for _, start := range starts {
		for dir := start; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "e2e", "cluster", "kubernetes", "go.mod")); err == nil {
				return Sources(filepath.Join(dir, "e2e")), nil
			}
		}
	}
	return "", errors.New("no checkout of configstamp around this directory: run inside one, or set CONFIGSTAMP_SOURCES to its e2e directory")
}

// Kubernetes is etcd, the control plane, the node and kubectl.
func (s Sources) Kubernetes() Program {
	const version = "k8s.io/component-base/version."
	return Program{
		Name:        "kubernetes",
		Module:      filepath.Join(string(s), "cluster", "kubernetes"),
		Package:     ".",
		LinkerFlags: "-X " + version + "gitVersion=v1.37.1 -X " + version + "gitMajor=1 -X " + version + "gitMinor=37",
		Links: []string{
			"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl",
		},
		Usually: "about 6 minutes on two cores, and 5 GB of disk",
	}
}

// Kwok is the fake node.
func (s Sources) Kwok() Program {
	return Program{
		Name: "kwok", Module: filepath.Join(string(s), "cluster", "kwok"), Package: ".",
		Usually: "about 90 seconds on two cores",
	}
}

// CertManager is cert-manager's controllers.
func (s Sources) CertManager() Program {
	return Program{
		Name: "certmanager", Module: filepath.Join(string(s), "certmanager"), Package: ".",
		Usually: "about 90 seconds on two cores",
	}
}

// Pause is what holds a pod's namespaces.
func (s Sources) Pause() Program {
	return Program{
		Name: "pause", Module: filepath.Join(string(s), "cluster"), Package: filepath.Join("cmd", "pause"),
		Usually: "a few seconds",
	}
}

// CertManagerDefinitions is the directory of cert-manager's CustomResourceDefinitions, in the version that is built.
func (s Sources) CertManagerDefinitions(ctx context.Context) (string, error) {
	const module = "github.com/cert-manager/cert-manager"
	cmd := exec.CommandContext(ctx, "go", "-C", s.CertManager().Module, "mod", "download", "-json", module)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", module, explain(err))
	}
	var found struct{ Dir string }
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&found); err != nil {
		return "", fmt.Errorf("looking for %s: %w", module, err)
	}
	return filepath.Join(found.Dir, "deploy", "crds"), nil
}
