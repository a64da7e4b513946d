package builds

import (
	"os"
	"path/filepath"
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
}

func TestSourcesAreFoundFromInsideTheCheckout(t *testing.T) {
	none := func(string) string { return "" }
	sources, err := FindSources(none)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []Program{sources.Kubernetes(), sources.Kwok(), sources.CertManager(), sources.Pause()} {
		if _, err := os.Stat(filepath.Join(program.Module, program.Package, "main.go")); err != nil {
			t.Errorf("%s: %v", program.Name, err)
		}
	}
	t.Chdir(t.TempDir())
	if _, err := FindSources(none); err == nil {
		t.Error("outside of a checkout there should be an error")
	}
}
