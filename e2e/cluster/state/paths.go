package state

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

func directory(cache, name string) string { return filepath.Join(cache, "clusters", name) }

// LockPath is the file that is locked while a cluster goes up or down; it outlives the cluster.
func LockPath(cache, name string) string { return directory(cache, name) + ".lock" }

// FailedLogs is where the logs of a cluster that did not come up are kept.
func FailedLogs(cache, name string) string { return directory(cache, name) + ".failed-logs" }

func (c *Cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.dir}, elements...)...)
}

// Dir is the directory of everything that belongs to the cluster.
func (c *Cluster) Dir() string { return c.dir }

// File is a path inside the cluster's directory.
func (c *Cluster) File(elements ...string) string { return c.path(elements...) }

// Logs is the directory of one log file per component.
func (c *Cluster) Logs() string { return c.path("logs") }

// Records is the directory of one process record per component.
func (c *Cluster) Records() string { return c.path("processes") }

// Credentials is the directory of certificates, keys and the components' kubeconfigs.
func (c *Cluster) Credentials() string { return c.path("credentials") }

// Kubeconfig is the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.path("kubeconfig") }

// RunDir holds sockets, whose paths must be short, and containerd's volatile state.
func (c *Cluster) RunDir() string { return filepath.Join("/run/configstamp", c.Name) }

// ContainerdSocket is where a real node's containerd listens.
func (c *Cluster) ContainerdSocket() string { return filepath.Join(c.RunDir(), "containerd.sock") }

// Namespace is the network namespace of a cluster with a real node.
func (c *Cluster) Namespace() string { return "configstamp-" + c.Name }

// Cgroup is the cgroup, below each hierarchy's root, of a real node's pods.
func (c *Cluster) Cgroup() string { return "configstamp-" + c.Name }

// NodeName is the name of the nth node.
func (c *Cluster) NodeName(n int) string { return fmt.Sprintf("%s-node-%d", c.Name, n) }

// Links are the two ends of the pair that joins host and cluster. The kernel allows fifteen characters.
func (c *Cluster) Links() (host, cluster string) {
	sum := sha256.Sum256([]byte(c.Name))
	id := hex.EncodeToString(sum[:4])
	return "cs" + id + "h", "cs" + id + "c"
}

// MakeDirs makes the cluster's directories.
func (c *Cluster) MakeDirs() error {
	for _, dir := range []string{c.dir, c.Logs(), c.Records(), c.Credentials()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making a directory for cluster %s: %w", c.Name, err)
		}
	}
	return nil
}
