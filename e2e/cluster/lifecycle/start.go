package lifecycle

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/configstamp/configstamp/e2e/cluster/api"
	"github.com/configstamp/configstamp/e2e/cluster/controlplane"
	"github.com/configstamp/configstamp/e2e/cluster/credentials"
	"github.com/configstamp/configstamp/e2e/cluster/image"
	"github.com/configstamp/configstamp/e2e/cluster/node"
	"github.com/configstamp/configstamp/e2e/cluster/process"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

const (
	readyWithin = 90 * time.Second
	askEvery    = 50 * time.Millisecond
)

// starter brings one cluster up.
type starter struct {
	Host
	cluster   *state.Cluster
	binaries  Binaries
	authority *credentials.Authority
	client    *api.Client
	running   []*process.Running
}

func (s *starter) start(ctx context.Context, r Request) error {
	c := s.cluster
	if err := s.address(c); err != nil {
		return err
	}
	files, err := s.prepare(ctx)
	if err != nil {
		return err
	}
	err = Client(c, func(client *api.Client) error {
		s.client = client
		if err := s.controlPlane(ctx, files, r.ControlPlane); err != nil {
			return err
		}
		return s.nodes(ctx, files, r.Nodes)
	})
	if err != nil {
		return err
	}
	if r.Lifetime > 0 {
		if err := s.watchdog(r.Lifetime); err != nil {
			return err
		}
	}
	c.Ready = true
	return c.Save()
}

func (s *starter) controlPlane(ctx context.Context, files controlplane.Files, o controlplane.Options) error {
	if s.cluster.Node == state.NodeKubelet {
		containerd, err := node.Containerd(s.cluster)
		if err != nil {
			return err
		}
		if err := s.run(containerd, containerd.Name); err != nil {
			return err
		}
	}
	for _, component := range controlplane.Components(s.cluster, files, o) {
		if err := s.run(component, s.beside(component)); err != nil {
			return err
		}
		if err := s.ready(ctx, component); err != nil {
			return err
		}
	}
	return s.wait(ctx, "the service account of namespace default", func(ctx context.Context) error {
		return s.client.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
	})
}

func (s *starter) nodes(ctx context.Context, files controlplane.Files, count int) error {
	switch s.cluster.Node {
	case state.NodeKubelet:
		return s.realNode(ctx, files)
	case state.NodeKwok:
		return s.fakeNodes(ctx, count)
	default:
		return nil
	}
}

func (s *starter) realNode(ctx context.Context, files controlplane.Files) error {
	c := s.cluster
	err := s.wait(ctx, "containerd", func(ctx context.Context) error { return node.WaitForContainerd(ctx, c) })
	if err != nil {
		return err
	}
	tarball := c.File("pause.tar")
	err = image.Write(image.Spec{
		Name: node.PauseImage, Entrypoint: []string{"/pause"}, User: "65535:65535",
		Files: []image.File{{Source: s.binaries.Pause, Destination: "/pause", Executable: true}},
	}, tarball)
	if err != nil {
		return err
	}
	if err := node.LoadImage(ctx, c, tarball); err != nil {
		return err
	}
	components, err := node.Components(c, files, s.authority)
	if err != nil {
		return err
	}
	for _, component := range components {
		if err := s.run(component, s.beside(component)); err != nil {
			return err
		}
	}
	for _, component := range components {
		if err := s.ready(ctx, component); err != nil {
			return err
		}
	}
	return s.nodesReady(ctx, 1)
}

func (s *starter) nodesReady(ctx context.Context, count int) error {
	err := s.wait(ctx, "nodes to be Ready", func(ctx context.Context) error {
		ready, err := s.client.ReadyNodes(ctx)
		if err == nil && ready < count {
			err = fmt.Errorf("%d of %d nodes are Ready", ready, count)
		}
		return err
	})
	if err == nil {
		s.Log.Step("%d of %d nodes Ready", count, count)
	}
	return err
}

// beside is the name of a component's program beside the embedding program.
func (s *starter) beside(component controlplane.Component) string {
	return filepath.Join(filepath.Dir(s.binaries.Kubernetes), component.Name)
}

// run starts a component in the cluster's network namespace, if it has one.
func (s *starter) run(component controlplane.Component, path string) error {
	c := s.cluster
	if resolved, err := exec.LookPath(path); err == nil {
		path = resolved
	}
	program := process.Program{
		Component: component.Name, Path: path, Args: component.Args, Health: component.Health,
		Mark: c.Dir(), Logs: c.Logs(), Records: c.Records(),
	}
	if c.Node == state.NodeKubelet {
		program.Namespace = namespace(c).File()
	}
	running, err := process.Start(program)
	if err != nil {
		return err
	}
	s.running = append(s.running, running)
	return nil
}

// ready waits until a component says so.
func (s *starter) ready(ctx context.Context, component controlplane.Component) error {
	err := s.wait(ctx, component.Name, func(ctx context.Context) error { return s.client.Healthy(ctx, component.Health) })
	if err == nil {
		s.Log.Step("%s is ready", component.Name)
	}
	return err
}

// wait asks until there is no error, a process ends, or it takes too long.
func (s *starter) wait(ctx context.Context, what string, ask func(context.Context) error) error {
	tooLong := time.NewTimer(readyWithin)
	defer tooLong.Stop()
	for {
		last := ask(ctx)
		if last == nil {
			return nil
		}
		for _, running := range s.running {
			if err := running.Ended(); err != nil {
				return fmt.Errorf("waiting for %s: %w", what, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interrupted while waiting for %s: %w", what, context.Cause(ctx))
		case <-tooLong.C:
			return fmt.Errorf("%s was not there within %s: %w", what, readyWithin, last)
		case <-time.After(askEvery):
		}
	}
}

// watchdog starts this very program again, to take the cluster down later.
func (s *starter) watchdog(after time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to end the cluster later: %w", err)
	}
	c := s.cluster
	_, err = process.Start(process.Program{
		Component: "watchdog", Path: self,
		Args: []string{"watchdog", "--name=" + c.Name, "--after=" + after.String()},
		Mark: c.Dir(), Logs: c.Logs(), Records: c.Records(),
	})
	if err != nil {
		return err
	}
	s.Log.Step("the cluster goes down by itself in %s", after)
	return nil
}
