package controlplane

import (
	"slices"
	"testing"

	"github.com/configstamp/configstamp/e2e/cluster/state"
)

func TestEachAPIServerHasAPortOfItsOwnOverOneEtcd(t *testing.T) {
	c := state.New(t.TempDir(), "try")
	c.Address, c.Node = "127.0.0.1", state.NodeNone
	c.Ports = state.Ports{Etcd: 1, EtcdPeer: 2, APIServer: 3, ControllerManager: 4, Scheduler: 5, MoreAPIServers: []int{6, 7}}
	names, ports := []string{}, map[string]string{"kube-apiserver": "3", "kube-apiserver-2": "6", "kube-apiserver-3": "7"}
	for _, component := range Components(c, Files{}, Options{APIServerArgs: []string{"v=2"}}) {
		names = append(names, component.Name)
		port, is := ports[component.Name]
		if !is {
			continue
		}
		if component.Health != "https://127.0.0.1:"+port+"/readyz" {
			t.Errorf("%s is asked for its health at %s", component.Name, component.Health)
		}
		for _, want := range []string{"--secure-port=" + port, "--etcd-servers=https://127.0.0.1:1", "--v=2"} {
			if !slices.Contains(component.Args, want) {
				t.Errorf("%s is started with %q, want %s too", component.Name, component.Args, want)
			}
		}
		if component.Name != "kube-apiserver" && component.Program != "kube-apiserver" {
			t.Errorf("%s is started as %q", component.Name, component.Program)
		}
	}
	want := []string{"etcd", "kube-apiserver", "kube-apiserver-2", "kube-apiserver-3", "kube-controller-manager", "kube-scheduler"}
	if !slices.Equal(names, want) {
		t.Errorf("components are %v, want %v", names, want)
	}
}
