// Package process reads, from outside, what containers of this machine have read: the
// environment of their first processes, and the files that these see.
package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Process is the first one of a container that runs e2e/pins/app: its directory in /proc.
type Process string

// First are the first processes of all containers that run the app, by the container's ID.
// A process that is still runc's is none.
func First() map[string]Process {
	found := map[string]Process{}
	files, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range files {
		process := filepath.Dir(file)
		command, err := os.ReadFile(filepath.Join(process, "cmdline"))
		if err != nil || !isApp(string(command)) {
			continue
		}
		groups, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(string(groups), "\n")
		found[filepath.Base(first)] = Process(process)
	}
	return found
}

// isApp reports whether a command line is the app's.
func isApp(command string) bool {
	words := strings.Split(command, "\x00")
	return len(words) > 2 && slices.Contains([]string{"strict", "late", "unready", "lenient"}, words[1])
}

// Environment are the variables that the process began with.
func (p Process) Environment() (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(string(p), "environ"))
	if err == nil && len(text) == 0 {
		err = fmt.Errorf("process %s has ended", filepath.Base(string(p)))
	}
	if err != nil {
		return nil, err
	}
	environment := map[string]string{}
	for pair := range strings.SplitSeq(string(text), "\x00") {
		name, value, _ := strings.Cut(pair, "=")
		environment[name] = value
	}
	return environment, nil
}

// File is what a file holds that the process sees.
func (p Process) File(path ...string) (string, error) {
	text, err := os.ReadFile(filepath.Join(append([]string{string(p), "root"}, path...)...))
	return string(text), err
}

// Kill ends the process at once, and so its container.
func (p Process) Kill() error {
	id, err := strconv.Atoi(filepath.Base(string(p)))
	if err != nil {
		return err
	}
	return syscall.Kill(id, syscall.SIGKILL)
}
