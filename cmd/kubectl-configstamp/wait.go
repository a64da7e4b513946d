package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// The exit codes of wait, beside 0 and 1.
const (
	exitHalted   = 2
	exitHeld     = 3
	exitTimedOut = 4
	exitUnknown  = 5
)

// patience is for how long commands wait. Of wait, it is for how long it does not believe bad
// news: what comes next may overtake it.
type patience struct {
	// settled is for what is halted or held.
	settled time.Duration
	// silent is for a webhook that gives no answer: it may be restarting.
	silent time.Duration
	// again is how soon a webhook that gives no answer is asked again.
	again time.Duration
	// late is how soon the webhook is asked about everything again though nothing has changed.
	late time.Duration
	// slow is when a person at a terminal is told how far the questions are.
	slow time.Duration
}

func usualPatience() patience {
	return patience{settled: 3 * time.Second, silent: 20 * time.Second, again: 2 * time.Second, late: 30 * time.Second, slow: time.Second}
}

type waitFlags struct {
	output  format
	timeout time.Duration
}

func (p *plugin) waitCommand() *cobra.Command {
	var flags waitFlags
	command := &cobra.Command{
		Use:   "wait SOURCE|WORKLOAD",
		Short: "Wait until a change is rolled out everywhere, for pipelines",
		Long: "Waits until a workload, or every workload for which a ConfigMap or Secret counts, is\n" +
			"in step and rolled out. The webhook says what is in step. The workload's own\n" +
			"controller says what is rolled out. On stderr the command says what it waits for.\n\n" +
			"Exit codes: 0 in step and rolled out; 1 an error; 2 a rollout has failed, and the\n" +
			"change is halted; 3 something holds it for longer than --timeout, such as a pause or\n" +
			"a missing source; 4 timed out; 5 not known: you may not patch workloads, the webhook\n" +
			"gives no answer, or another webhook refuses dry runs.",
		Example: "  kubectl configstamp wait configmap/payment-api-config --timeout=15m\n" +
			"  kubectl configstamp wait deployment/web-app -n shop\n" +
			"  kubectl configstamp wait secret/db -o json",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			err := p.wait(command.Context(), args, &flags)
			if nothing := blind(""); errors.As(err, &nothing) {
				return exit{exitUnknown, err}
			}
			return err
		},
	}
	addFormat(command, &flags.output)
	command.Flags().DurationVar(&flags.timeout, "timeout", 10*time.Minute, "how long to wait; 0 waits for ever")
	return command
}

// waiting is one run of wait.
type waiting struct {
	*plugin
	cluster  *inspect.Cluster
	settings *seen.Settings
	which    inspect.Which
	what     string
	until    time.Time // zero: for ever

	said   string        // what it waits for, as it was said last
	result answer.Result // since when it is so
	since  time.Time
}

func (p *plugin) wait(ctx context.Context, args []string, flags *waitFlags) error {
	if flags.timeout < 0 {
		return fmt.Errorf("--timeout=%s: want how long to wait, such as 15m, or 0 for ever", flags.timeout)
	}
	w := &waiting{plugin: p}
	if flags.timeout > 0 {
		w.until = p.now().Add(flags.timeout)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, flags.timeout)
		defer cancel()
	}
	if err := w.begin(ctx, args); err != nil {
		return err
	}
	wait, err := w.untilDone(ctx)
	if err != nil {
		return err
	}
	if err := p.print(flags.output, wait, w.cluster.Gaps(), func(to io.Writer) { p.printWait(to, wait, flags.output) }); err != nil {
		return err
	}
	return ended(wait, flags.timeout)
}

// begin finds out what is waited for.
func (w *waiting) begin(ctx context.Context, args []string) error {
	namespace, err := w.namespace(false)
	if err != nil {
		return err
	}
	if w.cluster, err = w.plugin.cluster(); err != nil {
		return err
	}
	if w.settings, err = w.cluster.Settings(ctx); err != nil {
		return err
	}
	w.which.Namespace = namespace
	if !namesSource(args) {
		of, _, err := workloadOf(ctx, w.cluster, w.settings, namespace, args)
		if err != nil {
			return err
		}
		w.which.Only, w.what = of.Ref, of.Text()
		return nil
	}
	source, err := sourceOf(args)
	if err != nil {
		return err
	}
	w.which.Using, w.what = source, source.String()
	found, err := w.cluster.Source(ctx, namespace, source)
	if err == nil && found.Looked && !found.Exists {
		err = notThere(w.cluster, string(source.Kind), namespace, source.Name)
	}
	return err
}

// untilDone waits until nothing is left to wait for, or until ctx ends.
func (w *waiting) untilDone(ctx context.Context) (*answer.Wait, error) {
	last := &answer.Wait{Namespace: w.which.Namespace, For: w.what, Result: answer.Unsaid, Why: "the API server has given no answer", Workloads: []answer.Progress{}}
	for first := true; ; first = false {
		fleet, err := w.fleet(ctx, w.cluster, w.settings, w.which, nil)
		switch {
		case ctx.Err() != nil:
			return w.outOfTime(ctx, last)
		case err != nil && (first || errors.Is(err, errNone)):
			return nil, err
		case err != nil:
			last.Result, last.Sure, last.Why = answer.Unsaid, false, err.Error()
			fleet = nil
		default:
			last = w.judge(fleet)
		}
		w.say(last)
		again, over := w.after(last)
		if over {
			return last, nil
		}
		w.follow(ctx, fleet, last.Result, again)
		if ctx.Err() != nil {
			return w.outOfTime(ctx, last)
		}
	}
}

// judge says how far a fleet is. Of a source it is known only if all kinds of workloads
// could be listed.
func (w *waiting) judge(fleet *seen.Fleet) *answer.Wait {
	wait := answer.WaitOf(fleet, w.which.Namespace, w.what, w.now(), w.until)
	if hidden := w.cluster.Unlisted(w.settings, w.which.Namespace); w.which.Only.Kind == nil && len(hidden) > 0 && wait.Result == answer.Finished {
		wait.Result, wait.Sure = answer.Unsaid, true
		wait.Why = "what else uses " + w.what + " is not known (" + hidden[0].String() + ")"
		wait.Next = "wait for each workload by its name"
	}
	return &wait
}

// after says whether a result is the end, else how soon to ask again though nothing has changed.
func (w *waiting) after(wait *answer.Wait) (again time.Duration, over bool) {
	now := time.Now()
	if wait.Result != w.result {
		w.result, w.since = wait.Result, now
	}
	again = w.patience.late
	switch lasts := now.Sub(w.since); wait.Result {
	case answer.Finished:
		return 0, true
	case answer.Stopped, answer.OnHold:
		again, over = w.patience.settled-lasts, lasts >= w.patience.settled
	case answer.Unsaid:
		again, over = w.patience.again, wait.Sure || lasts >= w.patience.silent
	case answer.Going, answer.TimedOut:
		if !wait.Again.IsZero() {
			again = min(again, wait.Again.Sub(w.now()))
		}
	}
	return max(again, 100*time.Millisecond), over
}

// follow waits until the result of a fleet is another, for some time at most.
func (w *waiting) follow(ctx context.Context, fleet *seen.Fleet, before answer.Result, within time.Duration) {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	if fleet == nil {
		<-ctx.Done()
		return
	}
	w.cluster.Follow(ctx, fleet, w.which, func(fleet *seen.Fleet) {
		wait := w.judge(fleet)
		if wait.Result != before || len(fleet.Workloads) == 0 {
			stop() // to read all anew: nothing ends by answers of before
			return
		}
		w.say(wait)
	})
}

// say says what is waited for, when that is something else than before.
func (w *waiting) say(wait *answer.Wait) {
	text := wait.Words()
	if wait.Result == answer.Unsaid {
		text = "not known: " + wait.Why
	}
	if wait.Result == answer.Finished || text == w.said {
		return
	}
	w.said = text
	paragraph(w.ErrOut, "", text)
}

// outOfTime is what is left when the time is over, or an error if somebody stopped it.
func (w *waiting) outOfTime(ctx context.Context, last *answer.Wait) (*answer.Wait, error) {
	if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return nil, errors.New("it was stopped")
	}
	if last.Result == answer.Going || last.Result == answer.Finished {
		last.Result = answer.TimedOut
	}
	return last, nil
}

// ended is the exit code of a wait.
func ended(wait *answer.Wait, timeout time.Duration) error {
	switch of := fmt.Sprintf("%s in namespace %s", wait.For, wait.Namespace); wait.Result {
	case answer.Stopped:
		return exit{exitHalted, fmt.Errorf("%s: halted: %s", of, wait.Why)}
	case answer.OnHold:
		return exit{exitHeld, fmt.Errorf("%s: held: %s", of, wait.Why)}
	case answer.TimedOut, answer.Going:
		return exit{exitTimedOut, fmt.Errorf("%s: timed out after %s: %s", of, timeout, wait.Words())}
	case answer.Unsaid:
		return exit{exitUnknown, fmt.Errorf("%s: not known whether it is in step: %s", of, wait.Why)}
	case answer.Finished:
	}
	return nil
}

func (p *plugin) printWait(to io.Writer, wait *answer.Wait, output format) {
	if output == names {
		for i := range wait.Workloads {
			fmt.Fprintln(to, wait.Workloads[i].Workload)
		}
		return
	}
	for _, note := range wait.Notes {
		paragraph(to, "", note+".")
	}
	if len(wait.Workloads) > 0 {
		p.printProgress(to, wait.Workloads, output == wide)
	}
	if wait.Next != "" {
		paragraph(to, "  ", "Next: "+wait.Next)
	}
	of := wait.For + " in namespace " + wait.Namespace
	switch {
	case wait.Result != answer.Finished:
	case wait.Of == 0:
		paragraph(to, "", "No workload uses "+of+": there is nothing to wait for.")
	case namesSource([]string{wait.For}):
		paragraph(to, "", fmt.Sprintf("%s: all %d workloads that it counts for are in step and rolled out.", of, wait.Of))
	default:
		paragraph(to, "", of+" is in step and rolled out.")
	}
}
