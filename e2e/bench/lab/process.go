package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Process is a program whose cost is looked at. Make it with Start.
type Process struct {
	Name string
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
	p := &Process{Name: name, Began: time.Now(), command: command, done: make(chan struct{}), logFile: logFile}
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", name, err), log.Close())
	}
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

// Logged reports whether the log holds text.
func (p *Process) Logged(text string) bool {
	all, err := os.ReadFile(p.logFile)
	return err == nil && strings.Contains(string(all), text)
}

// PeakMiB is the most memory that the process ever held (VmHWM), in MiB.
func (p *Process) PeakMiB() (float64, error) {
	text, err := os.ReadFile(p.proc("status"))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of %s: %w", p.Name, err)
	}
	kilobytes, err := statusKB(string(text), "VmHWM")
	if err != nil {
		return 0, fmt.Errorf("reading the memory of %s: %w", p.Name, err)
	}
	return kilobytes / 1024, nil
}

// CPU is the time that the process has spent on all cores, in seconds.
func (p *Process) CPU() (float64, error) {
	text, err := os.ReadFile(p.proc("stat"))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of %s: %w", p.Name, err)
	}
	seconds, err := statSeconds(string(text))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of %s: %w", p.Name, err)
	}
	return seconds, nil
}

func (p *Process) proc(file string) string {
	return "/proc/" + strconv.Itoa(p.command.Process.Pid) + "/" + file
}

// statusKB reads "VmHWM:     1234 kB" of /proc/PID/status.
func statusKB(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, name+":")
		if !found {
			continue
		}
		value, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if unit != "kB" {
			return 0, fmt.Errorf("%s is not in kB: %q", name, strings.TrimSpace(line))
		}
		return strconv.ParseFloat(value, 64)
	}
	return 0, fmt.Errorf("there is no %s", name)
}

// ticks are those of a second in /proc/PID/stat; it is 100 on every Linux.
const ticks = 100

// statSeconds reads user and system time of /proc/PID/stat, whose second field
// is a name in brackets that may hold anything.
func statSeconds(text string) (float64, error) {
	end := strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[end+1:])
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("it is not what /proc/PID/stat looks like: %q", text)
	}
	user, userErr := strconv.ParseFloat(fields[11], 64)
	system, systemErr := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticks, errors.Join(userErr, systemErr)
}
