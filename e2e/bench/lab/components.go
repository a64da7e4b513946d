package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
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

// Throttle gives the API server no more than so many cores from now on, such as
// 0.5. It needs root on Linux with the cpu controller of cgroups, version 1.
// Close ends it.
func (l *Lab) Throttle(cores float64) error {
	const root, period = "/sys/fs/cgroup/cpu", 100_000 // microseconds
	components, err := l.Components()
	if err != nil {
		return err
	}
	server, found := components["kube-apiserver"]
	if !found {
		return errors.New("throttling the API server: the cluster has no record of it")
	}
	quota := filepath.Join(root, l.Cluster.Name)
	if err := os.Mkdir(quota, 0o755); err != nil {
		return fmt.Errorf("throttling the API server: %w; this needs root and cgroups of version 1", err)
	}
	l.quota = quota
	for _, line := range []struct{ file, value string }{
		{"cpu.cfs_period_us", strconv.Itoa(period)},
		{"cpu.cfs_quota_us", strconv.Itoa(int(cores * period))},
		{"cgroup.procs", strconv.Itoa(server.PID)},
	} {
		if err := os.WriteFile(filepath.Join(quota, line.file), []byte(line.value), 0o600); err != nil {
			return fmt.Errorf("throttling the API server: %w", err)
		}
	}
	return nil
}

// unthrottle removes what Throttle made, once the cluster is down.
func (l *Lab) unthrottle() error {
	if l.quota == "" {
		return nil
	}
	// A process that was killed is in its cgroup for a moment longer.
	return Until(context.Background(), "the API server's cgroup to go", 10*time.Second, func(context.Context) error { return os.Remove(l.quota) })
}
