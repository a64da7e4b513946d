package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/e2e/cluster/state"
)

func kubeconfigCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of a cluster's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := c.cluster()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), cluster.Kubeconfig())
			return err
		},
	}
}

// environment is what a program needs to work with a cluster.
type environment struct {
	Name       string     `json:"name"`
	Node       state.Node `json:"node"`
	Kubeconfig string     `json:"kubeconfig"`
	Server     string     `json:"server"`
	// Address is where the cluster's servers listen.
	Address string `json:"address"`
	// HostAddress is where the API server reaches a webhook that runs on the host.
	HostAddress string `json:"hostAddress"`
	// Programs is a directory with etcd, kube-apiserver, kube-controller-manager, kubectl and the others.
	Programs string `json:"programs"`
	State    string `json:"state"`
	Logs     string `json:"logs"`
}

func envCommand(c *common) *cobra.Command {
	var asJSON, programsOnly bool
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print shell lines that make kubectl and tests use a cluster: eval \"$(cluster env)\"",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if programsOnly {
				return printPrograms(cmd)
			}
			cluster, err := c.cluster()
			if err != nil {
				return err
			}
			e := environment{
				Name: cluster.Name, Node: cluster.Node, Kubeconfig: cluster.Kubeconfig(), Server: cluster.Server,
				Address: cluster.Address, HostAddress: cluster.HostAddress, Programs: cluster.Programs, State: cluster.Dir(), Logs: cluster.Logs(),
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(e)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), e.shell())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON instead")
	cmd.Flags().BoolVar(&programsOnly, "programs", false, "print only the directory of programs (KUBEBUILDER_ASSETS), built if need be; no cluster is needed")
	return cmd
}

// printPrograms builds Kubernetes if need be, for tests that start its programs themselves.
func printPrograms(cmd *cobra.Command) error {
	h, err := host()
	if err != nil {
		return err
	}
	programs, err := h.Programs(cmd.Context())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), programs)
	return err
}

func (e environment) shell() string {
	var out strings.Builder
	for _, line := range [][2]string{
		{"KUBECONFIG", e.Kubeconfig},
		{"KUBEBUILDER_ASSETS", e.Programs},
		{"CONFIGSTAMP_CLUSTER_NAME", e.Name},
		{"CONFIGSTAMP_CLUSTER_NODE", string(e.Node)},
		{"CONFIGSTAMP_CLUSTER_HOST", e.HostAddress},
		{"CONFIGSTAMP_CLUSTER_LOGS", e.Logs},
	} {
		fmt.Fprintf(&out, "export %s=%s\n", line[0], quote(line[1]))
	}
	if e.Node == state.NodeKubelet {
		// The host reaches such a cluster by an address that a proxy in the environment would be asked for.
		for _, name := range []string{"NO_PROXY", "no_proxy"} {
			fmt.Fprintf(&out, "export %[1]s=%[2]s\"${%[1]s:+,$%[1]s}\"\n", name, e.Address)
		}
	}
	fmt.Fprintf(&out, "export PATH=%s:\"$PATH\"\n", quote(e.Programs))
	return out.String()
}

// quote makes one word of a shell's line.
func quote(value string) string {
	special := func(r rune) bool {
		return r < '0' && r != '-' && r != '.' && r != '/' && r != '+' || r > 'z' || strings.ContainsRune(";<>?[\\]^`", r)
	}
	if value != "" && strings.IndexFunc(value, special) < 0 {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
