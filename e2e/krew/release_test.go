package krew

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// folder is where the release lies: that of CONFIGSTAMP_RELEASE, or what "make plugin-release" has built.
var folder = cmp.Or(os.Getenv("CONFIGSTAMP_RELEASE"), "../../dist/plugin")

// plugin is krew's manifest, as far as it is looked at here.
type plugin struct {
	Metadata struct{ Name string }
	Spec     struct {
		Version, Homepage, ShortDescription, Description, Caveats string
		Platforms                                                 []platform
	}
}

type platform struct {
	URI, Sha256, Bin string
	Selector         struct{ MatchLabels map[string]string }
}

func (p *platform) String() string {
	return p.Selector.MatchLabels["os"] + "/" + p.Selector.MatchLabels["arch"]
}

func manifest(t *testing.T) (p plugin) {
	t.Helper()
	if err := yaml.UnmarshalStrict(read(t, "configstamp.yaml"), &struct {
		APIVersion, Kind string
		*plugin          `json:",inline"`
	}{plugin: &p}); err != nil {
		t.Fatal(err)
	}
	return p
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatalf("make plugin-release comes first: %v", err)
	}
	return content
}

// TestIndexRules are those that krew's index has beside what its validator asks.
func TestIndexRules(t *testing.T) {
	p := manifest(t)
	if p.Metadata.Name != "configstamp" || !strings.HasPrefix(p.Spec.Version, "v") || !strings.HasPrefix(p.Spec.Homepage, "https://") {
		t.Errorf("name %q, version %q, homepage %q", p.Metadata.Name, p.Spec.Version, p.Spec.Homepage)
	}
	if short := p.Spec.ShortDescription; short == "" || len(short) > 50 || strings.HasSuffix(short, ".") || strings.Contains(strings.ToLower(short), "kubectl") {
		t.Errorf("short description of %d characters, want at most 50, no full stop, and not what every plugin is: %q", len(short), short)
	}
	for line := range strings.Lines(p.Spec.Description + p.Spec.Caveats) {
		if len(line) > 80 {
			t.Errorf("a line of more than 80 characters: %s", line)
		}
	}
	var got []string
	for _, at := range p.Spec.Platforms {
		got = append(got, at.String())
		want := "kubectl-configstamp"
		if strings.HasPrefix(at.String(), "windows/") {
			want += ".exe"
		}
		if at.Bin != want {
			t.Errorf("%s: bin %q, want %q", &at, at.Bin, want)
		}
		if want := "https://github.com/configstamp/configstamp/releases/download/" + p.Spec.Version + "/"; !strings.HasPrefix(at.URI, want) {
			t.Errorf("%s: uri %s, want it under %s", &at, at.URI, want)
		}
	}
	if want := []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}; !slices.Equal(got, want) {
		t.Errorf("platforms %q, want %q", got, want)
	}
}

// TestArchives looks into each: the sum, the files, and for which machine the program is.
func TestArchives(t *testing.T) {
	sums := ""
	p := manifest(t)
	for _, at := range p.Spec.Platforms {
		name := filepath.Base(at.URI)
		content := read(t, name)
		sum := sha256.Sum256(content)
		if got := hex.EncodeToString(sum[:]); got != at.Sha256 {
			t.Errorf("%s: the manifest says %s, the file is %s", name, at.Sha256, got)
		}
		sums += at.Sha256 + "  " + name + "\n"
		files := unpacked(t, name, content)
		if len(files) != 2 || !bytes.Contains(files["LICENSE"], []byte("Apache License")) || files[at.Bin] == nil {
			t.Errorf("%s: it holds %d files, want %s and LICENSE", name, len(files), at.Bin)
			continue
		}
		if got := machine(files[at.Bin]); got != at.String() {
			t.Errorf("%s: the program is for %s, want %s", name, got, &at)
		}
	}
	if got := string(read(t, "SHA256SUMS")); !strings.Contains(withoutSBOMs(got), sums) {
		t.Errorf("SHA256SUMS:\n%swant in it\n%s", got, sums)
	}
}

// withoutSBOMs leaves out the bills of materials, which stand between the archives.
func withoutSBOMs(sums string) string {
	return regexp.MustCompile(`(?m)^.*\.cdx\.json\n`).ReplaceAllString(sums, "")
}

// unpacked are the files of an archive by name.
func unpacked(t *testing.T, name string, content []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	keep := func(name string, from io.Reader, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if files[name], err = io.ReadAll(from); err != nil {
			t.Fatal(err)
		}
	}
	if strings.HasSuffix(name, ".zip") {
		archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.File {
			from, err := file.Open()
			keep(file.Name, from, err)
		}
		return files
	}
	small, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(small); ; {
		head, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.Uid != 0 || head.Uname != "" || (head.Name != "LICENSE") != (head.Mode == 0o755) {
			t.Errorf("%s: %s has mode %o and belongs to %d (%s)", name, head.Name, head.Mode, head.Uid, head.Uname)
		}
		keep(head.Name, archive, nil)
	}
}

// machine is the platform that a program is for, by its first bytes. A Linux program that
// needs another file, such as a C library, is for none.
func machine(program []byte) string {
	from := bytes.NewReader(program)
	if file, err := elf.NewFile(from); err == nil {
		if libraries, _ := file.ImportedLibraries(); len(libraries) > 0 || file.Section(".interp") != nil {
			return fmt.Sprintf("those who have %q", libraries)
		}
		return "linux/" + map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[file.Machine]
	}
	if file, err := macho.NewFile(from); err == nil {
		return "darwin/" + map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[file.Cpu]
	}
	if file, err := pe.NewFile(from); err == nil {
		return "windows/" + map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[file.Machine]
	}
	return "nobody"
}

// TestItRuns unpacks what is for this machine, and asks it something.
func TestItRuns(t *testing.T) {
	p := manifest(t)
	for _, at := range p.Spec.Platforms {
		if at.String() != runtime.GOOS+"/"+runtime.GOARCH {
			continue
		}
		name := filepath.Base(at.URI)
		program := filepath.Join(t.TempDir(), at.Bin)
		if err := os.WriteFile(program, unpacked(t, name, read(t, name))[at.Bin], 0o755); err != nil {
			t.Fatal(err)
		}
		wantAnswers(t, program, p.Spec.Version)
		return
	}
	t.Skipf("SKIPPED (1 check): nothing is released for %s/%s", runtime.GOOS, runtime.GOARCH)
}

// wantAnswers asks the program its version, and for the checksums of a manifest.
func wantAnswers(t *testing.T, program, version string) {
	t.Helper()
	ask := func(in string, args ...string) string {
		command := exec.CommandContext(t.Context(), program, args...)
		command.Stdin = strings.NewReader(in)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if got := ask("", "version"); !strings.HasPrefix(got, "kubectl-configstamp "+version+" (commit ") || strings.Contains(got, "unknown") {
		t.Errorf("version: %s", got)
	}
	if got := ask(web, "checksum", "-f", "-"); !strings.Contains(got, "checksum/configmap.web: ") {
		t.Errorf("checksum: %s", got)
	}
}

// web is a Deployment that uses a ConfigMap.
const web = `apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {a: b}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
        - name: web
          envFrom: [{configMapRef: {name: web}}]
`
