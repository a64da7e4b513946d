package harness

import (
	"context"
	"crypto/tls"
	"errors"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/client-go/dynamic"
)

// Bare is a cluster without configstamp in it, for programs that decide by
// themselves what runs beside it, such as e2e/bench. Down must be called.
type Bare struct {
	Name, Kubeconfig, Server string
	// State is the driver's directory; processes/ holds a record of each component.
	State string

	cluster *cluster
}

// UpBare makes a cluster; args are further ones of the driver's "up". Scratch
// files go to dir.
func UpBare(ctx context.Context, dir, name string, args ...string) (*Bare, error) {
	driver := filepath.Join(dir, "cluster")
	if err := build(ctx, "e2e/cluster", "./cmd/cluster", driver); err != nil {
		return nil, err
	}
	c := &cluster{driver: driver, name: name}
	if _, err := c.command(ctx, append([]string{"up"}, args...)...); err != nil {
		return nil, errors.Join(err, c.takeDown())
	}
	if err := c.learn(ctx); err != nil {
		return nil, errors.Join(err, c.takeDown())
	}
	return &Bare{Name: name, Kubeconfig: c.Kubeconfig, Server: c.Server, State: c.State, cluster: c}, nil
}

// Down takes the cluster down.
func (b *Bare) Down() error { return b.cluster.takeDown() }

// Root is the directory of the project's root module.
func Root() (string, error) { return root() }

// BuildPlain builds configstamp as it is shipped: without the race detector.
func BuildPlain(ctx context.Context, binary, version, commit string) error {
	linked := []string{"all=-s", "-w", "-X main.version=" + version, "-X main.commit=" + commit}
	return build(ctx, ".", "./cmd/configstamp", binary, "-p", "1", "-trimpath", "-ldflags", strings.Join(linked, " "))
}

// TLS is a serving certificate for the loopback.
func (a *Authority) TLS() (tls.Certificate, error) { return a.tlsPair() }

// InstallManifests installs what the chart installs, without its Pods; its webhooks
// are called at urls.
func InstallManifests(ctx context.Context, all dynamic.Interface, urls URLs, ca []byte) error {
	objects, err := Wanted{}.manifest()
	if err != nil {
		return err
	}
	return installProduct(ctx, all, objects, urls, ca)
}

// WriteKubeconfig writes how the owner of token reaches a server that ca vouches for.
func WriteKubeconfig(file, server string, ca []byte, token string) error {
	return kubeconfig(file, server, ca, token)
}

// DieWithUs has a process end when this one does, whatever ends that.
func DieWithUs() *syscall.SysProcAttr { return dieWithUs() }
