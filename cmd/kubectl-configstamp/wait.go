package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/report"
)

// The exit codes of wait, beside 0 and 1.
const (
	exitHalted   = 2
	exitHeld     = 3
	exitTimedOut = 4
	exitUnknown  = 5
)

func (p *plugin) waitCommand() *cobra.Command {
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "wait SOURCE|WORKLOAD",
		Short: "Wait until a change is rolled out everywhere, for pipelines",
		Long: "Waits until a workload, or every workload for which a ConfigMap or Secret counts,\n" +
			"has the present content and is rolled out. It follows the source's ConfigRollout. If\n" +
			"you may patch the workloads, it also asks the webhook, by a dry run. On stderr it\n" +
			"prints what it waits for.\n\n" +
			"Exit codes: 0 rolled out; 1 an error; 2 a rollout has failed, and the change is\n" +
			"halted; 3 something holds it for longer than --timeout, such as a pause or a missing\n" +
			"source; 4 timed out; 5 unknown: there is no report, or the webhook gives no answer.",
		Example: "  kubectl configstamp wait configmap/payment-api-config --timeout=15m\n" +
			"  kubectl configstamp wait deployment/web-app -n shop\n" +
			"  kubectl configstamp wait secret/db -o json",
		Args: cobra.RangeArgs(1, 2),
	}
	command.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait; 0 waits forever")
	return p.taskCommand(command, func(ctx context.Context, o *task, args []string) error {
		if timeout < 0 {
			return fmt.Errorf("--timeout=%s: want how long to wait, such as 15m, or 0 to wait forever", timeout)
		}
		w := &waiting{task: o, judge: judge{patience: p.patience}}
		return w.run(ctx, args, timeout)
	})
}

// waiting is one run of wait.
type waiting struct {
	*task
	judge judge
	args  []string
	// source is what is waited for; the zero Source: the workload that args name.
	source checksum.Source
	what   string

	reports []*rolloutReport // of the sources that are waited for
	unasked bool             // the webhook cannot be asked
	said    string
}

// requestTimeout bounds each request of a wait, unless the user bounds it: no answer ends the wait late.
const requestTimeout = "30s"

func (w *waiting) run(ctx context.Context, args []string, timeout time.Duration) error {
	if *w.config.Timeout == "0" {
		*w.config.Timeout = requestTimeout
	}
	if err := w.begin(ctx, args); err != nil {
		return err
	}
	if timeout > 0 {
		w.judge.until = w.clockTime().Add(timeout)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	f, err := w.untilDone(ctx)
	if err != nil {
		return err
	}
	if w.output.wanted() {
		if err := w.output.object(w.Out, listOf(w.reports)); err != nil {
			return err
		}
	}
	return w.end(&f, timeout)
}

// begin finds out what is waited for.
func (w *waiting) begin(ctx context.Context, args []string) (err error) {
	if err = w.readSettings(ctx); err != nil {
		return err
	}
	if namesSource(args) {
		if w.source, err = sourceOf(args); err != nil {
			return err
		}
		w.what = w.source.String()
		_, err = w.lastWrite(w.source)
		return err
	}
	s, err := w.subject(args)
	if err == nil {
		w.what, w.args = s.String(), []string{s.String()}
	}
	return err
}

// untilDone looks until nothing is left to wait for, or ctx ends.
func (w *waiting) untilDone(ctx context.Context) (last finding, err error) {
	last, since := finding{verdict: unknown, why: "the API server has given no answer"}, time.Now()
	for first := true; ; first = false {
		f, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return w.outOfTime(ctx, last)
		case err != nil && (first || apierrors.IsNotFound(err)):
			return last, err
		case err != nil:
			f = finding{verdict: unknown, why: err.Error()}
		}
		if f.verdict != last.verdict {
			since = time.Now()
		}
		last = f
		lasts := time.Since(since)
		if f.verdict == finished || f.lasts > 0 && lasts >= f.lasts {
			return f, nil
		}
		if f.why != w.said {
			w.said = f.why
			paragraph(w.ErrOut, "", f.why)
		}
		again := w.judge.again
		if f.lasts > 0 {
			again = min(again, f.lasts-lasts)
		}
		if pause(ctx, again); ctx.Err() != nil {
			return w.outOfTime(ctx, last)
		}
	}
}

// look finds out how far the change is: by the reports, and by the webhook before a wait ends well, or if the reports
// do not tell.
func (w *waiting) look(ctx context.Context) (finding, error) {
	var none finding
	all, err := w.task.reports(ctx, w.namespace)
	switch {
	case errors.Is(err, errNoReports), apierrors.IsForbidden(err):
		none = finding{unknown, err.Error(), w.judge.settled, true}
	case err != nil:
		return none, err
	}
	byReports := w.lookAtSource
	if w.source == (checksum.Source{}) {
		byReports = w.lookAtWorkload
	}
	f, err := byReports(all)
	if err != nil {
		return f, err
	}
	if f.vague && none.vague {
		f = none
	}
	if w.unasked || f.verdict != finished && !f.vague {
		return f, nil
	}
	answered, err := w.askAll(ctx, f.verdict == finished)
	switch {
	case err != nil || w.unasked:
		return f, err
	case answered.verdict == finished && f.verdict == finished:
		return f, nil
	case answered.verdict == finished || f.verdict <= unknown:
		return answered, nil
	}
	return gravest(f, answered), nil
}

// lookAtSource returns how far the edit of the source is by its report.
func (w *waiting) lookAtSource(all []*rolloutReport) (finding, error) {
	last, err := w.lastWrite(w.source)
	if err != nil {
		return finding{}, err
	}
	w.reports = reportsOn(all, []checksum.Source{w.source})
	r := reportOn(all, w.source)
	f := w.judge.ofEdit(r, w.what, last)
	if f.verdict == finished && report.State(r.ready().Reason) == report.Unused {
		users, _, err := w.users()
		if err != nil || len(users) > 0 {
			return finding{unknown, leavesAlone, w.judge.settled, false}, err
		}
	}
	return f, nil
}

const leavesAlone = "configstamp serves none of the workloads that are waited for"

// lookAtWorkload returns how far the edits of its sources are on the workload by their reports, and by its own status.
func (w *waiting) lookAtWorkload(all []*rolloutReport) (finding, error) {
	s, err := w.subject(w.args)
	if err != nil {
		return finding{}, err
	}
	w.reports = reportsOn(all, s.sources)
	var sure, vague []finding
	for _, source := range s.sources {
		last, err := w.lastWrite(source)
		if err != nil && !apierrors.IsNotFound(err) {
			return finding{}, err
		}
		r := reportOn(all, source)
		_, recorded := s.records.Of(source)
		if r == nil && recorded && !last.at.IsZero() && last.at.Before(s.object().GetCreationTimestamp().Time) {
			continue // it has had this content from the beginning
		}
		if f := w.judge.ofWorkload(r, source.String(), s.name(), last); f.vague {
			vague = append(vague, f)
		} else {
			sure = append(sure, f)
		}
	}
	if f := gravest(sure...); f.verdict != finished {
		return f, nil
	}
	if f := gravest(vague...); f.verdict != finished {
		return f, nil
	}
	f := w.judge.ofStatus(s)
	if f.verdict == finished {
		f.why = "it has the present content of its sources"
	}
	return f, nil
}

// lastWrite returns when the data of a source was last written.
func (w *waiting) lastWrite(source checksum.Source) (writeTime, error) {
	t, err := w.task.source(source)
	switch {
	case apierrors.IsForbidden(err):
		return writeTime{hidden: true}, nil
	case err != nil:
		return writeTime{}, err
	}
	at, _ := report.LastEdit(t.object().GetManagedFields())
	return writeTime{at: at}, nil
}

// outOfTime returns what is left when the time is over; an error if the user has stopped it.
func (w *waiting) outOfTime(ctx context.Context, last finding) (finding, error) {
	if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return last, errors.New("it was stopped")
	}
	last.verdict = max(last.verdict, going)
	return last, nil
}

// end says how the wait has ended, with its exit code.
func (w *waiting) end(f *finding, timeout time.Duration) error {
	of := w.what + " in namespace " + w.namespace
	switch f.verdict {
	case going:
		return exit{exitTimedOut, fmt.Errorf("%s: timed out after %s: %s", of, timeout, f.why)}
	case unknown:
		return exit{exitUnknown, fmt.Errorf("%s: not known whether it is rolled out: %s", of, f.why)}
	case held:
		return exit{exitHeld, fmt.Errorf("%s: held: %s", of, f.why)}
	case halted:
		return exit{exitHalted, fmt.Errorf("%s: halted: %s", of, f.why)}
	case finished:
	}
	if !w.output.wanted() {
		paragraph(w.Out, "", of+": "+f.why+".")
	}
	return nil
}
