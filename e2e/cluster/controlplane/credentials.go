package controlplane

import (
	"fmt"
	"net"

	"github.com/configstamp/configstamp/e2e/cluster/credentials"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

// MakeFiles makes the credentials of the control plane and the administrator's kubeconfig.
func MakeFiles(c *state.Cluster, a *credentials.Authority) (Files, error) {
	f := Files{Authority: a.CertificateFile()}
	services, _, err := net.ParseCIDR(c.ServiceCIDR)
	if err != nil {
		return f, fmt.Errorf("reading the range of Service addresses: %w", err)
	}
	first := services.To4()
	first[3]++ // the API server's own Service has the first address
	// No certificate may be named as the authority: OpenSSL would take it for one that signs itself.
	f.Server, err = a.Server("server", "kube-apiserver",
		[]string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
			c.NodeName(0),
		},
		[]net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(c.Address), first})
	if err != nil {
		return f, err
	}
	if f.ServiceAccountKey, err = a.ServiceAccountKey(); err != nil {
		return f, err
	}
	if f.EtcdClient, err = a.Client("etcd-client", "kube-apiserver"); err != nil {
		return f, err
	}
	if f.KubeletClient, err = a.Client("kubelet-client", "kube-apiserver-kubelet-client", "system:masters"); err != nil {
		return f, err
	}
	if f.ControllersConfig, err = userConfig(c, a, "system:kube-controller-manager"); err != nil {
		return f, err
	}
	if f.SchedulerConfig, err = userConfig(c, a, "system:kube-scheduler"); err != nil {
		return f, err
	}
	admin, err := a.Client("admin", "configstamp-admin", "system:masters")
	if err != nil {
		return f, err
	}
	return f, a.Kubeconfig(c.Kubeconfig(), "configstamp-"+c.Name, c.Server, admin)
}

// userConfig makes the kubeconfig of one of Kubernetes' own users, which RBAC knows from the start.
func userConfig(c *state.Cluster, a *credentials.Authority, user string, groups ...string) (string, error) {
	file := "user-" + user[len("system:"):]
	pair, err := a.Client(file, user, groups...)
	if err != nil {
		return "", err
	}
	path := c.File("credentials", file+".kubeconfig")
	return path, a.Kubeconfig(path, user, c.Server, pair)
}
