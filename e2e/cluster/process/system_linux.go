package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// identity is the start time of a live process, in clock ticks since boot.
func identity(pid int) (string, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", fmt.Errorf("looking at process %d: %w", pid, err)
	}
	// The name, in parentheses, may hold anything, spaces and parentheses too: fields are counted from its end.
	end := bytes.LastIndexByte(content, ')')
	fields := strings.Fields(string(content[end+1:]))
	const state, start = 0, 19
	if end < 0 || len(fields) <= start {
		return "", fmt.Errorf("looking at process %d: its stat cannot be read", pid)
	}
	if fields[state] == "Z" || fields[state] == "X" {
		return "", fmt.Errorf("process %d %w", pid, errEnded)
	}
	return fields[start], nil
}

func memory(pid int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(content))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// KillMarked ends every process that carries a cluster's mark, but this one: what was started a moment before its
// starter died unrecorded, and containerd's shims.
func KillMarked(mark string) error {
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return fmt.Errorf("looking for processes: %w", err)
	}
	wanted := []byte(Mark + "=" + mark)
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		content, readErr := os.ReadFile(path)
		if readErr != nil || pid == os.Getpid() || pid <= 1 {
			continue // gone, or somebody else's
		}
		for variable := range bytes.SplitSeq(content, []byte{0}) {
			if !bytes.Equal(variable, wanted) {
				continue
			}
			if killErr := syscall.Kill(pid, syscall.SIGKILL); killErr != nil && !errors.Is(killErr, syscall.ESRCH) {
				err = errors.Join(err, fmt.Errorf("ending process %d: %w", pid, killErr))
			}
		}
	}
	return err
}
