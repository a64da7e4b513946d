package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller"
	"github.com/configstamp/configstamp/internal/cache/objects"
	"github.com/configstamp/configstamp/internal/lease"
	"github.com/configstamp/configstamp/internal/revisions"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/rules"
)

type controllerOptions struct {
	common
	settle     time.Duration
	workers    int
	snapshots  snapshotOptions
	reports    bool
	step       string
	replicated string
	limits     rollout.Limits
	impact     impactOptions
}

func controllerCommand() *cobra.Command {
	var o controllerOptions
	command := &cobra.Command{
		Use:   "controller",
		Short: "Send empty patches to workloads when their ConfigMaps and Secrets change, so that the webhook stamps them again",
		Args:  cobra.NoArgs,
		RunE:  run(&o.common, o.check, func(ctx context.Context) error { return runController(ctx, &o) }),
	}
	flags := command.Flags()
	o.add(flags)
	flags.DurationVar(&o.settle, "settle", 2*time.Second, "how long a source must be unchanged before workloads roll; at most ten times as long after the first edit")
	flags.StringVar(&o.step, "step", "1", "workloads that a change rolls first; when they are healthy, twice as many, and so on; off: all at once, without a halt")
	flags.Var(&o.limits.Unsettled, "max-unsettled", "workloads in the cluster that may roll at once: a number, a share such as 2% of those that can roll, or default: 10 or 1 %, whichever is more, at most 100")
	flags.IntVar(&o.limits.UnsettledPerNamespace, "max-unsettled-per-namespace", 0, "how many of these may be in one namespace; 0: nine tenths, at least one")
	flags.DurationVar(&o.limits.Soak, "soak", 10*time.Second, "how long a rollout must stay well before it counts as healthy; at least minReadySeconds")
	flags.DurationVar(&o.limits.FirstSoak, "first-soak", 30*time.Second, "the same while no workload is healthy with the new content, from 3 workloads on; twice that from 10, ten times from 100; 0: --soak")
	flags.DurationVar(&o.limits.CrashDeadline, "crash-deadline", 30*time.Second, "how long every new pod must crash, or be unable to start, before the rollout counts as failed")
	flags.DurationVar(&o.limits.RolloutDeadline, "rollout-deadline", 10*time.Minute, "how long a rollout may make no progress before it counts as failed, whatever the workload's own deadline is")
	flags.StringVar(&o.replicated, "replicated", "together", "how copies of one ConfigMap in several namespaces roll: together, as one change, or each")
	o.impact.add(flags)
	flags.IntVar(&o.workers, "workers", 16, "workloads that are handled concurrently")
	o.snapshots.add(flags)
	flags.BoolVar(&o.reports, "report", true, "write ConfigRollouts, if the cluster has their CustomResourceDefinition")
	describeEnvironment(command)
	return command
}

func (o *controllerOptions) check() error {
	errs := []error{o.common.check(), o.impact.check(&o.serving), o.snapshots.check()}
	if o.settle < 0 {
		errs = append(errs, fmt.Errorf("--settle=%s: want no less than 0s", o.settle))
	}
	if o.workers < 1 {
		errs = append(errs, fmt.Errorf("--workers=%d: want at least 1", o.workers))
	}
	return errors.Join(append(errs, o.checkLimits())...)
}

// longestFirstSoak bounds --first-soak, which may count ten times.
const longestFirstSoak = time.Hour

// checkLimits reads --step and --replicated, and checks what bounds rollouts.
func (o *controllerOptions) checkLimits() error {
	var errs []error
	if o.step != "off" {
		step, err := strconv.Atoi(o.step)
		if err != nil || step < 1 || step > 1000 {
			errs = append(errs, fmt.Errorf("--step=%s: want off, or a whole number from 1 to 1000", o.step))
		}
		o.limits.Step = step
	}
	if o.replicated != "together" && o.replicated != "each" {
		errs = append(errs, fmt.Errorf("--replicated=%s: want together or each", o.replicated))
	}
	o.limits.ReplicatedEach = o.replicated == "each"
	if o.limits.UnsettledPerNamespace < 0 {
		errs = append(errs, fmt.Errorf("--max-unsettled-per-namespace=%d: want no less than 0", o.limits.UnsettledPerNamespace))
	}
	if o.limits.Soak < 0 {
		errs = append(errs, fmt.Errorf("--soak=%s: want no less than 0s", o.limits.Soak))
	}
	if o.limits.FirstSoak < 0 || o.limits.FirstSoak > longestFirstSoak {
		errs = append(errs, fmt.Errorf("--first-soak=%s: want 0s to %s", o.limits.FirstSoak, longestFirstSoak))
	}
	for flag, value := range map[string]time.Duration{"crash-deadline": o.limits.CrashDeadline, "rollout-deadline": o.limits.RolloutDeadline} {
		if value <= 0 {
			errs = append(errs, fmt.Errorf("--%s=%s: want more than 0s", flag, value))
		}
	}
	return errors.Join(errs...)
}

func (o *controllerOptions) lock(p *process) (*lease.Lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this replica for the lease: %w", err)
	}
	leases, err := objects.New[*coordinationv1.Lease](p.config, coordinationv1.SchemeGroupVersion, coordinationv1.AddToScheme, "leases", o.namespace)
	if err != nil {
		return nil, err
	}
	return lease.New(leases, o.name+"-controller", host+"_"+string(uuid.NewUUID()), lease.Usual()), nil
}

func (o *controllerOptions) controller(p *process, judged rules.Rules) (*controller.Controller, error) {
	lock, err := o.lock(p)
	if err != nil {
		return nil, err
	}
	var snapshotOf func(namespace, name string, of checksum.Source) *checksum.Content
	if p.archive != nil {
		snapshotOf = p.archive.Known
	}
	kept, err := revisions.New(p.config)
	if err != nil {
		return nil, err
	}
	return controller.New(p.config, p.served, controller.Options{
		Kinds:      judged.Kinds,
		Policy:     judged.Policy,
		Dialects:   judged.Dialects,
		Namespaces: o.Namespaces,
		Excluded:   o.Never(o.namespace),
		SnapshotOf: snapshotOf,
		Revisions:  kept,
		Settle:     o.settle,
		Limits:     o.limits,
		Workers:    o.workers,
		Lease:      lock,
		Clock:      clock.RealClock{},
	}, p.store, p.spaces, p.keys, p.events, p.registry)
}

func runController(ctx context.Context, o *controllerOptions) error {
	p, err := newProcess(&o.common, "controller")
	if err != nil {
		return err
	}
	judged, err := o.Rules()
	if err != nil {
		return err
	}
	c, err := o.controller(p, judged)
	if err != nil {
		return err
	}
	certificate, err := o.serverCertificate(p)
	if err != nil {
		return err
	}
	warns, err := o.impact.open(ctx, p, c, certificate, &o.common)
	if err != nil {
		return err
	}
	p.tellProgress("workloads", c.LastProgress)
	p.signs["workloads"] = c.LastSign
	p.store.OnChange(c.Edited)
	p.store.OnFilled(c.NamespaceChanged)
	p.spaces.OnChange(c.NamespaceChanged)
	p.keys.OnChange(c.Reconsider)
	if err := errors.Join(o.collectSnapshots(p, c), o.writeReports(p, c)); err != nil {
		return err
	}

	group, ctx := errgroup.WithContext(ctx)
	for _, run := range p.watch(ctx) {
		group.Go(run)
	}
	if certificate != nil {
		group.Go(func() error { certificate.Run(ctx); return nil })
	}
	group.Go(func() error { return p.serve(ctx, &o.serving, certificate, c.Ready, c.Healthy) })
	group.Go(func() error { return warns(ctx) })
	group.Go(func() error { return c.Run(ctx) })
	err = group.Wait()
	p.events.Finish(context.WithoutCancel(ctx), controllerTellsWithin)
	return err
}
