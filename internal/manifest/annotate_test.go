package manifest_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/manifest"
	"github.com/configstamp/configstamp/internal/workload"
)

var update = flag.Bool("update", false, "write the golden files anew")

// options are those of the command: Secrets are hashed by a key, unless they are not.
func options(t testing.TB, change ...func(*manifest.Options)) manifest.Options {
	t.Helper()
	keyed, err := checksum.KeyedHash(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	o := manifest.Options{
		Policy:  checksum.DefaultPolicy(checksum.Source{Kind: checksum.ConfigMap, Name: "kube-root-ca.crt"}),
		Kinds:   workload.Builtin().With(workload.Known()...),
		Secrets: &keyed,
	}
	for _, one := range change {
		one(&o)
	}
	return o
}

func unkeyed(o *manifest.Options) { o.Secrets = nil }

func in(namespace string) func(*manifest.Options) {
	return func(o *manifest.Options) { o.Namespace = namespace }
}

func annotate(t testing.TB, o manifest.Options, files ...manifest.File) manifest.Result {
	t.Helper()
	result, err := manifest.Annotate(files, o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func file(text string) manifest.File { return manifest.File{Name: "a.yaml", Text: []byte(text)} }

// Each manifest of testdata/cases, as it comes out, and what is said of it.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(paths) < 7 {
		t.Fatalf("%d cases, error %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			result := annotate(t, options(t), manifest.File{Name: filepath.Base(path), Text: text})
			golden(t, "testdata/golden/"+filepath.Base(path), result.Texts[0])
			golden(t, "testdata/golden/"+filepath.Base(path)+".warnings", []byte(strings.Join(append(result.Warnings, ""), "\n")))
			if filepath.Base(path) != "replaced.yaml" {
				onlyAnnotations(t, string(text), string(result.Texts[0]))
			}
			again := annotate(t, options(t), manifest.File{Name: filepath.Base(path), Text: result.Texts[0]})
			if !bytes.Equal(again.Texts[0], result.Texts[0]) {
				t.Errorf("a second time changes something: %s", cmp.Diff(string(result.Texts[0]), string(again.Texts[0])))
			}
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (make generate writes it): %s", path, diff)
	}
}

// What is written in flow style, and a line that is written in block style.
var (
	inFlow  = regexp.MustCompile(`"checksum/[a-z]+\.[a-z0-9._-]+": "[0-9a-f]{64}",\s*|"annotations": \{"checksum/[a-z]+\.[a-z0-9._-]+": "[0-9a-f]{64}"\}(, )?`)
	ownLine = regexp.MustCompile(`^ *(metadata:|annotations:|checksum/[a-z]+\.[a-z0-9._-]+: "[0-9a-f]{64}")\r?$`)
)

// onlyAnnotations checks that each byte of a text is still there, in order, and nothing
// is new but lines, and members of flow mappings, that are annotations.
func onlyAnnotations(t testing.TB, before, after string) {
	t.Helper()
	left := strings.Split(before, "\n")
	for _, line := range strings.Split(inFlow.ReplaceAllString(after, ""), "\n") {
		switch {
		case len(left) > 0 && line == left[0]:
			left = left[1:]
		case !ownLine.MatchString(line):
			t.Fatalf("changed: %q, where %.200q should be", line, left)
		}
	}
	if len(left) > 0 {
		t.Fatalf("lost: %.200q", left)
	}
}
