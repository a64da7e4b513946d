package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// built is where a release lies: "make release-check" makes one.
func built(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("CONFIGSTAMP_RELEASE")
	if folder == "" {
		t.Skip("SKIPPED (1 check): CONFIGSTAMP_RELEASE is not set; make release-check sets it")
	}
	return folder
}

// named is the one file of a release that matches a pattern.
func named(t *testing.T, folder, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%s: want one, found %q", pattern, found)
	}
	return found[0]
}

// Every file has its sum, and every file but the sums its place in the provenance.
func TestBuilt_EveryFileIsAccountedFor(t *testing.T) {
	folder := built(t)
	var statement intoto.Statement
	must(t, protojson.Unmarshal(content(t, filepath.Join(folder, provenanceFile)), &statement))
	must(t, statement.Validate())
	told := map[string]string{}
	for _, subject := range statement.GetSubject() {
		told[subject.GetName()] = subject.GetDigest()["sha256"]
	}
	delete(told, "configstamp") // the image
	sums := map[string]string{}
	for line := range strings.Lines(string(content(t, filepath.Join(folder, sumsFile)))) {
		fields := strings.Fields(line)
		sums[fields[1]] = fields[0]
	}
	entries, err := os.ReadDir(folder)
	must(t, err)
	found := map[string]string{}
	for _, entry := range entries {
		if entry.Name() != sumsFile {
			found[entry.Name()] = sha256Of(content(t, filepath.Join(folder, entry.Name())))
		}
	}
	if !maps.Equal(found, sums) {
		t.Errorf("%s has %v; the files are %v", sumsFile, sums, found)
	}
	delete(found, provenanceFile)
	if !maps.Equal(found, told) {
		t.Errorf("the provenance is about %v; the files are %v", told, found)
	}
	if len(found) != 2+1+2+6*2+2+1-1 { // image, its parts; chart; manifests; plugins, their parts; krew
		t.Errorf("%d files: %q", len(found), slices.Sorted(maps.Keys(found)))
	}
}

// images are those of the archive, by architecture, and the digest of all.
func images(t *testing.T, folder string) (map[string]v1.Image, string) {
	t.Helper()
	outer, err := layout.ImageIndexFromPath(unpacked(t, folder))
	must(t, err)
	listed, err := outer.IndexManifest()
	must(t, err)
	if len(listed.Manifests) != 1 {
		t.Fatalf("%d entries in index.json, want one", len(listed.Manifests))
	}
	digest := listed.Manifests[0].Digest
	index, err := outer.ImageIndex(digest)
	must(t, err)
	listed, err = index.IndexManifest()
	must(t, err)
	all := map[string]v1.Image{}
	for _, one := range listed.Manifests {
		image, err := index.Image(one.Digest)
		must(t, err)
		all[one.Platform.String()] = image
	}
	return all, digest.String()
}

// unpacked is a folder with the image's OCI layout.
func unpacked(t *testing.T, folder string) string {
	t.Helper()
	to := t.TempDir()
	file, err := os.Open(named(t, folder, "configstamp_*.oci.tar"))
	must(t, err)
	defer func() { _ = file.Close() }()
	must(t, os.MkdirAll(filepath.Join(to, "blobs", "sha256"), 0o700))
	for archive := tar.NewReader(file); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return to
		}
		must(t, err)
		text, err := io.ReadAll(archive)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(to, filepath.FromSlash(head.Name)), text, 0o600))
	}
}

// program is the one file that an image holds.
func program(t *testing.T, image v1.Image) []byte {
	t.Helper()
	files := mutate.Extract(image)
	defer func() { _ = files.Close() }()
	archive, found := tar.NewReader(files), []byte(nil)
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		must(t, err)
		if head.Name != "configstamp" || head.Mode&0o777 != 0o755 || head.Uid != 0 || found != nil {
			t.Errorf("the image holds %+v", head)
		}
		found, err = io.ReadAll(archive)
		must(t, err)
	}
}

func TestBuilt_Image(t *testing.T) {
	all, digest := images(t, built(t))
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
		t.Fatalf("platforms %q", got)
	}
	for platform, machine := range map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64} {
		binary := program(t, all[platform])
		file, err := elf.NewFile(bytes.NewReader(binary))
		must(t, err)
		if file.Machine != machine || file.Section(".interp") != nil {
			t.Errorf("%s: the program is for %s, or needs more than itself", platform, file.Machine)
		}
		config, err := all[platform].ConfigFile()
		must(t, err)
		if config.OS+"/"+config.Architecture != platform {
			t.Errorf("%s: its configuration says %s/%s", platform, config.OS, config.Architecture)
		}
	}
	if !strings.Contains(string(content(t, filepath.Join(built(t), provenanceFile))), strings.TrimPrefix(digest, "sha256:")) {
		t.Error("the provenance is not about the image by its digest")
	}
}

// The image is that of the Dockerfile, built by docker or buildah: the same program and settings.
func TestBuilt_ImageOfTheDockerfile(t *testing.T) {
	folder, dockers := built(t), os.Getenv("CONFIGSTAMP_DOCKERFILE_IMAGE")
	if dockers == "" {
		t.Skip("SKIPPED (1 check): whether the image is the Dockerfile's: CONFIGSTAMP_DOCKERFILE_IMAGE is not set; make release-check sets it as root, with Debian's buildah and busybox-static")
	}
	theirs, err := tarball.ImageFromPath(dockers, nil)
	must(t, err)
	all, _ := images(t, folder)
	ours := all["linux/amd64"]
	settings := func(image v1.Image) string {
		config, err := image.ConfigFile()
		must(t, err)
		delete(config.Config.Labels, "io.buildah.version")
		text, err := json.Marshal(map[string]any{"user": config.Config.User, "entrypoint": config.Config.Entrypoint, "cmd": config.Config.Cmd, "labels": config.Config.Labels})
		must(t, err)
		return string(text)
	}
	if settings(ours) != settings(theirs) {
		t.Errorf("the settings are\n%s\nand the Dockerfile's\n%s", settings(ours), settings(theirs))
	}
	if !bytes.Equal(program(t, ours), program(t, theirs)) {
		t.Error("the program is not the Dockerfile's")
	}
}

// The workflow pushes it so. What is in the registry then is what the manifests name.
func TestBuilt_Push(t *testing.T) {
	folder := built(t)
	_, digest := images(t, folder)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/team/configstamp"
	printed, err := exec.CommandContext(t.Context(), "go", "tool", "crane", "push", unpacked(t, folder), to+":v1").CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(printed)), to+"@"+digest) {
		t.Errorf("crane push: %v; want %s\n%s", err, digest, printed)
	}
	printed, err = exec.CommandContext(t.Context(), "go", "tool", "crane", "digest", "--platform", "linux/arm64", to+"@"+digest).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(printed), "sha256:") || strings.TrimSpace(string(printed)) == digest {
		t.Errorf("crane digest: %v\n%s", err, printed)
	}
}

// A bill of materials names the very program, and every module that is in it.
func TestBuilt_BillsOfMaterials(t *testing.T) {
	folder := built(t)
	all, _ := images(t, folder)
	for platform, image := range all {
		binary := program(t, image)
		info, err := buildinfo.Read(bytes.NewReader(binary))
		must(t, err)
		var bom cyclonedx.BOM
		text := content(t, named(t, folder, "configstamp_*_"+strings.ReplaceAll(platform, "/", "_")+".cdx.json"))
		must(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom))
		if got := (*bom.Metadata.Component.Hashes)[0].Value; got != sha256Of(binary) {
			t.Errorf("%s: it is of a program with the sum %s", platform, got)
		}
		if got := len(*bom.Components); got != len(info.Deps)+1 || got < 10 {
			t.Errorf("%s: %d components, want the %d modules and the standard library", platform, got, len(info.Deps))
		}
	}
}

// The manifests are those of the checkout, but the version and the image.
func TestBuilt_Manifests(t *testing.T) {
	folder := built(t)
	chart := strings.TrimSuffix(filepath.Base(named(t, folder, "configstamp-*.tgz")), ".tgz")
	version := "v" + strings.TrimPrefix(chart, "configstamp-")
	for _, name := range []string{"install.yaml", "install-self-managed.yaml"} {
		checked := string(content(t, filepath.Join(root, "deploy", name)))
		checked = regexp.MustCompile(`helm.sh/chart: .*`).ReplaceAllString(checked, "helm.sh/chart: "+chart)
		checked = strings.NewReplacer(`"dev"`, fmt.Sprintf("%q", version), "configstamp:dev", "configstamp:"+version).Replace(checked)
		released := string(content(t, filepath.Join(folder, name)))
		_, checked, _ = strings.Cut(checked, "---\n")
		if _, released, _ = strings.Cut(released, "---\n"); released != checked {
			t.Errorf("%s is not that of the checkout with another version: make generate?", name)
		}
	}
}
