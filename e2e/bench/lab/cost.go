package lab

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Cost tells what a process that runs has taken so far.
type Cost struct {
	Name string
	PID  int
}

// PeakMiB is the most memory that the process ever held (VmHWM), in MiB.
func (c Cost) PeakMiB() (float64, error) { return c.memory("VmHWM") }

// MiB is the memory that the process holds now (VmRSS), in MiB.
func (c Cost) MiB() (float64, error) { return c.memory("VmRSS") }

func (c Cost) memory(line string) (float64, error) {
	text, err := os.ReadFile(c.proc("status"))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of %s: %w", c.Name, err)
	}
	kilobytes, err := statusKB(string(text), line)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of %s: %w", c.Name, err)
	}
	return kilobytes / 1024, nil
}

// CPU is the time that the process has spent on all cores, in seconds.
func (c Cost) CPU() (float64, error) {
	text, err := os.ReadFile(c.proc("stat"))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of %s: %w", c.Name, err)
	}
	seconds, err := statSeconds(string(text))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of %s: %w", c.Name, err)
	}
	return seconds, nil
}

func (c Cost) proc(file string) string {
	return "/proc/" + strconv.Itoa(c.PID) + "/" + file
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
