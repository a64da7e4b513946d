package network

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Addresses are those of a cluster with a network namespace of its own.
type Addresses struct {
	Index int
	// Host and Cluster are the ends of the pair that joins them.
	Host, Cluster string
	Pods          string
	Services      string
}

const indexes = 250

// AddressesFor gives the addresses of an index. Each cluster has its own, pods and Services too, so that the host can
// reach those of all clusters.
func AddressesFor(index int) Addresses {
	return Addresses{
		Index:    index,
		Host:     fmt.Sprintf("10.231.%d.1", index),
		Cluster:  fmt.Sprintf("10.231.%d.2", index),
		Pods:     fmt.Sprintf("10.244.%d.0/24", index),
		Services: fmt.Sprintf("10.96.%d.0/24", index),
	}
}

// ChooseAddresses finds addresses for a cluster that neither another cluster nor an interface of the host has.
func ChooseAddresses(name string, taken map[int]bool) (Addresses, error) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return Addresses{}, fmt.Errorf("reading the addresses of this machine: %w", err)
	}
	hash := fnv.New32a()
	hash.Write([]byte(name))
	for i := range indexes {
		index := 1 + (int(hash.Sum32()%indexes)+i)%indexes
		addresses := AddressesFor(index)
		if !taken[index] && !overlaps(addresses, interfaces) {
			return addresses, nil
		}
	}
	return Addresses{}, fmt.Errorf("no free addresses for cluster %s: all of 10.231.1.0 to 10.231.%d.0 are in use; take some clusters down", name, indexes)
}

func overlaps(addresses Addresses, interfaces []net.Addr) bool {
	for _, ours := range []string{addresses.Host + "/24", addresses.Pods, addresses.Services} {
		_, network, err := net.ParseCIDR(ours)
		if err != nil {
			return true
		}
		for _, theirs := range interfaces {
			ip, net, err := net.ParseCIDR(theirs.String())
			if err == nil && (network.Contains(ip) || net.Contains(network.IP)) {
				return true
			}
		}
	}
	return false
}

// Namespace is a network namespace and its link to the host.
type Namespace struct {
	Name                  string
	HostLink, ClusterLink string
}

// File is what nsenter takes.
func (n Namespace) File() string { return filepath.Join("/run/netns", n.Name) }

// Make makes namespace, link and routes.
func (n Namespace) Make(ctx context.Context, a Addresses) error {
	return run(ctx,
		"ip netns add "+n.Name,
		fmt.Sprintf("ip link add %s type veth peer name %s netns %s", n.HostLink, n.ClusterLink, n.Name),
		fmt.Sprintf("ip address add %s/30 dev %s", a.Host, n.HostLink),
		fmt.Sprintf("ip link set %s up", n.HostLink),
		fmt.Sprintf("ip -n %s link set lo up", n.Name),
		fmt.Sprintf("ip -n %s address add %s/30 dev %s", n.Name, a.Cluster, n.ClusterLink),
		fmt.Sprintf("ip -n %s link set %s up", n.Name, n.ClusterLink),
		fmt.Sprintf("ip -n %s route add default via %s", n.Name, a.Host),
		fmt.Sprintf("ip route add %s via %s", a.Pods, a.Cluster),
		fmt.Sprintf("ip route add %s via %s", a.Services, a.Cluster),
		// What is under /proc/sys/net is the namespace's own.
		fmt.Sprintf("nsenter --net=%s -- sh -c", n.File())+"\x00echo 1 > /proc/sys/net/ipv4/ip_forward",
	)
}

// Remove removes what is there of it. The routes go with the link.
func (n Namespace) Remove(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join("/sys/class/net", n.HostLink)); err == nil {
		if err := run(ctx, "ip link delete "+n.HostLink); err != nil {
			return err
		}
	}
	if _, err := os.Stat(n.File()); err == nil {
		return run(ctx, "ip netns delete "+n.Name)
	}
	return nil
}

// run runs commands one after the other. Words are split at spaces, but for what follows a NUL, which is one word.
func run(ctx context.Context, commands ...string) error {
	for _, command := range commands {
		words, last, hasLast := strings.Cut(command, "\x00")
		argv := strings.Fields(words)
		if hasLast {
			argv = append(argv, last)
		}
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("setting up the cluster's network by %q: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
