package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Components are the processes of the cluster, by name: etcd, kube-apiserver, …
func (l *Lab) Components() (map[string]Cost, error) {
	files, err := filepath.Glob(filepath.Join(l.Cluster.State, "processes", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("looking for the cluster's processes: %w", err)
	}
	components := map[string]Cost{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading what is known of a process: %w", err)
		}
		var record struct {
			Component string
			PID       int
		}
		if err := json.Unmarshal(text, &record); err != nil {
			return nil, fmt.Errorf("reading what is known of a process, %s: %w", file, err)
		}
		components[record.Component] = Cost{Name: record.Component, PID: record.PID}
	}
	return components, nil
}
