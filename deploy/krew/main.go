// Command krew builds what is released of the kubectl plugin: for each platform an archive
// with the binary and the licence, SHA256SUMS, and krew's manifest, configstamp.yaml, made of
// the template beside this file. "make plugin-release" runs it at the root of the repository.
//
// What comes out depends on the source, the version and Go alone, to the byte: no paths, no
// version control, no times but that of the commit.
//
// archive.go packs.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// release is what is asked for.
type release struct {
	version, commit string
	made            time.Time // of the files in the archives
	out             string    // a folder
}

// platform is one that the plugin is built for.
type platform struct{ os, arch string }

func platforms() []platform {
	return []platform{
		{"darwin", "amd64"}, {"darwin", "arm64"},
		{"linux", "amd64"}, {"linux", "arm64"},
		{"windows", "amd64"}, {"windows", "arm64"},
	}
}

// archive is what was built for one platform, as the manifest tells it.
type archive struct {
	OS, Arch, File, Sum, Binary string
}

//go:embed configstamp.yaml
var manifest string

func main() {
	var r release
	var made int64
	flag.StringVar(&r.version, "version", "dev", "version to stamp; one such as v1.2.3; anything else becomes v0.0.0-dev-<version>")
	flag.StringVar(&r.commit, "commit", "unknown", "commit to stamp")
	flag.Int64Var(&made, "time", 0, "time of the files in the archives, in seconds since 1970")
	flag.StringVar(&r.out, "out", "dist/plugin", "folder to write to; what is in it is removed")
	flag.Parse()
	r.version, r.made = semantic(r.version), time.Unix(made, 0).UTC()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := r.build(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

// semantic is a version as krew wants it, v1.2.3. What git describes without a tag, a commit,
// becomes v0.0.0-dev-<commit>.
func semantic(text string) string {
	if _, err := version.ParseSemantic(text); err == nil {
		return "v" + strings.TrimPrefix(text, "v")
	}
	return "v0.0.0-dev-" + text
}

// build makes all of the release.
func (r *release) build(ctx context.Context, to io.Writer) error {
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return fmt.Errorf("this runs at the root of the repository: %w", err)
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	var archives []archive
	for _, p := range platforms() {
		binary, err := r.compile(ctx, p)
		if err != nil {
			return err
		}
		a, err := r.pack(p, binary, licence)
		if err != nil {
			return err
		}
		fmt.Fprintf(to, "%s  %s\n", a.Sum, filepath.Join(r.out, a.File))
		archives = append(archives, a)
	}
	return r.describe(archives)
}

// compile builds the plugin for a platform.
func (r *release) compile(ctx context.Context, p platform) ([]byte, error) {
	folder, err := os.MkdirTemp("", "kubectl-configstamp-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "plugin")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", file,
		"-ldflags", fmt.Sprintf("-s -w -buildid= -X main.version=%s -X main.commit=%s", r.version, r.commit), "./cmd/kubectl-configstamp")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=", "GOARM64=")
	if printed, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building for %s/%s: %w\n%s", p.os, p.arch, err, printed)
	}
	return os.ReadFile(file)
}

// describe writes SHA256SUMS and krew's manifest.
func (r *release) describe(archives []archive) error {
	var sums, text bytes.Buffer
	for _, a := range archives {
		fmt.Fprintf(&sums, "%s  %s\n", a.Sum, a.File)
	}
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), sums.Bytes(), 0o644); err != nil {
		return err
	}
	form, err := template.New("configstamp.yaml").Parse(manifest)
	if err != nil {
		return err
	}
	if err := form.Execute(&text, map[string]any{"Version": r.version, "Archives": archives}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "configstamp.yaml"), text.Bytes(), 0o644)
}

// pack writes the archive of one platform: a zip file for Windows, tar.gz for others.
func (r *release) pack(p platform, binary, licence []byte) (archive, error) {
	a := archive{OS: p.os, Arch: p.arch, Binary: "kubectl-configstamp", File: fmt.Sprintf("kubectl-configstamp_%s_%s_%s.tar.gz", r.version, p.os, p.arch)}
	packed := tarball
	if p.os == "windows" {
		a.Binary += ".exe"
		a.File = strings.TrimSuffix(a.File, ".tar.gz") + ".zip"
		packed = zipped
	}
	content, err := packed(r.made, []file{{a.Binary, binary, 0o755}, {"LICENSE", licence, 0o644}})
	if err != nil {
		return a, fmt.Errorf("packing %s: %w", a.File, err)
	}
	sum := sha256.Sum256(content)
	a.Sum = hex.EncodeToString(sum[:])
	return a, os.WriteFile(filepath.Join(r.out, a.File), content, 0o644)
}
