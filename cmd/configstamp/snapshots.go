package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/controller"
	collection "github.com/configstamp/configstamp/internal/collect"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/snapshot"
)

// snapshotOptions say which snapshots are kept, and for how long.
type snapshotOptions snapshot.Bounds

func (o *snapshotOptions) add(flags *pflag.FlagSet) {
	flags.IntVar(&o.Keep, "snapshots", 10, "with --pins: how many unused snapshots of each ConfigMap are kept, the newest ones")
	flags.DurationVar(&o.Grace, "snapshot-grace", time.Hour, "with --pins: how long a snapshot must be unused before it is deleted")
}

// collectEvery is how often a namespace is looked at in which something has happened, unless
// the grace is short; elsewhere it is one sixth as often.
const collectEvery = 10 * time.Minute

// leastGrace is longer than an admission takes to be stored.
const leastGrace = 10 * time.Second

func (o *snapshotOptions) check() error {
	var errs []error
	if o.Keep < 0 {
		errs = append(errs, fmt.Errorf("--snapshots=%d: want no less than 0", o.Keep))
	}
	if o.Grace < leastGrace {
		errs = append(errs, fmt.Errorf("--snapshot-grace=%s: want no less than %s", o.Grace, leastGrace))
	}
	return errors.Join(errs...)
}

// collectSnapshots has the leader delete snapshots that nothing names, if it pins.
func (o *controllerOptions) collectSnapshots(p *process, c *controller.Controller) error {
	if p.archive == nil {
		return nil
	}
	collector, err := collection.New(p.config, collection.Options{
		Store:   p.store,
		Archive: p.archive,
		Ring:    p.keys.Ring,
		Tell: func(about *corev1.ObjectReference, why reason.Reason, text string) {
			p.events.Eventf(about, nil, why.EventType(), why.Event(), "Collect", "%s", text)
		},
		Bounds:   snapshot.Bounds(o.snapshots),
		Interval: min(collectEvery, o.snapshots.Grace/6),
		Clock:    clock.RealClock{},
		Registry: p.registry,
	})
	if err != nil {
		return err
	}
	p.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "configstamp_snapshots",
			Help: "Existing snapshots of ConfigMaps. Only with --pins.",
		}, func() float64 { count, _ := p.store.SnapshotTotals(); return float64(count) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "configstamp_snapshot_bytes",
			Help: "Bytes of keys and values in snapshots of ConfigMaps. Only with --pins.",
		}, func() float64 { _, bytes := p.store.SnapshotTotals(); return float64(bytes) }),
	)
	c.WhileLeading(collector.Run)
	return nil
}
