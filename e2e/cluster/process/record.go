// Package process starts programs that outlive their starter, remembers them in files, and ends them again. It never
// signals a process that is not the very one it started: a record holds the moment of the process's start, so that a
// process id that was given to somebody else is left alone. It knows nothing of Kubernetes. Start reading at Start.
package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Record is what is remembered of one process.
type Record struct {
	Component string `json:"component"`
	PID       int    `json:"pid"`
	// Identity is when the process started, as the system writes it.
	Identity string    `json:"identity"`
	Started  time.Time `json:"started"`
	// Health is a URL that answers 200 when the component is ready; empty where being alive is all that can be asked.
	Health  string   `json:"health,omitempty"`
	Log     string   `json:"log"`
	Command []string `json:"command"`
}

// Alive says whether the very process that was started still runs.
func (r Record) Alive() bool {
	now, err := identity(r.PID)
	return err == nil && now == r.Identity
}

// Memory is what the process holds in RAM, in bytes; 0 when that cannot be told.
func (r Record) Memory() int64 {
	if !r.Alive() {
		return 0
	}
	return memory(r.PID)
}

// Kill ends the process and its group, if it is still the one that was started.
func (r Record) Kill() error {
	if r.PID == os.Getpid() || !r.Alive() {
		return nil
	}
	// Every component leads a session of its own, and so a group by the same number.
	if err := syscall.Kill(-r.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending %s (process %d): %w", r.Component, r.PID, err)
	}
	return nil
}

// save writes the record to directory.
func (r Record) save(directory string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("remembering process %s: %w", r.Component, err)
	}
	next := filepath.Join(directory, r.Component+".next")
	if err := os.WriteFile(next, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("remembering process %s: %w", r.Component, err)
	}
	if err := os.Rename(next, filepath.Join(directory, r.Component+".json")); err != nil {
		return fmt.Errorf("remembering process %s: %w", r.Component, err)
	}
	return nil
}

// Records are all processes remembered in directory, in the order they were started.
func Records(directory string) ([]Record, error) {
	paths, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("looking for processes in %s: %w", directory, err)
	}
	all := make([]Record, 0, len(paths))
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a process record: %w", err)
		}
		var r Record
		if err := json.Unmarshal(content, &r); err != nil {
			return nil, fmt.Errorf("reading the process record %s: %w", path, err)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Record) int {
		if c := a.Started.Compare(b.Started); c != 0 {
			return c
		}
		return strings.Compare(a.Component, b.Component)
	})
	return all, nil
}

// KillAll ends all processes remembered in directory but this one, and waits until they are gone.
func KillAll(directory string, within time.Duration) error {
	records, err := Records(directory)
	if err != nil {
		return err
	}
	slices.Reverse(records) // who depends on others goes first, and does not complain of them in its log
	for _, r := range records {
		err = errors.Join(err, r.Kill())
	}
	if err != nil {
		return err
	}
	deadline := time.Now().Add(within)
	for _, r := range records {
		for r.PID != os.Getpid() && r.Alive() {
			if time.Now().After(deadline) {
				return fmt.Errorf("%s (process %d) was killed but is not gone after %s", r.Component, r.PID, within)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}
