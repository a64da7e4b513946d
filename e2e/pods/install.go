package pods

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Install installs configstamp as people do, and waits until it serves.
func (c *Cluster) Install(t testing.TB) {
	t.Helper()
	root, err := harness.Root()
	harness.Must(t, err)
	c.Kubectl(t, "apply", "-f", filepath.Join(root, "deploy", "install.yaml"))
	c.Own(t, "wait", "certificate/configstamp", "--for=condition=Ready", "--timeout=5m")
	c.WaitServing(t)
}

// Uninstall takes away what Install installed.
func (c *Cluster) Uninstall(t testing.TB) {
	t.Helper()
	root, err := harness.Root()
	harness.Must(t, err)
	c.Kubectl(t, "delete", "-f", filepath.Join(root, "deploy", "install.yaml"), "--timeout=2m")
}

// probe is a Pod that exists in dry runs alone.
const probe = `{apiVersion: v1, kind: Pod, metadata: {name: probe}, spec: {containers: [{name: probe, image: none, envFrom: [{configMapRef: {name: probe}}]}]}}`

// WaitServing waits until configstamp is rolled out, and until the API server
// gets stamps from it: a Service's address can refuse for a moment after its
// Pods are ready.
func (c *Cluster) WaitServing(t testing.TB) {
	t.Helper()
	c.Own(t, "rollout", "status", "deployment/configstamp", "--timeout=5m")
	s := c.Space(t)
	s.WaitServiceAccount()
	s.Set("configmap/probe", "a", "b")
	s.EventuallyIn(time.Minute, "waiting for stamps", func() error {
		dry := s.TryKubectlInput(probe, "create", "--dry-run=server", "-o", "yaml", "-f", "-")
		if dry.Code != 0 {
			return errors.New(strings.TrimSpace(dry.Stderr))
		}
		if !strings.Contains(dry.Stdout, harness.StampKey("configmap/probe")) {
			return fmt.Errorf("a dry run comes back unstamped: %s", strings.Join(dry.Warnings(), "; "))
		}
		return nil
	})
}
