// Package image wraps programs into container images, as tarballs that `docker load` and containerd read. It needs no
// registry, no base image and no daemon. The images hold what they are given and nothing else, not even a shell.
package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// File is one file to put into the image.
type File struct {
	Source string
	// Destination is an absolute path.
	Destination string
	Executable  bool
}

// Spec describes an image.
type Spec struct {
	// Name is what manifests call it, such as configstamp:dev.
	Name       string
	Files      []File
	Entrypoint []string
	Env        []string
	User       string
}

// Write writes the image as a tarball. The same input makes the same bytes.
func Write(spec Spec, to string) error {
	tag, err := name.NewTag(spec.Name)
	if err != nil {
		return fmt.Errorf("reading the image name %q: %w", spec.Name, err)
	}
	content, err := archive(spec.Files)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return fmt.Errorf("making the layer of image %s: %w", spec.Name, err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return fmt.Errorf("making image %s: %w", spec.Name, err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return fmt.Errorf("making image %s: %w", spec.Name, err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	file.Config = v1.Config{Entrypoint: spec.Entrypoint, Env: spec.Env, User: spec.User, WorkingDir: "/"}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return fmt.Errorf("making image %s: %w", spec.Name, err)
	}
	if err := tarball.WriteToFile(to, tag, image); err != nil {
		return fmt.Errorf("writing image %s to %s: %w", spec.Name, to, err)
	}
	return nil
}

// archive is one layer: the directories that the files need, /tmp, and the files.
func archive(files []File) ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	made := map[string]bool{"/": true}
	if err := directory(writer, "/tmp", 0o1777, made); err != nil {
		return nil, err
	}
	for _, file := range files {
		if !path.IsAbs(file.Destination) {
			return nil, fmt.Errorf("the image cannot have a file at %q: give an absolute path", file.Destination)
		}
		if err := parents(writer, path.Clean(file.Destination), made); err != nil {
			return nil, err
		}
		content, err := os.ReadFile(file.Source)
		if err != nil {
			return nil, fmt.Errorf("reading a file for the image: %w", err)
		}
		mode := int64(0o644)
		if file.Executable {
			mode = 0o755
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: entry(file.Destination), Size: int64(len(content)), Mode: mode}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", file.Source, err)
		}
		if _, err := writer.Write(content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", file.Source, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("packing the image: %w", err)
	}
	return buffer.Bytes(), nil
}

func parents(writer *tar.Writer, file string, made map[string]bool) error {
	parent := path.Dir(file)
	if made[parent] {
		return nil
	}
	if err := parents(writer, parent, made); err != nil {
		return err
	}
	return directory(writer, parent, 0o755, made)
}

func directory(writer *tar.Writer, dir string, mode int64, made map[string]bool) error {
	made[dir] = true
	err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: entry(dir) + "/", Mode: mode})
	if err != nil {
		return fmt.Errorf("packing the directory %s: %w", dir, err)
	}
	return nil
}

// entry is the name of a path in a layer.
func entry(file string) string { return strings.TrimPrefix(path.Clean(file), "/") }
