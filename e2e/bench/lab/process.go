package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Process is a program whose cost is looked at. Make it with Start.
type Process struct {
	Cost
	// Began is when it was started.
	Began time.Time

	command *exec.Cmd
	done    chan struct{}
	logFile string
}

// Start starts a program; what it says goes to logFile.
func Start(name, logFile, binary string, args, environment []string) (*Process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	command := exec.Command(binary, args...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), environment...)
	command.SysProcAttr = harness.DieWithUs()
	p := &Process{Cost: Cost{Name: name}, Began: time.Now(), command: command, done: make(chan struct{}), logFile: logFile}
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", name, err), log.Close())
	}
	p.PID = command.Process.Pid
	go func() {
		_ = command.Wait() // how it ended is in its log
		_ = log.Close()
		close(p.done)
	}()
	return p, nil
}

// Stop asks the process to end, and ends it when it does not.
func (p *Process) Stop() error {
	if !p.Running() {
		return fmt.Errorf("%s has ended by itself:\n%s", p.Name, p.LogTail(10))
	}
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may end at this moment
	select {
	case <-p.done:
		return nil
	case <-time.After(40 * time.Second):
		_ = p.command.Process.Kill()
		<-p.done
		return fmt.Errorf("%s did not end within 40s of being asked, and was killed", p.Name)
	}
}

// Running reports whether the process is there.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// LogTail is the last lines of the log.
func (p *Process) LogTail(lines int) string {
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
