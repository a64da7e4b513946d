package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/configstamp/configstamp/e2e/cluster/controlplane"
	"github.com/configstamp/configstamp/e2e/cluster/credentials"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

// PauseImage holds the namespaces of every pod.
const PauseImage = "docker.io/configstamp/pause:1"

const (
	kubeletHealthPort = 10248
	proxyHealthPort   = 10256
	// logLinks is where a kubelet makes links to logs for collectors, whatever it is told.
	logLinks = "/var/log/containers"
)

// Containerd is what must run before the pause image can be loaded.
func Containerd(c *state.Cluster) (controlplane.Component, error) {
	plugins, err := pluginDir()
	if err != nil {
		return controlplane.Component{}, err
	}
	if err := os.MkdirAll(c.RunDir(), 0o700); err != nil {
		return controlplane.Component{}, fmt.Errorf("making a directory for containerd's socket: %w", err)
	}
	if err := writeNetwork(c); err != nil {
		return controlplane.Component{}, err
	}
	config := c.File("containerd.toml")
	content := fmt.Sprintf(containerdConfig, c.File("containerd"), filepath.Join(c.RunDir(), "containerd"),
		c.ContainerdSocket(), c.File("opt"), PauseImage, plugins, c.File("network"))
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		return controlplane.Component{}, fmt.Errorf("writing containerd's configuration: %w", err)
	}
	return controlplane.Component{Name: "containerd", Args: []string{"--config=" + config, "--log-level=warn"}}, nil
}

const containerdConfig = `version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = %q
[plugins."io.containerd.internal.v1.opt"]
  path = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  disable_apparmor = true
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`

// writeNetwork says how pods are joined: each by a pair of its own, so that what one pod sends to another is always
// routed, and kube-proxy sees the answers too. A bridge would need a kernel module for that.
func writeNetwork(c *state.Cluster) error {
	dir := c.File("network")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory for the pod network: %w", err)
	}
	return writeJSON(filepath.Join(dir, "10-pods.conflist"), map[string]any{
		"cniVersion": "0.4.0",
		"name":       "pods",
		"plugins": []any{map[string]any{
			"type": "ptp",
			"ipam": map[string]any{
				"type":    "host-local",
				"dataDir": c.File("pod-addresses"),
				"ranges":  []any{[]any{map[string]any{"subnet": c.PodCIDR}}},
				"routes":  []any{map[string]any{"dst": "0.0.0.0/0"}},
			},
		}},
	})
}

// WaitForContainerd asks containerd until it answers.
func WaitForContainerd(ctx context.Context, c *state.Cluster) error {
	return ctr(ctx, c, "version")
}

// LoadImage brings the images in a tarball to the node.
func LoadImage(ctx context.Context, c *state.Cluster, tarball string) error {
	if err := ctr(ctx, c, "--namespace=k8s.io", "images", "import", tarball); err != nil {
		return fmt.Errorf("loading %s into cluster %s: %w", tarball, c.Name, err)
	}
	return nil
}

func ctr(ctx context.Context, c *state.Cluster, args ...string) error {
	cmd := exec.CommandContext(ctx, "ctr", append([]string{"--address=" + c.ContainerdSocket(), "--connect-timeout=2s"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("asking containerd by ctr %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Components are the kubelet and kube-proxy.
func Components(c *state.Cluster, f controlplane.Files, a *credentials.Authority) ([]controlplane.Component, error) {
	name := c.NodeName(0)
	kubeletUser, err := a.Client("user-kubelet", "system:node:"+name, "system:nodes")
	if err != nil {
		return nil, err
	}
	proxyUser, err := a.Client("user-kube-proxy", "system:kube-proxy")
	if err != nil {
		return nil, err
	}
	kubeletKubeconfig, proxyKubeconfig := c.File("credentials", "kubelet.kubeconfig"), c.File("credentials", "kube-proxy.kubeconfig")
	if err := a.Kubeconfig(kubeletKubeconfig, "kubelet", c.Server, kubeletUser); err != nil {
		return nil, err
	}
	if err := a.Kubeconfig(proxyKubeconfig, "kube-proxy", c.Server, proxyUser); err != nil {
		return nil, err
	}
	if err := writeJSON(c.File("kubelet.json"), kubeletConfig(c, f)); err != nil {
		return nil, err
	}
	if err := writeJSON(c.File("kube-proxy.json"), proxyConfig(c, proxyKubeconfig)); err != nil {
		return nil, err
	}
	return []controlplane.Component{
		{
			Name:   "kubelet",
			Health: fmt.Sprintf("http://%s:%d/healthz", c.Address, kubeletHealthPort),
			Args: []string{
				"--config=" + c.File("kubelet.json"), "--kubeconfig=" + kubeletKubeconfig,
				"--root-dir=" + c.File("kubelet"), "--cert-dir=" + c.File("kubelet", "pki"),
				"--hostname-override=" + name, "--node-ip=" + c.Address,
			},
		},
		{
			Name:   "kube-proxy",
			Health: fmt.Sprintf("http://%s:%d/healthz", c.Address, proxyHealthPort),
			Args:   []string{"--config=" + c.File("kube-proxy.json")},
		},
	}, nil
}

// oldest is the version of Kubernetes that knows less than the others: its kubelet has no word for cgroup v1, and its
// kube-proxy wants to be told that nftables may be used.
const oldest = "v1.30"

func kubeletConfig(c *state.Cluster, f controlplane.Files) map[string]any {
	config := map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"address":                  c.Address,
		"healthzBindAddress":       c.Address,
		"healthzPort":              kubeletHealthPort,
		"tlsCertFile":              f.Server.Certificate,
		"tlsPrivateKeyFile":        f.Server.Key,
		"authentication":           map[string]any{"x509": map[string]any{"clientCAFile": f.Authority}, "anonymous": map[string]any{"enabled": false}},
		"authorization":            map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix://" + c.ContainerdSocket(),
		"podLogsDir":               c.File("pod-logs"),
		"volumePluginDir":          c.File("kubelet", "volume-plugins"),
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               "/" + c.Cgroup(),
		"enforceNodeAllocatable":   []string{},
		"failSwapOn":               false,
		"resolvConf":               "",
		"makeIPTablesUtilChains":   false,
		// The machine is the user's: its disk may be full, and no image can be had again.
		"evictionHard":                map[string]string{"memory.available": "1Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
		"imageGCHighThresholdPercent": 100,
		"maxPods":                     200,
		"serializeImagePulls":         false,
		// A changed ConfigMap is to be seen in a mounted volume soon, for the tests that wait for it.
		"syncFrequency": "5s",
		"configMapAndSecretChangeDetectionStrategy": "Watch",
		"nodeStatusUpdateFrequency":                 "5s",
		"shutdownGracePeriod":                       "0s",
		"registerNode":                              true,
	}
	if c.Kubernetes != oldest {
		config["failCgroupV1"] = false
	}
	return config
}

func proxyConfig(c *state.Cluster, kubeconfig string) map[string]any {
	config := map[string]any{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"mode":               "nftables",
		"clusterCIDR":        c.PodCIDR,
		"hostnameOverride":   c.NodeName(0),
		"bindAddress":        c.Address,
		"healthzBindAddress": fmt.Sprintf("%s:%d", c.Address, proxyHealthPort),
		"metricsBindAddress": "127.0.0.1:10249",
		"clientConnection":   map[string]any{"kubeconfig": kubeconfig},
		// The host's limits are the host's.
		"conntrack": map[string]any{"maxPerCore": 0},
		"nftables":  map[string]any{"syncPeriod": "30s", "minSyncPeriod": "100ms"},
	}
	if c.Kubernetes == oldest {
		config["featureGates"] = map[string]any{"NFTablesProxyMode": true}
	}
	return config
}

func writeJSON(path string, content any) error {
	encoded, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.WriteFile(path, encoded, 0o600); err != nil {
		return fmt.Errorf("writing a configuration of the node: %w", err)
	}
	return nil
}
