package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Mark is the environment variable by which stray processes of a cluster are found, children of children too.
const Mark = "CONFIGSTAMP_CLUSTER_STATE"

// errEnded is about a process that has ended, be it that nobody has waited for it yet.
var errEnded = errors.New("has ended")

// Program is what to start.
type Program struct {
	Component string
	Path      string
	Args      []string
	// Namespace is the file of a network namespace to start in; empty for the host's.
	Namespace string
	Health    string
	// Mark tells this cluster's processes from others'.
	Mark string
	// Logs and Records are directories.
	Logs, Records string
}

// Running is a process whose starter still runs too, and so can tell how it ended.
type Running struct {
	Record
	ended chan struct{}
	err   error
}

// Start starts a program in a session of its own, with its output in a log file, and remembers it.
func Start(p Program) (*Running, error) {
	logPath := filepath.Join(p.Logs, p.Component+".log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", p.Component, err)
	}
	defer log.Close()

	argv := append([]string{p.Path}, p.Args...)
	if p.Namespace != "" {
		// Not "ip netns exec": that mounts /sys anew and hides the cgroups. nsenter keeps the process id.
		argv = append([]string{"nsenter", "--net=" + p.Namespace, "--"}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.Env = append(withoutProxies(os.Environ()), Mark+"="+p.Mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s as %s: %w", p.Component, strings.Join(argv, " "), err)
	}

	r := &Running{ended: make(chan struct{})}
	id, err := identity(cmd.Process.Pid)
	if err == nil || errors.Is(err, errEnded) { // Ended tells of the latter what it said last
		r.Record = Record{
			Component: p.Component, PID: cmd.Process.Pid, Identity: id, Started: started,
			Health: p.Health, Log: logPath, Command: argv,
		}
		err = r.save(p.Records)
	}
	if err != nil {
		_ = cmd.Process.Kill() // it is our own child, not waited for yet, and nobody would find it again
		_ = cmd.Wait()
		return nil, fmt.Errorf("remembering %s: %w", p.Component, err)
	}
	go func() {
		r.err = cmd.Wait()
		close(r.ended)
	}()
	return r, nil
}

// withoutProxies is an environment in which programs of one machine talk to each other directly. An API server calls
// webhooks through a proxy if its environment names one.
func withoutProxies(environ []string) []string {
	return slices.DeleteFunc(environ, func(variable string) bool {
		name, _, _ := strings.Cut(strings.ToLower(variable), "=")
		return name == "http_proxy" || name == "https_proxy" || name == "all_proxy"
	})
}

// Ended is nil while the process runs, and then an error that says how it ended and what it said last.
func (r *Running) Ended() error {
	select {
	case <-r.ended:
		how := "with exit status 0"
		if r.err != nil {
			how = "with " + r.err.Error()
		}
		return fmt.Errorf("%s ended %s; the end of its log:\n%s", r.Component, how, Tail(r.Log, 8))
	default:
		return nil
	}
}

// Tail is the last lines of a log file, indented.
func Tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	all := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	var out strings.Builder
	for _, line := range all {
		const widest = 600
		if len(line) > widest {
			line = append(line[:widest:widest], "…"...)
		}
		fmt.Fprintf(&out, "  %s\n", line)
	}
	return strings.TrimRight(out.String(), "\n")
}
