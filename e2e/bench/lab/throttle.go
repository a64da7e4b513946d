package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// ErrNoQuota tells that this machine does not let us bound the CPU of a process.
var ErrNoQuota = errors.New("no CPU quota can be set here: that needs root, and the cpu controller of cgroups, version 1 or 2")

// ControlPlane are the components that a small control plane starves.
func ControlPlane() []string { return []string{"kube-apiserver", "etcd"} }

// quotaPeriod is that of the kubelet's limits: 100 ms, in microseconds.
const quotaPeriod = 100_000

// quota is the cgroup of one component.
type quota struct {
	dir     string
	unified bool // version 2
}

// Throttle gives each of the components no more than so many cores from now on,
// such as 0.5, as a limit of its Pod would; 0 cores: as many as there are. It can
// be called again and again, and Close ends it. The error is ErrNoQuota where the
// cgroups of the machine cannot be written.
func (l *Lab) Throttle(cores float64, components ...string) error {
	running, err := l.Components()
	if err != nil {
		return err
	}
	for _, name := range components {
		component, found := running[name]
		if !found {
			return fmt.Errorf("throttling %s: the cluster has no record of it", name)
		}
		q, made := l.quotas[name]
		if !made {
			if q, err = newQuota(l.Cluster.Name+"-"+name, component.PID); err != nil {
				return fmt.Errorf("throttling %s: %w: %w", name, ErrNoQuota, err)
			}
			if l.quotas == nil {
				l.quotas = map[string]quota{}
			}
			l.quotas[name] = q
		}
		if err := q.set(cores); err != nil {
			return fmt.Errorf("throttling %s: %w: %w", name, ErrNoQuota, err)
		}
	}
	return nil
}

// newQuota makes a cgroup, without a limit, and puts a process into it.
func newQuota(name string, pid int) (q quota, err error) {
	const root = "/sys/fs/cgroup"
	q.dir = filepath.Join(root, "cpu", name)
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		q = quota{dir: filepath.Join(root, name), unified: true}
		if err := write(root, "cgroup.subtree_control", "+cpu"); err != nil {
			return q, err
		}
	}
	if err := os.Mkdir(q.dir, 0o755); err != nil {
		return q, err
	}
	if err := write(q.dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
		return q, errors.Join(err, os.Remove(q.dir))
	}
	return q, nil
}

func (q quota) set(cores float64) error {
	most := strconv.Itoa(int(cores * quotaPeriod))
	if q.unified {
		if cores == 0 {
			most = "max"
		}
		return write(q.dir, "cpu.max", fmt.Sprintf("%s %d", most, quotaPeriod))
	}
	if cores == 0 {
		most = "-1"
	}
	return errors.Join(write(q.dir, "cpu.cfs_period_us", strconv.Itoa(quotaPeriod)), write(q.dir, "cpu.cfs_quota_us", most))
}

func write(dir, file, value string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600)
}

// unthrottle removes what Throttle made, once the cluster is down.
func (l *Lab) unthrottle() error {
	var errs []error
	for name, q := range l.quotas {
		// A process that was killed is in its cgroup for a moment longer.
		errs = append(errs, Until(context.Background(), "the cgroup of "+name+" to go", 10*time.Second, func(context.Context) error { return os.Remove(q.dir) }))
	}
	return errors.Join(errs...)
}
