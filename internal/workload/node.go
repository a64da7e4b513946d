package workload

import (
	"fmt"
	"slices"
)

// NodeReady reads from JSON whether a node has a kubelet that answers: its
// condition Ready is True.
func NodeReady(raw []byte) (bool, error) {
	var node struct {
		Status struct {
			Conditions []podCondition `json:"conditions"`
		} `json:"status"`
	}
	if err := unmarshal(raw, &node); err != nil {
		return false, fmt.Errorf("reading a node: %w", plain(err))
	}
	return slices.Contains(node.Status.Conditions, podCondition{Type: "Ready", Status: "True"}), nil
}
