package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// labels are those of the Dockerfile.
func (r *release) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "configstamp",
		"org.opencontainers.image.source":   source,
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.version":  r.version,
		"org.opencontainers.image.revision": r.short(),
	}
}

// reference is the image with its tag, as nodes complete it.
func (r *release) reference() (string, error) {
	named, err := reference.ParseNormalizedNamed(r.image)
	if err != nil || !reference.IsNameOnly(named) {
		return "", fmt.Errorf("IMAGE is %q: want a repository without a tag, such as <registry>/configstamp: %w", r.image, err)
	}
	tagged, err := reference.WithTag(named, r.version)
	if err != nil {
		return "", fmt.Errorf("tagging %s: %w", r.image, err)
	}
	return tagged.String(), nil
}

// makeImage writes the OCI archive of both platforms, and each program's bill of materials.
func (r *release) makeImage(ctx context.Context) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range architectures() {
		binary, err := r.compile(ctx, architecture)
		if err != nil {
			return err
		}
		if err := r.writeSBOM(fmt.Sprintf("configstamp_%s_linux_%s", r.version, architecture), binary); err != nil {
			return err
		}
		image, err := r.wrap(binary, architecture)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return r.writeImage(index)
}

// wrap makes the image of one platform: the program, and nothing else.
func (r *release) wrap(binary []byte, architecture string) (v1.Image, error) {
	var files bytes.Buffer
	if err := pack(&files, r.made, []packed{{"configstamp", binary, 0o755}}); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9))
	if err != nil {
		return nil, err
	}
	made := v1.Time{Time: r.made}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: made, CreatedBy: "make release"}}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, made
	config.Config = v1.Config{User: "65532:65532", Entrypoint: []string{"/configstamp"}, WorkingDir: "/", Labels: r.labels()}
	return mutate.ConfigFile(image, config)
}

// writeImage writes an OCI archive: an OCI layout in a tar file. Its index has one entry, the
// index of the platforms, under the names that containerd, Podman and Docker look for.
func (r *release) writeImage(index v1.ImageIndex) error {
	name, err := r.reference()
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	r.index = digest.String()
	folder, err := os.MkdirTemp("", "configstamp-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	at, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	if err := at.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name": name, "org.opencontainers.image.ref.name": r.version,
	})); err != nil {
		return err
	}
	content, err := packFolder(folder, r.made)
	if err != nil {
		return err
	}
	return r.write(r.imageFile(), content)
}

func (r *release) imageFile() string { return "configstamp_" + r.version + ".oci.tar" }

// packed is a file in a tar archive.
type packed struct {
	name    string
	content []byte
	mode    fs.FileMode
}

// pack writes a tar archive of files that belong to nobody in particular.
func pack(to io.Writer, made time.Time, files []packed) error {
	archive := tar.NewWriter(to)
	for _, f := range files {
		head := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.content)), Mode: int64(f.mode), ModTime: made, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(head); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// packFolder is a tar archive of the files in a folder, sorted by name.
func packFolder(folder string, made time.Time) ([]byte, error) {
	var files []packed
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		files = append(files, packed{filepath.ToSlash(name), content, 0o644})
		return err
	})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = pack(&out, made, files)
	return out.Bytes(), err
}
