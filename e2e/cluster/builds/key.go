// Package builds turns the Go programs of this repository that take minutes to compile into files of a cache, once.
// What a program is built from is its key: its source, go.mod, go.sum, the Go version, the platform and the flags.
// Start reading at Program.
package builds

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Program is something to build.
type Program struct {
	// Name is the name of the file, and of its entry in the cache.
	Name string
	// Module is the directory of its module, and Package that of its main package below it, "." if it is the same.
	Module, Package string
	// ModFile is the go.mod to build with, in the module's directory, with its sums beside it; "" is the module's own.
	ModFile string
	// LinkerFlags are added to -s -w.
	LinkerFlags string
	// Links are further names of the same file beside it.
	Links []string
	// Usually says how long a build takes.
	Usually string
}

const keyLength = 12

// key names the content that a program is built from.
func key(p Program, toolchain string) (string, error) {
	hash := sha256.New()
	part := func(name string, content []byte) {
		fmt.Fprintf(hash, "%d %s %d ", len(name), name, len(content))
		hash.Write(content)
	}
	part("toolchain", []byte(toolchain))
	part("flags", []byte(strings.Join(flags(p), "\x00")))
	part("links", []byte(strings.Join(p.Links, "\x00")))
	for _, name := range []string{"go.mod", "go.sum"} {
		file := strings.TrimSuffix(p.modFile(), ".mod") + filepath.Ext(name)
		content, err := os.ReadFile(filepath.Join(p.Module, file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("reading what %s is built from: %w", p.Name, err)
		}
		part(name, content)
	}
	root := filepath.Join(p.Module, p.Package)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isSource(entry.Name()) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		part(filepath.ToSlash(relative), content)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading what %s is built from: %w", p.Name, err)
	}
	return hex.EncodeToString(hash.Sum(nil))[:keyLength], nil
}

func isSource(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}

// flags are the same for every program, so that the modules share compiled packages.
func flags(p Program) []string {
	all := []string{"-trimpath", "-buildvcs=false", "-ldflags", strings.TrimSpace("-s -w " + p.LinkerFlags)}
	if p.ModFile != "" {
		all = append(all, "-modfile="+p.ModFile)
	}
	return all
}

func (p Program) modFile() string { return cmp.Or(p.ModFile, "go.mod") }
