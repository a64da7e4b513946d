package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// hierarchies are the roots below which a cluster has a cgroup: one in version 2, one per controller in version 1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	var all []string
	for _, entry := range entries {
		if entry.IsDir() { // links, such as cpu to cpu,cpuacct, are the same twice
			all = append(all, filepath.Join(cgroupRoot, entry.Name()))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no cgroups are mounted in %s: a real node needs them; use --node=kwok", cgroupRoot)
	}
	return all, nil
}

// MakeCgroups makes the cgroup that holds the cluster's pods.
func MakeCgroups(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making a cgroup for the cluster's pods: %w", err)
		}
		// In version 1 a new cpuset is empty, and nothing can run in it.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			content, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				continue // not the hierarchy of cpusets
			}
			if err := os.WriteFile(filepath.Join(root, name, file), content, 0o600); err != nil {
				return fmt.Errorf("giving the cluster's cgroup all processors: %w", err)
			}
		}
	}
	return nil
}

// RemoveCgroups ends what still runs in the cluster's cgroup, and removes it.
func RemoveCgroups(name string, within time.Duration) error {
	roots, err := hierarchies()
	if err != nil {
		return nil //nolint:nilerr // without cgroups there is nothing to remove
	}
	deadline := time.Now().Add(within)
	for {
		var left error
		for _, root := range roots {
			left = errors.Join(left, removeCgroup(filepath.Join(root, name)))
		}
		if left == nil || time.Now().After(deadline) {
			return left
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func removeCgroup(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // what is gone meanwhile need not be removed
	})
	if err != nil {
		return fmt.Errorf("looking through the cgroup %s: %w", root, err)
	}
	slices.Reverse(dirs)
	var left error
	for _, dir := range dirs {
		content, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		for word := range strings.FieldsSeq(string(content)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 1 && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL) // whatever is left is seen by the removal below
			}
		}
		if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
			left = errors.Join(left, fmt.Errorf("removing the cgroup %s: %w", dir, err))
		}
	}
	return left
}
