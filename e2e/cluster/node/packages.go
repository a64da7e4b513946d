// Package node makes one real node of this machine: containerd and runc, a pod network, a kubelet and kube-proxy, all
// inside the cluster's network namespace and below its cgroup. It needs root on Linux. It knows files and command lines;
// package lifecycle starts what it describes. Start reading at Components.
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

	"github.com/configstamp/configstamp/e2e/cluster/progress"
)

// networkPlugins are what a pod's network is made of.
func networkPlugins() []string { return []string{"ptp", "host-local", "loopback"} }

// pluginDirs are where distributions put these.
func pluginDirs() []string { return []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"} }

// packages are Debian's, by a program each brings.
func packages() map[string]string {
	return map[string]string{
		"containerd": "containerd", "ctr": "containerd", "runc": "runc", "nft": "nftables", "conntrack": "conntrack",
		"ip": "iproute2", "nsenter": "util-linux", "mount": "mount", "umount": "mount",
	}
}

// RequirePackages finds what a node needs, and installs what is missing where that is possible.
func RequirePackages(ctx context.Context, log *progress.Log) error {
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("a real node needs these packages (as Debian calls them), and there is no apt-get to install them: %s; install them, or use --node=kwok", list)
	}
	log.Step("installing %s by apt-get", list)
	for try := 1; ; try++ {
		err := install(ctx, missing)
		if err == nil {
			break
		}
		if try == tries || ctx.Err() != nil {
			return fmt.Errorf("installing %s: %w\ninstall them by hand, or use --node=kwok", list, err)
		}
		log.Step("try %d of %d: %v", try, tries, err)
	}
	if missing := missingPackages(); len(missing) > 0 {
		return fmt.Errorf("apt-get installed %s, but the programs of %s are not in PATH", list, strings.Join(missing, " "))
	}
	return nil
}

// tries is how often a mirror is asked that does not answer.
const tries = 3

func install(ctx context.Context, packages []string) error {
	for _, args := range [][]string{
		{"update", "-qq"},
		append([]string{"install", "-qq", "-y", "--no-install-recommends"}, packages...),
	} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

func missingPackages() []string {
	var missing []string
	for program, name := range packages() {
		if _, err := exec.LookPath(program); err != nil && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if _, err := pluginDir(); err != nil {
		missing = append(missing, "containernetworking-plugins")
	}
	slices.Sort(missing)
	return missing
}

// pluginDir is the directory that holds all plugins of the pod network.
func pluginDir() (string, error) {
	for _, dir := range pluginDirs() {
		complete := true
		for _, plugin := range networkPlugins() {
			if _, err := os.Stat(filepath.Join(dir, plugin)); err != nil {
				complete = false
			}
		}
		if complete {
			return dir, nil
		}
	}
	return "", errors.New("no directory has the network plugins " + strings.Join(networkPlugins(), ", "))
}
