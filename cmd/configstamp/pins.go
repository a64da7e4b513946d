package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// snapshotOptions say how long the leader keeps snapshots that nothing names.
type snapshotOptions struct {
	keep     int
	grace    time.Duration
	interval time.Duration
}

func (o *snapshotOptions) add(flags *pflag.FlagSet) {
	flags.IntVar(&o.keep, "snapshots", 10, "how many snapshots of a source stay though nothing names them, while the source exists; with --pins")
	flags.DurationVar(&o.grace, "snapshot-grace", time.Hour, "how long nothing may have named a snapshot before it is deleted; a new leader counts anew; with --pins")
	flags.DurationVar(&o.interval, "snapshot-interval", 10*time.Minute, "shortest time between two looks at who names the snapshots of a namespace; with --pins")
}

func (o *snapshotOptions) check() error {
	var errs []error
	if o.keep < 0 {
		errs = append(errs, fmt.Errorf("--snapshots=%d: want no less than 0", o.keep))
	}
	if o.grace <= 0 {
		errs = append(errs, fmt.Errorf("--snapshot-grace=%s: want more than 0s", o.grace))
	}
	if o.interval <= 0 {
		errs = append(errs, fmt.Errorf("--snapshot-interval=%s: want more than 0s", o.interval))
	}
	return errors.Join(errs...)
}
