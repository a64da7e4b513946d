package report

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine is where a run took place, and on what.
type Machine struct {
	Cores      int    `json:"cores"`
	CPU        string `json:"cpu"`
	MemoryMiB  int    `json:"memoryMiB"`
	Kernel     string `json:"kernel"`
	Load       string `json:"load"` // the load average before anything was started
	Go         string `json:"go"`
	Kubernetes string `json:"kubernetes"`
}

// ThisMachine looks at the machine. What cannot be read is left empty.
func ThisMachine() Machine {
	memory, _, _ := strings.Cut(field("/proc/meminfo", "MemTotal"), " ")
	kilobytes, _ := strconv.Atoi(memory) // 0 where there is no such file
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return Machine{
		Cores: runtime.NumCPU(), CPU: field("/proc/cpuinfo", "model name"), MemoryMiB: kilobytes / 1024,
		Kernel: strings.TrimSpace(runtime.GOOS + " " + string(release)), Load: Load(), Go: runtime.Version() + " " + runtime.GOARCH,
	}
}

// Load is the load average of the last 1, 5 and 15 minutes now.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

func field(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return fieldOf(string(text), name)
}

// fieldOf reads "name : value" of a file in /proc, the first of that name.
func fieldOf(text, name string) string {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		key, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (m Machine) lines() [][2]string {
	return [][2]string{
		{"machine", fmt.Sprintf("%d cores, %s, %d MiB, %s", m.Cores, m.CPU, m.MemoryMiB, m.Kernel)},
		{"load before the run", m.Load},
		{"Go", m.Go},
		{"Kubernetes", m.Kubernetes},
	}
}
