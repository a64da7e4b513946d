package neighbours

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// neighbour is a directory of this one: the module of another project's programs.
type neighbour string

// program is one of them that runs.
type program struct {
	name string
	log  string // the file
	done chan struct{}
	stop func() // asks it to end, and waits
}

// start builds a program, once, and runs it as launch does.
func (n neighbour) start(t *testing.T, importPath string, environment []string, args ...string) *program {
	t.Helper()
	return launch(t, n.build(t, importPath), environment, args...)
}

// launch runs a program until it is stopped or the test ends. Its log is a file of the run's
// directory. A program that ends by itself is an error of the test.
func launch(t *testing.T, binary string, environment []string, args ...string) *program {
	t.Helper()
	p := &program{name: filepath.Base(binary), done: make(chan struct{})}
	for i := 0; ; i++ { // the log of one that is started again is another file
		p.log = filepath.Join(run.Dir, fmt.Sprintf("%s-%d.log", p.name, i))
		if _, err := os.Stat(p.log); err != nil {
			break
		}
	}
	log, err := os.Create(p.log)
	harness.Must(t, err)
	command := exec.Command(binary, args...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(append(os.Environ(), "KUBECONFIG="+run.Kubeconfig()), environment...)
	command.SysProcAttr = harness.DieWithUs()
	harness.Must(t, command.Start())
	stopping := make(chan struct{})
	go func() {
		err := command.Wait()
		_ = log.Close()
		select {
		case <-stopping:
		default:
			t.Errorf("%s has ended by itself: %v\n%s", p.name, err, p.tail())
		}
		close(p.done)
	}()
	p.stop = sync.OnceFunc(func() {
		close(stopping)
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(20 * time.Second):
			_ = command.Process.Kill()
			<-p.done
		}
	})
	t.Cleanup(p.stop)
	return p
}

// build returns the path of a program.
func (n neighbour) build(t *testing.T, importPath string) string {
	t.Helper()
	out, err := run.Driver(t.Context(), "build", "--module", n.module(t), importPath)
	harness.Must(t, err)
	return strings.TrimSpace(string(out))
}

func (n neighbour) module(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(string(n))
	harness.Must(t, err)
	return dir
}

// files is the directory of a module that the neighbour requires, in the version that is built.
func (n neighbour) files(t *testing.T, module string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "-C", n.module(t), "mod", "download", "-json", module)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("looking for %s: %v\n%s", module, err, out)
	}
	var found struct{ Dir string }
	harness.Must(t, json.NewDecoder(bytes.NewReader(out)).Decode(&found))
	return found.Dir
}

// install applies manifests, custom resources above all, and waits until what they define is served.
func install(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		kubectl(t, "apply", "--server-side", "--force-conflicts", "-f", file)
	}
	eventually(t, "what was defined is served", time.Minute, func() error {
		result, err := run.Kubectl("", "wait", "--for=condition=Established", "--timeout=30s", "customresourcedefinitions", "--all")
		if err == nil && result.Code != 0 {
			err = errors.New(result.Stderr) // kubectl gives up where there is no condition yet
		}
		return err
	})
}

// kubectl is the administrator's.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return kubectlInput(t, "", args...)
}

// kubectlInput is kubectl with a manifest on standard input (-f -).
func kubectlInput(t *testing.T, manifest string, args ...string) string {
	t.Helper()
	result, err := run.Kubectl(manifest, args...)
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("exit code %d", result.Code)
	}
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, result.Stdout, result.Stderr)
	}
	return result.Stdout
}

// wait waits until the program has logged a text, or says what it has logged instead.
func (p *program) wait(t *testing.T, text string) {
	t.Helper()
	eventually(t, p.name+" logs "+text, time.Minute, func() error {
		log, err := os.ReadFile(p.log)
		if err == nil && !strings.Contains(string(log), text) {
			err = errors.New("not yet")
		}
		return err
	}, p.tail)
}

func (p *program) tail() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-3000):])
}

// eventually waits for something that must happen.
func eventually(t *testing.T, what string, bound time.Duration, ok func() error, explain ...func() string) {
	t.Helper()
	end := time.Now().Add(bound)
	for {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			for _, more := range explain {
				err = fmt.Errorf("%w\n%s", err, more())
			}
			t.Fatalf("%s: not within %s: %v", what, bound, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// bounded is for what has no test's context, and cannot take long.
func bounded() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	context.AfterFunc(ctx, cancel)
	return ctx
}
