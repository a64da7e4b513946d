package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/internal/manifest"
)

// filesOptions are kubectl's flags for manifests.
type filesOptions struct {
	names     []string
	recursive bool
}

// add adds the flags to a command, which needs one file.
func (o *filesOptions) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVarP(&o.names, "filename", "f", nil, "file or directory with manifests; - is standard input; may be repeated")
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "read the directories below those of -f too")
	if err := command.MarkFlagFilename("filename", manifestEndings()...); err != nil {
		panic(err) // the flag stands above
	}
}

// manifestEndings are what kubectl reads of a directory.
func manifestEndings() []string { return []string{"json", "yaml", "yml"} }

// read reads all files, those of a directory in the order of their names.
func (o *filesOptions) read(stdin io.Reader) ([]manifest.File, error) {
	if len(o.names) == 0 {
		return nil, errors.New("say which manifests: -f FILE, -f DIRECTORY, or -f - for standard input")
	}
	var files []manifest.File
	for _, name := range o.names {
		if name == "-" {
			if slices.ContainsFunc(files, func(f manifest.File) bool { return f.Name == "stdin" }) {
				return nil, errors.New("-f -: standard input can be read only once")
			}
			text, err := io.ReadAll(stdin)
			if err != nil {
				return nil, fmt.Errorf("reading standard input: %w", err)
			}
			files = append(files, manifest.File{Name: "stdin", Text: text})
			continue
		}
		if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
			return nil, fmt.Errorf("-f %s: this command fetches nothing: pipe the output of curl into -f -", name)
		}
		found, err := o.below(name, true)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

// below reads a file, or the manifests of a directory.
func (o *filesOptions) below(name string, asked bool) ([]manifest.File, error) {
	about, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	if !about.IsDir() {
		text, err := os.ReadFile(name) //nolint:gosec // the user says which
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		return []manifest.File{{Name: name, Text: text}}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	var files []manifest.File
	for _, entry := range entries {
		ending := strings.TrimPrefix(filepath.Ext(entry.Name()), ".")
		if entry.IsDir() && !o.recursive || !entry.IsDir() && !slices.Contains(manifestEndings(), ending) {
			continue
		}
		found, err := o.below(filepath.Join(name, entry.Name()), false)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if asked && len(files) == 0 {
		return nil, fmt.Errorf("-f %s: it holds no file that ends in .json, .yaml or .yml; -R looks into the directories below too", name)
	}
	return files, nil
}

// mostOfKey is how much of a key file is read, in bytes: a device may never end.
const mostOfKey = 64 << 10

// readKey reads a key without the line break at its end, which editors add.
func readKey(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // it is the user's own
	if err != nil {
		return nil, fmt.Errorf("reading --key-file: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	material, err := io.ReadAll(io.LimitReader(file, mostOfKey))
	if err != nil {
		return nil, fmt.Errorf("reading --key-file: %w", err)
	}
	return bytes.TrimRight(material, "\r\n"), nil
}
