package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/pods"
)

// mostCompressed is how large the image may be, as nodes pull it.
const mostCompressed = 25 << 20

// The image that everything here was installed from is that of the Dockerfile:
// one file, not root, small, the same each time, for both platforms.
func TestImage(t *testing.T) {
	tarball := os.Getenv(pods.EnvImage)
	if tarball == "" {
		t.Skipf("SKIPPED (1 check): the image of the Dockerfile: %s is not set; make install builds it", pods.EnvImage)
	}
	image := read(t, tarball)
	config := image.config
	if config.User != "65532:65532" || strings.Join(config.Entrypoint, " ") != "/configstamp" || len(config.Env) > 1 {
		t.Errorf("its configuration: %+v", config)
	}
	if config.Labels["org.opencontainers.image.version"] == "" || config.Labels["org.opencontainers.image.revision"] == "" {
		t.Errorf("its labels: %v", config.Labels)
	}
	if len(image.files) != 1 || image.files["configstamp"] == nil {
		t.Errorf("%d files, want the binary alone", len(image.files))
	}
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, err := writer.Write(image.files["configstamp"])
	harness.Must(t, errors.Join(err, writer.Close()))
	t.Logf("%.1f MB compressed", float64(compressed.Len())/1e6)
	if compressed.Len() > mostCompressed {
		t.Errorf("%d bytes compressed, want at most %d", compressed.Len(), mostCompressed)
	}

	again := build(t, config, "linux/amd64")
	if sum(t, tarball) != sum(t, again) {
		t.Error("built again, it is another image")
	}
	if machine(t, image.files["configstamp"]) != elf.EM_X86_64 {
		t.Error("it is not for amd64")
	}
	if machine(t, read(t, build(t, config, "linux/arm64")).files["configstamp"]) != elf.EM_AARCH64 {
		t.Error("the image for arm64 is not for arm64")
	}
	s := cluster.PlainSpace(t)
	s.WaitServiceAccount()
	s.Kubectl("run", "version", "--image="+pods.Image, "--image-pull-policy=Never", "--restart=Never", "--", "version")
	s.Kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=5m", "pod/version")
	says := s.Kubectl("logs", "version").Stdout
	if !strings.HasPrefix(says, "configstamp "+config.Labels["org.opencontainers.image.version"]+" (commit "+config.Labels["org.opencontainers.image.revision"]) {
		t.Errorf("it says of itself: %s", says)
	}
}

// settings is the part of an image's configuration that matters to a node.
type settings struct {
	User       string
	Entrypoint []string
	Env        []string
	Labels     map[string]string
}

type archive struct {
	config settings
	files  map[string][]byte
}

// read takes a tarball apart, as docker save writes it.
func read(t *testing.T, tarball string) archive {
	t.Helper()
	file, err := os.Open(filepath.Clean(tarball))
	harness.Must(t, err)
	defer func() { _ = file.Close() }()
	image := archive{files: map[string][]byte{}}
	each(t, file, func(name string, content []byte) {
		switch filepath.Ext(name) {
		case ".json":
			var described struct{ Config settings }
			if json.Unmarshal(content, &described) == nil && described.Config.User != "" {
				image.config = described.Config
			}
		case ".tar":
			each(t, bytes.NewReader(content), func(name string, content []byte) { image.files[name] = content })
		}
	})
	return image
}

// each calls take with every regular file of a tar archive.
func each(t *testing.T, from io.Reader, take func(name string, content []byte)) {
	t.Helper()
	reader := tar.NewReader(from)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		harness.Must(t, err)
		if header.Typeflag == tar.TypeReg {
			content, err := io.ReadAll(reader)
			harness.Must(t, err)
			take(header.Name, content)
		}
	}
}

// build builds the Dockerfile once more, as what config says it is.
func build(t *testing.T, config settings, platform string) string {
	t.Helper()
	tarball := filepath.Join(t.TempDir(), "image.tar")
	labels := config.Labels
	command := exec.CommandContext(t.Context(), path(t, "e2e/image.sh"),
		labels["org.opencontainers.image.version"], labels["org.opencontainers.image.revision"], platform, tarball)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building the image for %s: %v\n%s", platform, err, out)
	}
	return tarball
}

func sum(t *testing.T, file string) [sha256.Size]byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Clean(file))
	harness.Must(t, err)
	return sha256.Sum256(content)
}

func machine(t *testing.T, binary []byte) elf.Machine {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(binary))
	harness.Must(t, err)
	return file.Machine
}
