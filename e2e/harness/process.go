package harness

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/proxy"
)

// Process is one replica of the webhook or of the controller. It can be started
// again after it has ended; its log goes on in the same file.
type Process struct {
	// Name is webhook-0, controller-1 and so on.
	Name string
	// Proxy stands between the process and the API server.
	Proxy *proxy.Proxy

	binary  string
	logFile string
	serves  string // what it logs when it serves what the API server calls
	started func(address string)
	ended   func(*Process)

	mu       sync.Mutex
	command  *exec.Cmd
	done     chan struct{}
	exit     error
	address  string // where the API server calls it
	metrics  string
	problems []string
}

// Start starts the process with args, without waiting for it to be ready.
func (p *Process) Start(args []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return fmt.Errorf("starting %s: it is running", p.Name)
	}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	command := exec.Command(p.binary, args...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "GORACE=exitcode=66")
	command.SysProcAttr = dieWithUs()
	if err := command.Start(); err != nil {
		return errors.Join(fmt.Errorf("starting %s: %w", p.Name, err), log.Close())
	}
	done := make(chan struct{})
	p.command, p.done, p.exit, p.address, p.metrics = command, done, nil, "", ""
	go func() {
		err := command.Wait()
		_ = log.Close()
		p.mu.Lock()
		p.exit = err
		p.mu.Unlock()
		if p.ended != nil {
			p.ended(p)
		}
		close(done)
	}()
	go p.findAddresses(begin, done)
	return nil
}

// running wants the lock.
func (p *Process) running() bool {
	if p.done == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Running reports whether the process is there.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

// Address is where the process is called, "" while it has not said so: for who calls it
// without the API server.
func (p *Process) Address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

var addressLine = regexp.MustCompile(`"msg":"(Serving [^"]+)","address":"([^"]+)"`)

// findAddresses reads from the log where the process listens.
func (p *Process) findAddresses(begin int64, done chan struct{}) {
	for {
		text, err := readFrom(p.logFile, begin)
		if err == nil {
			var called, metrics string
			for _, match := range addressLine.FindAllStringSubmatch(text, -1) {
				switch match[1] {
				case p.serves:
					called = match[2]
				case "Serving metrics and probes":
					metrics = match[2]
				}
			}
			if metrics != "" && called != "" {
				if p.started != nil {
					p.started(called) // before anybody waits for it no longer
				}
				p.mu.Lock()
				p.address, p.metrics = called, metrics
				p.mu.Unlock()
				return
			}
		}
		select {
		case <-done:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func readFrom(file string, offset int64) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return "", err
	}
	text, err := io.ReadAll(f)
	return string(text), err
}

// WaitReady waits until /readyz says so.
func (p *Process) WaitReady(ctx context.Context) error {
	return p.waitReady(ctx, time.Minute)
}

// WaitListening waits until the process serves probes and what the API server calls:
// it has its certificate, but need not be ready.
func (p *Process) WaitListening(ctx context.Context) error {
	last := errors.New("it has not said where")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		p.mu.Lock()
		address, metrics := p.address, p.metrics
		p.mu.Unlock()
		if metrics == "" {
			continue
		}
		connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) // whether it is the right one is the API server's matter
		if err == nil {
			return connection.Close()
		}
		last = err
	}
	return fmt.Errorf("%s does not listen: %w\n%s", p.Name, last, p.LogTail(20))
}

// Use has the process run another binary from its next start to the end of the
// test.
func (p *Process) Use(t testing.TB, binary string) {
	usual := p.binary
	p.binary = binary
	t.Cleanup(func() {
		p.binary = usual
		Must(t, p.Stop()) // it is started anew with the usual one
	})
}

func (p *Process) waitReady(ctx context.Context, bound time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	last := errors.New("it does not listen yet")
	for {
		if _, err := p.get(ctx, "/readyz"); err == nil {
			return nil
		} else if ctx.Err() == nil {
			last = err
		}
		if !p.Running() {
			return fmt.Errorf("%s has ended before it was ready:\n%s", p.Name, p.LogTail(20))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", p.Name, last, p.LogTail(20))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Healthy reports whether /healthz answers, as a kubelet asks it.
func (p *Process) Healthy(ctx context.Context) bool {
	_, err := p.get(ctx, "/healthz")
	return err == nil
}

func (p *Process) get(ctx context.Context, path string) (string, error) {
	p.mu.Lock()
	address := p.metrics
	p.mu.Unlock()
	if address == "" {
		return "", errors.New("it does not listen yet")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", path, response.Status, bytes.TrimSpace(body))
	}
	return string(body), err
}

// Stop asks the process to end and waits for it. Ending in any other way than
// by itself with code 0 is kept as a problem.
func (p *Process) Stop() error {
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	return p.wait(40*time.Second, true)
}

// Kill ends the process at once, as a node's death does.
func (p *Process) Kill() error {
	p.signal(syscall.SIGKILL)
	return p.wait(10*time.Second, false)
}

// Freeze stops the process in its tracks, as a paused virtual machine; Thaw
// lets it go on.
func (p *Process) Freeze() { p.signal(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (p *Process) Thaw() { p.signal(syscall.SIGCONT) }

func (p *Process) signal(signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		_ = p.command.Process.Signal(signal)
	}
}

func (p *Process) wait(bound time.Duration, clean bool) error {
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
	case <-time.After(bound):
		p.signal(syscall.SIGKILL)
		<-done
		p.problem(fmt.Sprintf("did not end within %s of being asked", bound))
	}
	p.mu.Lock()
	exit := p.exit
	p.mu.Unlock()
	if clean && exit != nil {
		p.problem("ended with " + exit.Error() + ":\n" + p.LogTail(10))
		return fmt.Errorf("%s: %w", p.Name, exit)
	}
	return nil
}

func (p *Process) problem(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, p.Name+" "+text)
}

// Log is all that the process has said, over all its lives.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		return ""
	}
	return string(text)
}

// LogTail is the last lines of the log.
func (p *Process) LogTail(lines int) string {
	all := strings.Split(strings.TrimRight(p.Log(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

var alarms = regexp.MustCompile(`(?m)^.*(WARNING: DATA RACE|^panic: |^fatal error: |Admission panicked|Observed a panic).*$`)

// Problems lists what went wrong with the process itself: races, panics, exits.
func (p *Process) Problems() []string {
	text := p.Log()
	p.mu.Lock()
	defer p.mu.Unlock()
	found := append([]string(nil), p.problems...)
	for _, place := range alarms.FindAllStringIndex(text, -1) {
		found = append(found, p.Name+": "+text[place[0]:min(len(text), place[1]+3000)])
	}
	return found
}

// Metrics are the values of /metrics, as ParseMetrics reads them.
func (p *Process) Metrics() (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	text, err := p.get(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", p.Name, err)
	}
	return ParseMetrics(text), nil
}

// MetricsText is /metrics as it is.
func (p *Process) MetricsText() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	text, err := p.get(ctx, "/metrics")
	if err != nil {
		return ""
	}
	return text
}

func newProcess(name, serves, binary, dir string, api *proxy.Proxy) *Process {
	return &Process{Name: name, Proxy: api, serves: serves, binary: binary, logFile: filepath.Join(dir, name+".log")}
}
