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
	return slices.ContainsFunc(node.Status.Conditions, func(c podCondition) bool { return c.Type == "Ready" && c.Status == "True" }), nil
}
