package builds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/configstamp/configstamp/e2e/cluster/lock"
	"github.com/configstamp/configstamp/e2e/cluster/progress"
)

const tellEvery = 30 * time.Second

// Cache builds programs, or finds them built.
type Cache struct {
	Dir string
	Log *progress.Log
}

// Path is where a program is, once it is built, and whether it is.
func (c Cache) Path(ctx context.Context, p Program) (path string, built bool, err error) {
	out, err := exec.CommandContext(ctx, "go", "-C", p.Module, "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return "", false, fmt.Errorf("asking for the version of Go (is go in PATH?): %w", explain(err))
	}
	k, err := key(p, string(out))
	if err != nil {
		return "", false, err
	}
	path = filepath.Join(c.Dir, "builds", p.Name+"-"+k, p.Name)
	_, err = os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, fmt.Errorf("looking for %s in the cache: %w", p.Name, err)
	}
	return path, err == nil, nil
}

// Build returns the path of the built program. It says so when it has to build.
func (c Cache) Build(ctx context.Context, p Program) (string, error) {
	path, built, err := c.Path(ctx, p)
	if err != nil || built {
		return path, err
	}
	release, err := lock.Take(ctx, filepath.Dir(path)+".lock", func() {
		c.Log.Step("%s is being built by another command; waiting for it", p.Name)
	})
	if err != nil {
		return "", fmt.Errorf("building %s: %w", p.Name, err)
	}
	defer release()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := c.compile(ctx, p, path); err != nil {
		return "", err
	}
	return path, nil
}

func (c Cache) compile(ctx context.Context, p Program, path string) error {
	start := time.Now()
	c.Log.Step("building %s, once: %s", p.Name, p.Usually)
	// The directory appears under its name when everything is in it. What a killed build left there is nobody's: the
	// lock is ours.
	unfinished := filepath.Dir(path) + ".unfinished"
	if err := errors.Join(os.RemoveAll(unfinished), os.Mkdir(unfinished, 0o755)); err != nil {
		return fmt.Errorf("making a place to build %s in: %w", p.Name, err)
	}
	defer os.RemoveAll(unfinished)

	args := append([]string{"-C", p.Module, "build"}, flags(p)...)
	args = append(args, "-o", filepath.Join(unfinished, p.Name), "./"+filepath.ToSlash(p.Package))
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	// go build ends its compilers when it is interrupted; killed, it would leave them.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second

	done := make(chan struct{})
	go c.tell(p, start, done)
	err := cmd.Run()
	close(done)
	if ctx.Err() != nil {
		return fmt.Errorf("building %s was interrupted: %w", p.Name, ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", p.Name, p.Module, err, strings.TrimSpace(output.String()))
	}
	for _, link := range p.Links {
		if err := os.Symlink(p.Name, filepath.Join(unfinished, link)); err != nil {
			return fmt.Errorf("linking %s to %s: %w", link, p.Name, err)
		}
	}
	if err := os.Rename(unfinished, filepath.Dir(path)); err != nil {
		return fmt.Errorf("putting %s into the cache: %w", p.Name, err)
	}
	c.Log.Step("built %s in %s: %s", p.Name, time.Since(start).Round(time.Second), path)
	return nil
}

func (c Cache) tell(p Program, start time.Time, done <-chan struct{}) {
	ticker := time.NewTicker(tellEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			c.Log.Step("still building %s, for %s (%s)", p.Name, time.Since(start).Round(time.Second), p.Usually)
		}
	}
}

// explain adds what a command printed to how it ended.
func explain(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}
