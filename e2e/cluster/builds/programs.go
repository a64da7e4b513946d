package builds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Sources is the e2e directory of a checkout, which holds the modules to build.
type Sources string

// FindSources looks for a checkout around the current directory and around this very program.
func FindSources(getenv func(string) string) (Sources, error) {
	if dir := getenv("CONFIGSTAMP_E2E_DIR"); dir != "" {
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
	return "", errors.New("no checkout of configstamp around this directory: run inside one, or set CONFIGSTAMP_E2E_DIR to its e2e directory")
}

// DefaultKubernetes is the minor version that the module of Kubernetes itself has.
const DefaultKubernetes = "v1.37"

// Kubernetes is etcd, the control plane, the node and kubectl, of a minor version such as v1.30; "" is the default. The
// versions that there are have a file each beside the module, kubernetes/versions/v1.30.mod: the same program, built with
// other modules.
func (s Sources) Kubernetes(minor string) (Program, error) {
	p := Program{
		Name:    "kubernetes",
		Module:  filepath.Join(string(s), "cluster", "kubernetes"),
		Package: ".",
		Links: []string{
			"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl",
		},
		Usually: "about 6 minutes on two cores, and 5 GB of disk",
	}
	if minor != "" && minor != DefaultKubernetes {
		p.ModFile = filepath.Join("versions", minor+".mod")
	}
	text, err := os.ReadFile(filepath.Join(p.Module, p.modFile()))
	if errors.Is(err, fs.ErrNotExist) {
		known := []string{DefaultKubernetes}
		files, _ := filepath.Glob(filepath.Join(p.Module, "versions", "*.mod")) // the pattern is well-formed
		for _, file := range files {
			known = append(known, strings.TrimSuffix(filepath.Base(file), ".mod"))
		}
		return p, fmt.Errorf("there is no Kubernetes %q here: CONFIGSTAMP_KUBERNETES may be %s; kubernetes/versions has a file for each", minor, strings.Join(known, " or "))
	}
	if err != nil {
		return p, fmt.Errorf("looking for the version of Kubernetes: %w", err)
	}
	found := release.FindSubmatch(text)
	if found == nil {
		return p, fmt.Errorf("%s requires no k8s.io/kubernetes", filepath.Join(p.Module, p.modFile()))
	}
	const version = "k8s.io/component-base/version."
	p.LinkerFlags = fmt.Sprintf("-X %[1]sgitVersion=v1.%[2]s.%[3]s -X %[1]sgitMajor=1 -X %[1]sgitMinor=%[2]s", version, found[1], found[2])
	return p, nil
}

var release = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v1\.(\d+)\.(\d+)$`)

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
