package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSemantic(t *testing.T) {
	for text, want := range map[string]string{
		"v1.2.3":            "v1.2.3",
		"1.2.3":             "v1.2.3",
		"v1.2.3-rc.1":       "v1.2.3-rc.1",
		"v1.2.3-4-gabc1234": "v1.2.3-4-gabc1234",
		"v1.2":              "v0.0.0-dev-v1.2",
		"ce68565-dirty":     "v0.0.0-dev-ce68565-dirty",
		"0123456":           "v0.0.0-dev-0123456",
	} {
		if got := semantic(text); got != want {
			t.Errorf("semantic(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestPack_TheSameAgain: an archive depends on what is in it and the given time alone.
func TestPack_TheSameAgain(t *testing.T) {
	for _, p := range platforms() {
		var sums, names []string
		for range 2 {
			r := release{version: "v1.2.3", made: time.Unix(1_800_000_000, 0).UTC(), out: t.TempDir()}
			a, err := r.pack(p, []byte("program"), []byte("licence"))
			if err != nil {
				t.Fatal(err)
			}
			sums, names = append(sums, a.Sum), append(names, a.File)
		}
		if sums[0] != sums[1] || names[0] != names[1] {
			t.Errorf("%s/%s: two archives of one program differ: %s, %s", p.os, p.arch, sums, names)
		}
	}
}

func TestDescribe(t *testing.T) {
	r := release{version: "v1.2.3", out: t.TempDir()}
	if err := r.describe([]archive{{"linux", "amd64", "a.tar.gz", "0a1b", "kubectl-configstamp"}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"SHA256SUMS": "0a1b  a.tar.gz\n",
		"configstamp.yaml": `
    - selector:
        matchLabels:
          os: linux
          arch: amd64
      uri: https://github.com/configstamp/configstamp/releases/download/v1.2.3/a.tar.gz
      sha256: 0a1b
      bin: kubectl-configstamp
`,
	} {
		text, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(string(text), want) || name != "SHA256SUMS" && !strings.Contains(string(text), "  version: v1.2.3\n") {
			t.Errorf("%s:\n%swant at its end:\n%s", name, text, want)
		}
	}
}
