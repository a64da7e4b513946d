// Package pods runs configstamp as it runs in production: in Pods of its own
// image on a real kubelet, behind its Service, with a certificate of the real
// cert-manager. It is for tests of what only Pods have; package harness, which
// it stands on, runs mere processes.
//
// A TestMain calls Main. A test then calls Install (or Helm), WaitServing, and
// whatever harness.Run and its Space have.
package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Image is what deploy's manifests call the image.
const Image = "configstamp:dev"

// EnvImage is a tarball, as docker save writes it, that holds Image. Without it
// the binary is wrapped into an image without a Dockerfile.
const EnvImage = "CONFIGSTAMP_E2E_IMAGE"

// Wanted is what a package wants of its cluster.
type Wanted struct {
	// Without cert-manager.
	NoCertManager bool
	// Up are further arguments of the driver's "up", such as --apiserver-arg=….
	Up []string
}

// Cluster is a cluster with a real node that has Image, and nothing installed.
// It goes down with the test binary.
type Cluster struct{ *harness.Run }

// Main is all that a TestMain does: it makes the cluster, gives it to use, and
// returns the exit code. What runs no containers, because it is not root, says
// which tests it skips.
func (w Wanted) Main(m *testing.M, use func(*Cluster) error) int {
	wanted := harness.Wanted{Node: harness.Kubelet, Pods: true, Identified: true, Up: w.Up}
	return wanted.Main(m, func(run *harness.Run) error {
		c := &Cluster{run}
		if err := c.prepare(context.Background(), w); err != nil {
			return err
		}
		return use(c)
	})
}

func (c *Cluster) prepare(ctx context.Context, w Wanted) error {
	if !w.NoCertManager {
		if _, err := c.Driver(ctx, "cert-manager"); err != nil {
			return err
		}
	}
	if tarball := os.Getenv(EnvImage); tarball != "" {
		tarball, err := filepath.Abs(tarball) // the driver works elsewhere
		if err != nil {
			return fmt.Errorf("looking for %s=%s: %w", EnvImage, tarball, err)
		}
		_, err = c.Driver(ctx, "load-image", tarball)
		return err
	}
	return c.LoadImage(ctx, Image, "e2e")
}

// LoadImage wraps the product as it is now, saying that it is of a version, into
// an image, and brings that to the node. So there can be a newer one to upgrade to.
func (c *Cluster) LoadImage(ctx context.Context, image, version string) error {
	binary := filepath.Join(c.Dir, "configstamp")
	if err := c.BuildShipped(ctx, binary, version); err != nil {
		return err
	}
	_, err := c.Driver(ctx, "image", "--binary", binary, "--image", image, "--load")
	return err
}

// Kubectl runs kubectl, which must succeed, and returns what it printed.
func (c *Cluster) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	result, err := c.Run.Kubectl("", args...)
	harness.Must(t, err)
	if result.Code != 0 {
		t.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), result.Code, result.Stdout, result.Stderr)
	}
	return result.Stdout
}

// Own is Kubectl in configstamp's own namespace.
func (c *Cluster) Own(t testing.TB, args ...string) string {
	t.Helper()
	return c.Kubectl(t, append([]string{"--namespace=" + harness.OwnNamespace}, args...)...)
}

// Helm runs the helm that the Makefile pins, in the checkout's root and as the
// administrator, and returns what it printed; an error holds what it complained of.
func (c *Cluster) Helm(ctx context.Context, args ...string) (string, error) {
	root, err := harness.Root()
	if err != nil {
		return "", err
	}
	path, err := output(exec.CommandContext(ctx, "make", "--silent", "--no-print-directory", "-C", root, "helm"))
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(path), "\n")
	command := exec.CommandContext(ctx, lines[len(lines)-1], args...) // after what make said of building it
	command.Dir = root
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "HELM_CACHE_HOME="+c.Dir, "HELM_CONFIG_HOME="+c.Dir, "HELM_DATA_HOME="+c.Dir)
	return output(command)
}

func output(command *exec.Cmd) (string, error) {
	out, err := command.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return string(out), fmt.Errorf("%s: %w", strings.Join(command.Args, " "), err)
	}
	return string(out), nil
}
