// Package controlplane knows the command lines of etcd, the API server, the controllers and the scheduler. It starts
// nothing itself. Start reading at Components.
package controlplane

import (
	"fmt"
	"net"
	"strconv"

	"github.com/configstamp/configstamp/e2e/cluster/credentials"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

// Options are what a user may add.
type Options struct {
	// APIServerArgs and ControllerManagerArgs are key=value, and come last, so that they win.
	APIServerArgs, ControllerManagerArgs []string
}

// Files are the credentials that the components are started with.
type Files struct {
	Authority         string
	Server            credentials.Pair
	EtcdClient        credentials.Pair
	KubeletClient     credentials.Pair
	ServiceAccountKey string
	ControllersConfig string
	SchedulerConfig   string
}

// Component is one program to start, and when it is ready.
type Component struct {
	Name   string
	Args   []string
	Health string
}

// Components are the control plane's, in the order they depend on each other.
func Components(c *state.Cluster, f Files, o Options) []Component {
	return []Component{etcd(c, f), apiServer(c, f, o), controllerManager(c, f, o), scheduler(c, f)}
}

func etcd(c *state.Cluster, f Files) Component {
	client, peer := url(c.Address, c.Ports.Etcd), url(c.Address, c.Ports.EtcdPeer)
	return Component{
		Name:   "etcd",
		Health: client + "/health",
		Args: []string{
			"--name=" + c.Name,
			"--data-dir=" + c.File("etcd"),
			// A cluster for tests is thrown away, never recovered.
			"--unsafe-no-fsync",
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=" + c.Name + "=" + peer,
			"--cert-file=" + f.Server.Certificate, "--key-file=" + f.Server.Key,
			"--client-cert-auth", "--trusted-ca-file=" + f.Authority,
			"--peer-cert-file=" + f.Server.Certificate, "--peer-key-file=" + f.Server.Key,
			"--peer-client-cert-auth", "--peer-trusted-ca-file=" + f.Authority,
			"--log-level=warn",
		},
	}
}

func apiServer(c *state.Cluster, f Files, o Options) Component {
	args := []string{
		"--bind-address=" + c.Address,
		"--secure-port=" + strconv.Itoa(c.Ports.APIServer),
		"--advertise-address=" + c.Address,
		"--service-cluster-ip-range=" + c.ServiceCIDR,
		"--etcd-servers=" + url(c.Address, c.Ports.Etcd),
		"--etcd-cafile=" + f.Authority, "--etcd-certfile=" + f.EtcdClient.Certificate, "--etcd-keyfile=" + f.EtcdClient.Key,
		"--client-ca-file=" + f.Authority,
		"--tls-cert-file=" + f.Server.Certificate, "--tls-private-key-file=" + f.Server.Key,
		"--kubelet-client-certificate=" + f.KubeletClient.Certificate, "--kubelet-client-key=" + f.KubeletClient.Key,
		"--kubelet-certificate-authority=" + f.Authority, "--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + f.ServiceAccountKey, "--service-account-signing-key-file=" + f.ServiceAccountKey,
		"--authorization-mode=Node,RBAC",
		// The default ones, webhooks and ValidatingAdmissionPolicy among them, are on too.
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--profiling=false",
	}
	if c.Node != state.NodeKubelet {
		// Its address is the loopback's, which no Endpoints may hold.
		args = append(args, "--endpoint-reconciler-type=none")
	}
	return Component{
		Name:   "kube-apiserver",
		Args:   append(args, dashed(o.APIServerArgs)...),
		Health: url(c.Address, c.Ports.APIServer) + "/readyz",
	}
}

func controllerManager(c *state.Cluster, f Files, o Options) Component {
	args := []string{
		"--kubeconfig=" + f.ControllersConfig,
		"--authentication-kubeconfig=" + f.ControllersConfig, "--authorization-kubeconfig=" + f.ControllersConfig,
		"--bind-address=" + c.Address,
		"--secure-port=" + strconv.Itoa(c.Ports.ControllerManager),
		"--tls-cert-file=" + f.Server.Certificate, "--tls-private-key-file=" + f.Server.Key,
		"--service-account-private-key-file=" + f.ServiceAccountKey,
		"--root-ca-file=" + f.Authority,
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		// The defaults, 20 and 30, are what a test of many workloads would measure otherwise.
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--profiling=false",
	}
	return Component{
		Name:   "kube-controller-manager",
		Args:   append(args, dashed(o.ControllerManagerArgs)...),
		Health: url(c.Address, c.Ports.ControllerManager) + "/healthz",
	}
}

func scheduler(c *state.Cluster, f Files) Component {
	return Component{
		Name:   "kube-scheduler",
		Health: url(c.Address, c.Ports.Scheduler) + "/healthz",
		Args: []string{
			"--kubeconfig=" + f.SchedulerConfig,
			"--authentication-kubeconfig=" + f.SchedulerConfig, "--authorization-kubeconfig=" + f.SchedulerConfig,
			"--bind-address=" + c.Address,
			"--secure-port=" + strconv.Itoa(c.Ports.Scheduler),
			"--tls-cert-file=" + f.Server.Certificate, "--tls-private-key-file=" + f.Server.Key,
			"--leader-elect=false",
			"--kube-api-qps=200", "--kube-api-burst=400",
			"--profiling=false",
		},
	}
}

func url(address string, port int) string {
	return fmt.Sprintf("https://%s", net.JoinHostPort(address, strconv.Itoa(port)))
}

// dashed turns key=value into --key=value.
func dashed(args []string) []string {
	out := make([]string, 0, len(args))
	for _, arg := range args {
		out = append(out, "--"+arg)
	}
	return out
}
