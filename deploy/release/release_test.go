package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const root = "../.."

// asked is a release into a folder of the test.
func asked(t *testing.T) *release {
	t.Helper()
	helm := os.Getenv("HELM")
	if helm == "" {
		helm = "helm"
	}
	return &release{
		version: "v1.2.3-rc.1", commit: strings.Repeat("0a1b", 10), made: time.Unix(1_800_000_000, 0).UTC(),
		image: "configstamp", helm: helm, root: root, out: t.TempDir(),
	}
}

func TestCheck(t *testing.T) {
	for name, change := range map[string]func(*release){
		"no version":               func(r *release) { r.version = "" },
		"a version without a v":    func(r *release) { r.version = "1.2.3" },
		"a version of two numbers": func(r *release) { r.version = "v1.2" },
		"build metadata":           func(r *release) { r.version = "v1.2.3+4" },
		"a short commit":           func(r *release) { r.commit = "0a1b2c3" },
		"an image with a tag":      func(r *release) { r.image = "configstamp:dev" },
		"an image with a space":    func(r *release) { r.image = "config stamp" },
	} {
		r := asked(t)
		if change(r); r.check() == nil {
			t.Errorf("%s: there is to be an error", name)
		}
	}
	r := asked(t)
	if err := r.check(); err != nil {
		t.Error(err)
	}
}

// imageOf writes the archive of a program for both platforms.
func imageOf(t *testing.T, r *release, binary string) []byte {
	t.Helper()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range architectures() {
		image, err := r.wrap([]byte(binary), architecture)
		must(t, err)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
	}
	must(t, r.writeImage(index))
	return content(t, filepath.Join(r.out, r.imageFile()))
}

// TestImage_TheSameAgain: an archive depends on what is in it, the version and the given time alone.
func TestImage_TheSameAgain(t *testing.T) {
	one, other, changed := asked(t), asked(t), asked(t)
	if !bytes.Equal(imageOf(t, one, "program"), imageOf(t, other, "program")) || one.index != other.index {
		t.Error("two archives of one program differ")
	}
	if imageOf(t, changed, "another program"); changed.index == one.index {
		t.Error("two programs have images of one digest")
	}
}

// TestChart_TheSameAgain makes chart and manifests of two checkouts, with other times of files.
func TestChart_TheSameAgain(t *testing.T) {
	needsHelm(t)
	var made []map[string]string
	for range 2 {
		r := asked(t)
		r.root = t.TempDir()
		must(t, os.CopyFS(filepath.Join(r.root, "deploy", "chart"), os.DirFS(filepath.Join(root, "deploy", "chart"))))
		must(t, os.WriteFile(filepath.Join(r.root, "CHANGELOG.md"), content(t, filepath.Join(root, "CHANGELOG.md")), 0o600))
		must(t, r.makeChart(t.Context()))
		must(t, r.makeManifests(t.Context()))
		files, err := r.files()
		must(t, err)
		sums := map[string]string{}
		for _, one := range files {
			sums[one.name] = one.sum
		}
		made = append(made, sums)
		time.Sleep(1100 * time.Millisecond) // times in archives are whole seconds
	}
	for name, sum := range made[0] {
		if made[1][name] != sum {
			t.Errorf("%s is not the same again", name)
		}
	}
	if len(made[0]) != 3 {
		t.Errorf("%d files, want the chart and two manifests", len(made[0]))
	}
}

// An image in a registry is named by its digest everywhere.
func TestChart_ImageInARegistry(t *testing.T) {
	needsHelm(t)
	r := asked(t)
	r.image, r.index = "registry.example/team/configstamp", "sha256:"+strings.Repeat("0", 64)
	must(t, r.makeChart(t.Context()))
	must(t, r.makeManifests(t.Context()))
	for _, name := range []string{"install.yaml", "install-self-managed.yaml"} {
		text := string(content(t, filepath.Join(r.out, name)))
		if n := strings.Count(text, "image: "+r.image+"@"+r.index+"\n"); n != 2 || strings.Count(text, " image: ") != n {
			t.Errorf("%s: %d containers with the image by its digest, want both", name, n)
		}
	}
}

func TestChanges(t *testing.T) {
	const log = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2027-01-01\nWhat it is about.\n\n### Added\n- A [thing](docs/thing.md), of two\n  lines. And more of it.\n- Another.\n\n### Fixed\n- A fault.\n\n## [1.2.2]\n### Added\n- Old.\n"
	got := changesOf(log, "1.2.3")
	want := []change{{"added", "A thing, of two lines"}, {"added", "Another"}, {"fixed", "A fault"}}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := changesOf(log, "1.2"); got != nil {
		t.Errorf("of a version that is not there: %q", got)
	}
	kinds := []string{"added", "changed", "deprecated", "removed", "fixed", "security"} // Artifact Hub knows these
	for _, one := range changesOf(string(content(t, filepath.Join(root, "CHANGELOG.md"))), "Unreleased") {
		if !slices.Contains(kinds, one.Kind) {
			t.Errorf("the changelog has a part %q; Artifact Hub wants one of %q", one.Kind, kinds)
		}
	}
}

func needsHelm(t *testing.T) {
	t.Helper()
	if os.Getenv("HELM") == "" {
		t.Skip("SKIPPED (1 check): HELM is not set; make release-check sets it")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	return text
}
