package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clusterLifetime takes a cluster down whose test binary was killed.
const clusterLifetime = 100 * time.Minute

// cluster is an embedded Kubernetes, made by the driver in e2e/cluster.
type cluster struct {
	driver     string
	name       string
	borrowed   bool // it was there before, and stays
	Kubeconfig string
	Server     string
	Programs   string
	Logs       string
	State      string
	Node       string
	// HostAddress is where the API server reaches what runs beside it.
	HostAddress string
}

// root is the directory of the project's root module.
func root() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		// built with -trimpath: tests run in their package's directory
		dir, err := os.Getwd()
		for err == nil && dir != filepath.Dir(dir) {
			if _, missing := os.Stat(filepath.Join(dir, "deploy", "chart")); missing == nil {
				return dir, nil
			}
			dir = filepath.Dir(dir)
		}
		return "", errors.New("looking for the checkout: run the tests inside it")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file))), nil
}

// bringUp makes a cluster of its own, or borrows the one of EnvCluster.
func bringUp(ctx context.Context, driver string, wanted Wanted) (*cluster, error) {
	c := &cluster{driver: driver, name: os.Getenv(EnvCluster), borrowed: true}
	if c.name == "" {
		c.name, c.borrowed = "e2e"+strconv.Itoa(os.Getpid()), false
		if wanted.number > 0 {
			c.name += "-" + strconv.Itoa(wanted.number)
		}
		args := append([]string{"up", "--node", wanted.node(), "--lifetime", clusterLifetime.String()}, wanted.Up...)
		if _, err := c.command(ctx, args...); err != nil {
			return nil, errors.Join(err, c.takeDown())
		}
	}
	if err := c.learn(ctx); err != nil {
		return nil, errors.Join(err, c.takeDown())
	}
	if c.Node != wanted.node() {
		return nil, errors.Join(fmt.Errorf("cluster %s has --node=%s, and these tests want %s", c.name, c.Node, wanted.node()), c.takeDown())
	}
	return c, nil
}

// learn asks the driver how to reach the cluster.
func (c *cluster) learn(ctx context.Context) error {
	out, err := c.command(ctx, "env", "--json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, c); err != nil {
		return fmt.Errorf("reading how to reach cluster %s: %w", c.name, err)
	}
	return nil
}

func (c *cluster) takeDown() error {
	if c.borrowed || kept() {
		return nil
	}
	// Not the run's context: this is what is done when it has ended.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := c.command(ctx, "down")
	return err
}

// Driver runs a command of e2e/cluster on the run's cluster, and returns what it
// printed.
func (r *Run) Driver(ctx context.Context, args ...string) ([]byte, error) {
	return r.cluster.command(ctx, args...)
}

// HostAddress is where the API server reaches what runs beside it.
func (r *Run) HostAddress() string { return r.cluster.HostAddress }

// Kubeconfig is the administrator's, and Programs where kubectl is.
func (r *Run) Kubeconfig() string { return r.cluster.Kubeconfig }

// Programs is the directory of kubectl and the others.
func (r *Run) Programs() string { return r.cluster.Programs }

func (c *cluster) command(ctx context.Context, args ...string) ([]byte, error) {
	dir, err := root()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, c.driver, append(args, "--name", c.name)...)
	command.Dir = filepath.Join(dir, "e2e", "cluster")
	command.Stderr = os.Stderr // its progress
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("cluster %s %s: %w", c.name, args[0], err)
	}
	return out, nil
}

// build compiles a package of a module of the project. The binary of the last
// run is where the go command finds it again, so that an unchanged one is not
// linked anew, and is copied for this run.
func build(ctx context.Context, module, pkg, binary string, flags ...string) error {
	dir, err := root()
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("building %s: %w", pkg, err)
	}
	kept := filepath.Join(cache, "configstamp", "e2e", url.PathEscape(dir), filepath.Base(binary)+variant(flags))
	command := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", kept}, flags...), pkg)...)
	command.Dir = filepath.Join(dir, module)
	cgo := "0" // as it is shipped: a C library would be 10 MiB of each process's memory
	if slices.Contains(flags, "-race") {
		cgo = "1"
	}
	command.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	program, err := os.ReadFile(kept)
	if err != nil {
		return fmt.Errorf("building %s: %w", pkg, err)
	}
	if err := os.WriteFile(binary, program, 0o700); err != nil {
		return fmt.Errorf("building %s: %w", pkg, err)
	}
	return nil
}

// variant tells binaries apart that are built with other flags.
func variant(flags []string) string {
	name := ""
	for _, flag := range flags {
		if strings.HasPrefix(flag, "-") {
			name += flag
		}
	}
	return name
}
