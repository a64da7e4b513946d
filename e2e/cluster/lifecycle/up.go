// Package lifecycle brings a cluster up, step by step, and takes it down, from whatever state it is found in. It knows
// the order of things; what a thing is, its own package knows. Start reading at Up.
package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"time"

	"github.com/configstamp/configstamp/e2e/cluster/api"
	"github.com/configstamp/configstamp/e2e/cluster/builds"
	"github.com/configstamp/configstamp/e2e/cluster/controlplane"
	"github.com/configstamp/configstamp/e2e/cluster/credentials"
	"github.com/configstamp/configstamp/e2e/cluster/network"
	"github.com/configstamp/configstamp/e2e/cluster/node"
	"github.com/configstamp/configstamp/e2e/cluster/progress"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

// Host is where clusters are made.
type Host struct {
	// Cache is the directory of built programs and of clusters.
	Cache   string
	Sources builds.Sources
	// Kubernetes is its minor version, such as v1.30; "" is the default.
	Kubernetes string
	Log        *progress.Log
}

// Request is the cluster that is wanted.
type Request struct {
	Name string
	// Node is the kind of node; empty for the best that is possible here.
	Node state.Node
	// Nodes is how many fake nodes.
	Nodes        int
	ControlPlane controlplane.Options
	// Lifetime is after how long the cluster goes down by itself; 0 for never.
	Lifetime time.Duration
}

// Builds is the cache of programs.
func (h Host) Builds() builds.Cache { return builds.Cache{Dir: h.Cache, Log: h.Log} }

// Up brings a cluster up. It does nothing if it is up, starts anew if it was left half-way, and leaves nothing behind
// but logs if it does not succeed.
func (h Host) Up(ctx context.Context, r Request) (*state.Cluster, error) {
	if err := state.ValidateName(r.Name); err != nil {
		return nil, err
	}
	release, err := h.take(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	defer release()

	if existing, err := h.existing(ctx, r); existing != nil || err != nil {
		return existing, err
	}
	c := state.New(h.Cache, r.Name)
	if c.Node = r.Node; c.Node == "" {
		var why string
		c.Node, why = choose()
		h.Log.Step("node: %s, because %s", c.Node, why)
	}
	c.Created = time.Now().UTC().Truncate(time.Second)
	if err := h.possible(ctx, c.Node); err != nil {
		return nil, err
	}
	binaries, err := h.build(ctx, c.Node)
	if err != nil {
		return nil, err
	}
	c.Kubernetes = cmp.Or(h.Kubernetes, builds.DefaultKubernetes)
	c.Programs = filepath.Dir(binaries.Kubernetes)
	s := starter{Host: h, cluster: c, binaries: binaries}
	if err := s.start(ctx, r); err != nil {
		return nil, errors.Join(err, h.abandon(ctx, c))
	}
	return c, nil
}

// existing is the cluster if it is up already. What is left of one that is not, is removed.
func (h Host) existing(ctx context.Context, r Request) (*state.Cluster, error) {
	c, err := state.Load(h.Cache, r.Name)
	if errors.Is(err, state.ErrNoCluster) {
		if _, statErr := os.Stat(state.New(h.Cache, r.Name).Dir()); statErr != nil {
			return nil, nil
		}
		return nil, h.remove(ctx, state.New(h.Cache, r.Name))
	}
	if err != nil {
		return nil, err
	}
	if c.Ready {
		if err := Client(c, func(client *api.Client) error { return client.Get(ctx, "/readyz", nil) }); err == nil {
			if r.Node != "" && r.Node != c.Node {
				return nil, fmt.Errorf("cluster %s is up with --node=%s, not %s: take it down first (cluster down --name %s), or choose another --name", c.Name, c.Node, r.Node, c.Name)
			}
			h.Log.Step("cluster %s is up already, with --node=%s, since %s", c.Name, c.Node, c.Created.Local().Format(time.DateTime))
			return c, nil
		}
	}
	h.Log.Step("cluster %s was left half-way; removing what is there", c.Name)
	return nil, h.remove(ctx, c)
}

// choose is what --node=auto means on this machine.
func choose() (state.Node, string) {
	if runtime.GOOS != "linux" {
		return state.NodeKwok, "a real node needs Linux"
	}
	if os.Geteuid() != 0 {
		name := "this user"
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
		return state.NodeKwok, "a real node needs root, and this is " + name
	}
	return state.NodeKubelet, "this is root on Linux"
}

// possible says at once, before minutes of building, if there cannot be such a node here.
func (h Host) possible(ctx context.Context, kind state.Node) error {
	switch kind {
	case state.NodeKwok, state.NodeNone:
		return nil
	case state.NodeKubelet:
		if runtime.GOOS != "linux" || os.Geteuid() != 0 {
			return errors.New("a real node needs root on Linux: run as root, or use --node=kwok or --node=none")
		}
		return node.RequirePackages(ctx, h.Log)
	default:
		return fmt.Errorf("there is no --node=%s: choose auto, kubelet, kwok or none", kind)
	}
}

// Binaries are the programs that a cluster runs.
type Binaries struct{ Kubernetes, Kwok, Pause string }

// Programs is where those of the version of Kubernetes are that is asked for.
func (h Host) Programs(ctx context.Context) (string, error) {
	kubernetes, err := h.Sources.Kubernetes(h.Kubernetes)
	if err != nil {
		return "", err
	}
	binary, err := h.Builds().Build(ctx, kubernetes)
	return filepath.Dir(binary), err
}

func (h Host) build(ctx context.Context, kind state.Node) (Binaries, error) {
	var b Binaries
	programs, err := h.Programs(ctx)
	if err != nil {
		return b, err
	}
	b.Kubernetes = filepath.Join(programs, "kubernetes")
	switch kind {
	case state.NodeKwok:
		b.Kwok, err = h.Builds().Build(ctx, h.Sources.Kwok())
	case state.NodeKubelet:
		b.Pause, err = h.Builds().Build(ctx, h.Sources.Pause())
	case state.NodeNone:
	}
	return b, err
}

// address gives the cluster what it listens on, and remembers it, so that it can be removed from now on.
func (h Host) address(c *state.Cluster) error {
	others, err := state.All(h.Cache)
	if err != nil {
		return err
	}
	indexes, ports := map[int]bool{}, map[int]bool{}
	for _, other := range others {
		indexes[other.Index] = true
		for _, port := range other.Ports.All() {
			ports[port] = true
		}
	}
	if c.Node == state.NodeKubelet {
		a, err := network.ChooseAddresses(c.Name, indexes)
		if err != nil {
			return err
		}
		c.Index, c.Address, c.HostAddress, c.PodCIDR, c.ServiceCIDR = a.Index, a.Cluster, a.Host, a.Pods, a.Services
		c.Ports = state.Ports{Etcd: 2379, EtcdPeer: 2380, APIServer: 6443, ControllerManager: 10257, Scheduler: 10259}
	} else {
		p, err := network.FreePorts(5, ports)
		if err != nil {
			return err
		}
		c.Address, c.HostAddress, c.ServiceCIDR = "127.0.0.1", "127.0.0.1", "10.96.0.0/16"
		c.Ports = state.Ports{Etcd: p[0], EtcdPeer: p[1], APIServer: p[2], ControllerManager: p[3], Scheduler: p[4]}
	}
	c.Server = fmt.Sprintf("https://%s:%d", c.Address, c.Ports.APIServer)
	if err := c.MakeDirs(); err != nil {
		return err
	}
	return c.Save()
}

// Client calls something with a client of the cluster's API server, as the administrator.
func Client(c *state.Cluster, do func(*api.Client) error) error {
	client, err := api.New(c.Server, c.File("credentials", "ca.crt"), c.File("credentials", "admin.crt"), c.File("credentials", "admin.key"))
	if err != nil {
		return err
	}
	defer client.Close()
	return do(client)
}

// prepare makes credentials and, for a real node, network and cgroup.
func (s *starter) prepare(ctx context.Context) (controlplane.Files, error) {
	c := s.cluster
	authority, err := credentials.NewAuthority(c.Credentials(), c.Name)
	if err != nil {
		return controlplane.Files{}, err
	}
	s.authority = authority
	files, err := controlplane.MakeFiles(c, authority)
	if err != nil || c.Node != state.NodeKubelet {
		return files, err
	}
	if err := namespace(c).Make(ctx, network.AddressesFor(c.Index)); err != nil {
		return files, err
	}
	if err := node.MakeCgroups(c.Cgroup()); err != nil {
		return files, err
	}
	s.Log.Step("network namespace %s: host %s, cluster %s", c.Namespace(), c.HostAddress, c.Address)
	return files, nil
}

func namespace(c *state.Cluster) network.Namespace {
	host, cluster := c.Links()
	return network.Namespace{Name: c.Namespace(), HostLink: host, ClusterLink: cluster}
}

// NeedRoot says so if the cluster's node can only be reached by root.
func NeedRoot(c *state.Cluster) error {
	if c.Node == state.NodeKubelet && os.Geteuid() != 0 {
		return fmt.Errorf("cluster %s has a real node, which only root can reach: run this as root", c.Name)
	}
	return nil
}
