package image

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestAnImageHoldsWhatItIsGivenAndIsReproducible(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "program")
	if err := os.WriteFile(binary, []byte("content"), 0o700); err != nil {
		t.Fatal(err)
	}
	spec := Spec{
		Name: "configstamp:dev", User: "65532:65532", Entrypoint: []string{"/bin/program"},
		Files: []File{{Source: binary, Destination: "/bin/program", Executable: true}},
	}
	var written [2][]byte
	for i := range written {
		path := filepath.Join(dir, "image.tar")
		if err := Write(spec, path); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		written[i] = content
	}
	if !bytes.Equal(written[0], written[1]) {
		t.Error("the same input made two images")
	}
	image, err := tarball.ImageFromPath(filepath.Join(dir, "image.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Config.User != spec.User || config.OS != "linux" || config.Config.Entrypoint[0] != "/bin/program" {
		t.Errorf("the image's configuration is %+v, %v", config, err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Errorf("the image has %d layers, %v; want 1", len(layers), err)
	}
}

func TestARelativeDestinationIsRefused(t *testing.T) {
	err := Write(Spec{Name: "a:b", Files: []File{{Source: "x", Destination: "bin/x"}}}, filepath.Join(t.TempDir(), "x.tar"))
	if err == nil {
		t.Error("there should be an error")
	}
}
