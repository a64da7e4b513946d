// Package state says where a cluster's files are and what is remembered of it between two commands. It knows paths,
// names and one JSON file; it starts and stops nothing. Start reading at Cluster.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// Node is the kind of node that a cluster has.
type Node string

const (
	// NodeKubelet is a real node: kubelet, containerd, runc, pod network, kube-proxy.
	NodeKubelet Node = "kubelet"
	// NodeKwok is any number of fake nodes, whose pods say that they are Ready.
	NodeKwok Node = "kwok"
	// NodeNone is a control plane alone.
	NodeNone Node = "none"
)

// Cluster is what is remembered of one cluster.
type Cluster struct {
	Name    string    `json:"name"`
	Node    Node      `json:"node"`
	Nodes   int       `json:"nodes,omitempty"`
	Created time.Time `json:"created"`
	// Ready is written when everything was up once; a cluster without it was interrupted.
	Ready bool `json:"ready"`
	// Kubernetes is the minor version that its node was made for, such as v1.30.
	Kubernetes string `json:"kubernetes"`
	// Programs is the directory of the programs that it runs, kubectl among them.
	Programs string `json:"programs"`
	// Server is the API server as the host reaches it.
	Server string `json:"server"`
	// Address is where the cluster's servers listen.
	Address string `json:"address"`
	// HostAddress is the host as the cluster's servers reach it.
	HostAddress string `json:"hostAddress"`
	PodCIDR     string `json:"podCIDR,omitempty"`
	ServiceCIDR string `json:"serviceCIDR"`
	// Index makes the addresses of clusters with real nodes differ.
	Index int   `json:"index,omitempty"`
	Ports Ports `json:"ports"`

	dir string
}

// Ports are the ports that the control plane listens on.
type Ports struct {
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	APIServer         int `json:"apiServer"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
}

// All are the ports of everything.
func (p Ports) All() []int {
	return []int{p.Etcd, p.EtcdPeer, p.APIServer, p.ControllerManager, p.Scheduler}
}

// ErrNoCluster is wrapped by errors about a cluster that was never brought up.
var ErrNoCluster = errors.New("there is no such cluster")

// maximumName keeps names of network namespaces, cgroups, nodes and sockets inside their limits.
const maximumName = 30

// ValidateName says whether a cluster may be called so.
func ValidateName(name string) error {
	if len(name) > maximumName || !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(name) {
		return fmt.Errorf("a cluster cannot be called %q: use at most %d lower-case letters, digits and inner dashes", name, maximumName)
	}
	return nil
}

// CacheDir is the directory that holds built programs and running clusters.
func CacheDir(getenv func(string) string) (string, error) {
	if dir := getenv("CONFIGSTAMP_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "configstamp"), nil
	}
	home := getenv("HOME")
	if home == "" {
		return "", errors.New("no place for the cache: set CONFIGSTAMP_CACHE (or XDG_CACHE_HOME, or HOME)")
	}
	return filepath.Join(home, ".cache", "configstamp"), nil
}

// New is a cluster that is not stored yet.
func New(cache, name string) *Cluster {
	return &Cluster{Name: name, dir: directory(cache, name)}
}

// Load reads what is remembered of a cluster.
func Load(cache, name string) (*Cluster, error) {
	c := New(cache, name)
	content, err := os.ReadFile(c.path("cluster.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s (cluster up --name %s makes it)", ErrNoCluster, name, name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is remembered of cluster %s: %w", name, err)
	}
	if err := json.Unmarshal(content, c); err != nil {
		return nil, fmt.Errorf("reading %s: %w (cluster down --name %s removes it)", c.path("cluster.json"), err, name)
	}
	return c, nil
}

// All is every cluster that is remembered, running or not.
func All(cache string) ([]*Cluster, error) {
	paths, err := filepath.Glob(filepath.Join(cache, "clusters", "*", "cluster.json"))
	if err != nil {
		return nil, fmt.Errorf("looking for clusters in %s: %w", cache, err)
	}
	all := make([]*Cluster, 0, len(paths))
	for _, path := range paths {
		c, err := Load(cache, filepath.Base(filepath.Dir(path)))
		if errors.Is(err, ErrNoCluster) {
			continue // taken down this moment
		}
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// Save remembers the cluster.
func (c *Cluster) Save() error {
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("remembering cluster %s: %w", c.Name, err)
	}
	next := c.path("cluster.json.next")
	if err := os.WriteFile(next, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("remembering cluster %s: %w", c.Name, err)
	}
	if err := os.Rename(next, c.path("cluster.json")); err != nil {
		return fmt.Errorf("remembering cluster %s: %w", c.Name, err)
	}
	return nil
}
