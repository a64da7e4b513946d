package harness

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// RestartCluster ends components of the cluster as a crash does and starts them
// again, with the arguments of the driver's command: --save, --restore, names.
func (r *Run) RestartCluster(ctx context.Context, args ...string) error {
	_, err := r.cluster.command(ctx, append([]string{"restart"}, args...)...)
	return err
}

// PeakMemory is the most that the process has held in RAM, in bytes.
func (p *Process) PeakMemory() (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return 0, fmt.Errorf("%s does not run", p.Name)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of %s: %w", p.Name, err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("reading the memory of %s: the system does not tell", p.Name)
}
