package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// makePlugin has deploy/krew build the plugin's archives and krew's manifest, and adds a bill
// of materials of what is in each archive.
func (r *release) makePlugin(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "kubectl-configstamp-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if _, err := r.command(ctx, nil, "go", "run", "./deploy/krew", "-version", r.version, "-commit", r.short(),
		"-time", strconv.FormatInt(r.made.Unix(), 10), "-out", folder); err != nil {
		return err
	}
	made, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range made {
		name := entry.Name()
		if name == sumsFile {
			continue // there is one of all files
		}
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		if name != "configstamp.yaml" { // krew's manifest
			if err := r.describePlugin(name, content); err != nil {
				return err
			}
		}
		if err := r.write(name, content); err != nil {
			return err
		}
	}
	return nil
}

// describePlugin writes the bill of materials of the program in an archive.
func (r *release) describePlugin(name string, archive []byte) error {
	read := untar
	base, zipped := strings.CutSuffix(name, ".zip")
	if zipped {
		read = unzip
	}
	binary, err := read(archive)
	if err != nil {
		return fmt.Errorf("looking into %s: %w", name, err)
	}
	return r.writeSBOM(strings.TrimSuffix(base, ".tar.gz"), binary)
}

// errNoProgram is of an archive without the plugin.
var errNoProgram = errors.New("it holds no program")

func untar(content []byte) ([]byte, error) {
	small, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	for archive := tar.NewReader(small); ; {
		head, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, errNoProgram
		case err != nil:
			return nil, err
		case head.Name == "kubectl-configstamp":
			return io.ReadAll(archive)
		}
	}
}

func unzip(content []byte) ([]byte, error) {
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	program, err := archive.Open("kubectl-configstamp.exe")
	if err != nil {
		return nil, errNoProgram
	}
	defer func() { _ = program.Close() }()
	return io.ReadAll(program)
}
