package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/configstamp/configstamp/e2e/cluster/state"
)

// Unmount unmounts all that is mounted below the cluster's directories: volumes, root file systems, namespaces.
func Unmount(ctx context.Context, c *state.Cluster) error {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if errors.Is(err, os.ErrNotExist) {
		return nil // not Linux
	}
	if err != nil {
		return fmt.Errorf("reading what is mounted: %w", err)
	}
	var failed error
	for _, path := range mountsBelow(string(content), c.Dir(), c.RunDir()) {
		// Lazily: what a process that is just ending still holds open goes with it.
		out, err := exec.CommandContext(ctx, "umount", "--lazy", path).CombinedOutput()
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("unmounting %s: %w: %s", path, err, strings.TrimSpace(string(out))))
		}
	}
	return failed
}

// mountsBelow are the mount points below any of dirs, the newest first.
func mountsBelow(mountinfo string, dirs ...string) []string {
	var found []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		const point = 4
		if len(fields) <= point {
			continue
		}
		path := unescape(fields[point])
		for _, dir := range dirs {
			if strings.HasPrefix(path, dir+"/") {
				found = append(found, path)
			}
		}
	}
	slices.Reverse(found)
	return found
}

// unescape undoes the kernel's way of writing white space in paths.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// RemoveLogLinks removes the links to logs that a kubelet leaves outside of its own directory.
func RemoveLogLinks(c *state.Cluster) error {
	links, err := filepath.Glob(filepath.Join(logLinks, "*.log"))
	if err != nil {
		return fmt.Errorf("looking for links to logs: %w", err)
	}
	var failed error
	for _, link := range links {
		target, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(target, c.Dir()+"/") {
			failed = errors.Join(failed, os.Remove(link))
		}
	}
	return failed
}
