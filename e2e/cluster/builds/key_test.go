package builds

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheKeyChangesWithWhatIsBuiltAndWithNothingElse(t *testing.T) {
	module := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(module, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module m")
	write("go.sum", "a")
	write("main.go", "package main")
	program := Program{Name: "p", Module: module, Package: "."}
	toolchain := "go1"
	keyNow := func() string {
		t.Helper()
		k, err := key(program, toolchain)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}

	before := keyNow()
	write("README.md", "hello")
	write("main_test.go", "package main")
	if keyNow() != before {
		t.Error("files that are not compiled should not change the key")
	}
	for what, change := range map[string]func(){
		"source":         func() { write("main.go", "package main // changed") },
		"another file":   func() { write("sub/more.go", "package sub") },
		"go.sum":         func() { write("go.sum", "b") },
		"go.mod":         func() { write("go.mod", "module n") },
		"the Go version": func() { toolchain = "go2" },
		"a linker flag":  func() { program.LinkerFlags = "-X a=b" },
		"a link":         func() { program.Links = []string{"q"} },
	} {
		before := keyNow()
		change()
		if keyNow() == before {
			t.Errorf("%s should change the key", what)
		}
	}
	program.ModFile = filepath.Join("versions", "other.mod")
	write(program.ModFile, "module m")
	before = keyNow()
	write("versions/other.sum", "c")
	if keyNow() == before {
		t.Error("the sums of other modules should change the key")
	}
	write(program.ModFile, "module n")
	if keyNow() == before {
		t.Error("other modules should change the key")
	}
}

func TestSourcesAreFoundFromInsideTheCheckout(t *testing.T) {
	none := func(string) string { return "" }
	sources, err := FindSources(none)
	if err != nil {
		t.Fatal(err)
	}
	kubernetes, err := sources.Kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []Program{kubernetes, sources.Kwok(), sources.CertManager(), sources.Pause()} {
		if _, err := os.Stat(filepath.Join(program.Module, program.Package, "main.go")); err != nil {
			t.Errorf("%s: %v", program.Name, err)
		}
	}
	t.Chdir(t.TempDir())
	if _, err := FindSources(none); err == nil {
		t.Error("outside of a checkout there should be an error")
	}
}

func TestEveryVersionIsBuiltAsItself(t *testing.T) {
	sources, err := FindSources(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	for _, minor := range []string{"v1.30", "v1.37", ""} {
		program, err := sources.Kubernetes(minor)
		if err != nil {
			t.Error(err)
		}
		if want := "gitVersion=" + cmp.Or(minor, DefaultKubernetes) + "."; !strings.Contains(program.LinkerFlags, want) {
			t.Errorf("%q is built with %s, want %s", minor, program.LinkerFlags, want)
		}
	}
	if _, err := sources.Kubernetes("v1.29"); err == nil || !strings.Contains(err.Error(), "v1.37 or v1.30;") {
		t.Errorf("a version that is not there: %v", err)
	}
}
