package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"

	"github.com/configstamp/configstamp/e2e/cluster/api"
	"github.com/configstamp/configstamp/e2e/cluster/controlplane"
)

// fakeNodes starts kwok and makes nodes for it to speak for.
func (s *starter) fakeNodes(ctx context.Context, count int) error {
	c := s.cluster
	stages, err := exec.CommandContext(ctx, s.binaries.Kwok, "stages").Output()
	if err != nil {
		return fmt.Errorf("asking kwok for its stages: %w", err)
	}
	config := c.File("stages.yaml")
	if err := os.WriteFile(config, stages, 0o600); err != nil {
		return fmt.Errorf("writing kwok's stages: %w", err)
	}
	err = s.run(controlplane.Component{Name: "kwok", Args: []string{
		"--kubeconfig=" + c.Kubeconfig(),
		"--config=" + config,
		"--manage-all-nodes=true",
		"--cidr=10.244.0.0/16",
		"--node-ip=" + c.Address,
		// Without leases the stages send no heartbeats, and nodes are lost after 50 s.
		"--node-lease-duration-seconds=40",
	}}, s.binaries.Kwok)
	if err != nil {
		return err
	}
	c.Nodes = count
	for n := range count {
		if err := s.createNode(ctx, c.NodeName(n)); err != nil {
			return err
		}
	}
	return s.nodesReady(ctx, count)
}

func (s *starter) createNode(ctx context.Context, name string) error {
	room := map[string]string{"cpu": "64", "memory": "512Gi", "pods": "2000"}
	err := s.client.Create(ctx, "/api/v1/nodes", map[string]any{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata": map[string]any{
			"name":        name,
			"annotations": map[string]string{"kwok.x-k8s.io/node": "fake"},
			"labels":      map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"},
		},
		"status": map[string]any{"capacity": room, "allocatable": room},
	})
	var status *api.StatusError
	if errors.As(err, &status) && status.Code == http.StatusConflict {
		return nil
	}
	if err != nil {
		return fmt.Errorf("making the fake node %s: %w", name, err)
	}
	return nil
}
