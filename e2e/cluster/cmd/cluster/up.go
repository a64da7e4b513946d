package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/e2e/cluster/lifecycle"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

func upCommand(c *common) *cobra.Command {
	var r lifecycle.Request
	var kind string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring a cluster up, and print how to reach it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := host()
			if err != nil {
				return err
			}
			r.Name = c.name
			if kind != "auto" {
				r.Node = state.Node(kind)
			}
			if r.Nodes < 1 {
				return fmt.Errorf("--nodes=%d: give at least 1, or --node=none", r.Nodes)
			}
			up, err := h.Up(cmd.Context(), r)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", quote(up.Kubeconfig()))
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kind, "node", "auto", "auto, kubelet (a real node; root on Linux), kwok (fake nodes), or none")
	flags.IntVar(&r.Nodes, "nodes", 1, "how many fake nodes, with --node=kwok")
	flags.StringArrayVar(&r.ControlPlane.APIServerArgs, "apiserver-arg", nil, "key=value, given to kube-apiserver as --key=value; repeatable")
	flags.StringArrayVar(&r.ControlPlane.ControllerManagerArgs, "controller-manager-arg", nil, "the same for kube-controller-manager")
	flags.DurationVar(&r.Lifetime, "lifetime", 0, "take the cluster down by itself after so long, such as 2h; 0 for never")
	return cmd
}

func downCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Take a cluster down, whole or half, and remove everything of it but the built programs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := hostWithoutSources()
			if err != nil {
				return err
			}
			found, err := h.Down(cmd.Context(), c.name)
			if err != nil {
				return err
			}
			if !found {
				h.Log.Step("there is no cluster %s", c.name)
				return nil
			}
			h.Log.Step("cluster %s is down", c.name)
			return nil
		},
	}
}

// watchdogCommand is what up --lifetime leaves running.
func watchdogCommand(c *common) *cobra.Command {
	var after time.Duration
	cmd := &cobra.Command{
		Use:    "watchdog",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := hostWithoutSources()
			if err != nil {
				return err
			}
			select {
			case <-cmd.Context().Done():
				return nil
			case <-time.After(after):
			}
			_, err = h.Down(cmd.Context(), c.name)
			return err
		},
	}
	cmd.Flags().DurationVar(&after, "after", 0, "when")
	return cmd
}

func certManagerCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "cert-manager",
		Short: "Run cert-manager's controllers (issuers SelfSigned and CA, certificates, CA injection) in a cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := host()
			if err != nil {
				return err
			}
			if _, err := c.cluster(); err != nil {
				return err
			}
			return h.CertManager(cmd.Context(), c.name)
		},
	}
}
