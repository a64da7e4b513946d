package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// statusFlags are those of the command status.
type statusFlags struct {
	output   format
	all      bool
	selector string
	watch    bool
}

func (p *plugin) statusCommand() *cobra.Command {
	var flags statusFlags
	command := &cobra.Command{
		Use:   "status [WORKLOAD]",
		Short: "Say what is rolling, waiting, held or halted, since when, and what to do next",
		Long: "Says what is under way: which sources have changed, and which of the workloads that\n" +
			"use them are rolling, waiting, held or halted, since when, and what to do next.\n\n" +
			"The webhook says which workloads are out of date. The command asks it with a dry run\n" +
			"of a patch. Where the webhook gives no answer, this is not known.",
		Example: "  kubectl configstamp status\n" +
			"  kubectl configstamp status -A --watch\n" +
			"  kubectl configstamp status deployment/web-app\n" +
			"  kubectl configstamp status -l app=web-app -o wide",
		Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return p.status(command.Context(), args, &flags)
		},
	}
	addFormat(command, &flags.output)
	command.Flags().BoolVarP(&flags.all, "all-namespaces", "A", false, "look at all namespaces")
	command.Flags().StringVarP(&flags.selector, "selector", "l", "", "look at workloads with these labels, such as app=web-app")
	command.Flags().BoolVarP(&flags.watch, "watch", "w", false, "keep running, and print again whenever something changes")
	return command
}

func (p *plugin) status(ctx context.Context, args []string, flags *statusFlags) error {
	if _, err := labels.Parse(flags.selector); err != nil {
		return fmt.Errorf("--selector=%s: %w", flags.selector, err)
	}
	cluster, settings, namespace, err := p.look(ctx, flags.all)
	if err != nil {
		return err
	}
	which, err := p.which(ctx, cluster, settings, namespace, args, flags)
	if err != nil {
		return err
	}
	var known func(to io.Writer, fleet *seen.Fleet)
	if (flags.output == plain || flags.output == wide) && p.isTerminal(p.Out) && p.isTerminal(p.ErrOut) {
		known = func(to io.Writer, fleet *seen.Fleet) {
			status := answer.StatusOf(fleet, p.now())
			p.printStatus(to, &status, flags.output)
		}
	}
	fleet, err := p.fleet(ctx, cluster, settings, which, known)
	if err != nil {
		return err
	}
	show := func(fleet *seen.Fleet) error {
		status := answer.StatusOf(fleet, p.now())
		return p.print(flags.output, status, cluster.Gaps(), func(to io.Writer) { p.printStatus(to, &status, flags.output) })
	}
	if !flags.watch {
		return show(fleet)
	}
	return p.watch(ctx, cluster, fleet, which, show)
}

// which reads which workloads are asked for.
func (p *plugin) which(ctx context.Context, cluster *inspect.Cluster, settings *seen.Settings, namespace string, args []string, flags *statusFlags) (inspect.Which, error) {
	which := inspect.Which{Namespace: namespace, Selector: flags.selector}
	if len(args) == 0 {
		return which, nil
	}
	if flags.all || flags.selector != "" {
		return which, fmt.Errorf("you named one workload: leave out --all-namespaces and --selector")
	}
	w, _, err := workloadOf(ctx, cluster, settings, namespace, args)
	if err == nil {
		which.Only = w.Ref
	}
	return which, err
}

// fleet reads the workloads that are asked for. known, unless nil, prints what is known
// before the webhook has answered.
func (p *plugin) fleet(ctx context.Context, cluster *inspect.Cluster, settings *seen.Settings, which inspect.Which, known func(io.Writer, *seen.Fleet)) (*seen.Fleet, error) {
	if which.Only.Kind == nil {
		read := func() (*seen.Fleet, error) { return cluster.Fleet(ctx, settings, which, p.progress()) }
		if known != nil {
			read = func() (*seen.Fleet, error) { return p.askShowing(ctx, cluster, settings, which, known) }
		}
		fleet, err := read()
		if err == nil {
			err = blindIn(cluster, settings, which.Namespace)
		}
		return fleet, err
	}
	w, err := cluster.Workload(ctx, settings, which.Only)
	switch {
	case err != nil:
		return nil, err
	case w == nil:
		return nil, notThere(cluster, which.Only.Kind.String(), which.Only.Namespace, which.Only.Name)
	}
	return cluster.One(ctx, settings, w)
}

// watch shows a fleet, and again whenever that says something else than before, until ctx
// ends. A terminal shows the newest alone.
func (p *plugin) watch(ctx context.Context, cluster *inspect.Cluster, fleet *seen.Fleet, which inspect.Which, show func(*seen.Fleet) error) error {
	out := p.Out
	defer func() { p.Out = out }()
	before, lost := "", ""
	again := func(fleet *seen.Fleet) error {
		if fleet.Lost != lost {
			lost = fleet.Lost
			p.tellLost(lost)
			if lost == "" && p.isTerminal(out) {
				before = "" // what was told of it goes away
			}
		}
		var text bytes.Buffer
		p.Out = &text
		if err := show(fleet); err != nil || text.String() == before {
			return err
		}
		switch {
		case p.isTerminal(out):
			fmt.Fprint(out, "\x1b[H\x1b[2J") // home, and clear
		case before != "":
			fmt.Fprintf(out, "--- %s\n", p.now().Format(time.TimeOnly))
		}
		before = text.String()
		_, err := io.WriteString(out, before)
		return err
	}
	if err := again(fleet); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cluster.Follow(ctx, fleet, which, func(fleet *seen.Fleet) {
		if err := again(fleet); err != nil {
			stop(err)
		}
	})
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// tellLost says that what is shown is not up to date, or that it is again.
func (p *plugin) tellLost(why string) {
	if why == "" {
		fmt.Fprintf(p.ErrOut, "--- %s the API server answers again\n", p.now().Format(time.TimeOnly))
		return
	}
	fmt.Fprintf(p.ErrOut, "--- %s %s\n    What is printed above is not up to date. It is printed again when the API server answers.\n", p.now().Format(time.TimeOnly), why)
}

// progress shows on a terminal how many questions are answered, when that takes long.
func (p *plugin) progress() func(done, of int) {
	began := time.Now()
	return func(done, of int) {
		if !p.isTerminal(p.ErrOut) || time.Since(began) < p.patience.slow {
			return
		}
		fmt.Fprintf(p.ErrOut, "\r\x1b[Kasked the webhook %d of %d times", done, of)
		if done == of {
			fmt.Fprint(p.ErrOut, "\r\x1b[K")
		}
	}
}

func (p *plugin) printStatus(to io.Writer, status *answer.Status, output format) {
	if output == names {
		for _, change := range status.Changes {
			for _, its := range change.Workloads {
				fmt.Fprintln(to, its.Workload)
			}
		}
		for _, its := range status.Others {
			fmt.Fprintln(to, its.Workload)
		}
		return
	}
	for i := range status.Changes {
		change := &status.Changes[i]
		fmt.Fprintln(to, p.paint(bold, fmt.Sprintf("%s in namespace %s", change.Source, change.Namespace)))
		words := change.Words()
		if change.Edited != nil {
			words = fmt.Sprintf("edited %s ago by %s; ", answer.Ago(p.now(), change.Edited.At), change.Edited.Manager) + words
		}
		fmt.Fprintln(to, "  "+words)
		p.printProgress(to, change.Workloads, output == wide)
		if change.Next != "" {
			paragraph(to, "  ", "Next: "+change.Next)
		}
		fmt.Fprintln(to)
	}
	if len(status.Others) > 0 {
		fmt.Fprintln(to, p.paint(bold, "Others (which source has changed is not known)"))
		p.printProgress(to, status.Others, output == wide)
		fmt.Fprintln(to)
	}
	paragraph(to, "", totals(status))
}

// few is how many workloads are named of a change, unless -o wide asks for all.
const few = 10

// printProgress prints where workloads stand, most urgent first. What several in a row have
// in common stands there once.
func (p *plugin) printProgress(to io.Writer, progress []answer.Progress, all bool) {
	t := &table{columns: narrow, indent: "  ", colour: func(column int, text string) string {
		if column > 0 {
			return text
		}
		return p.paint(stateColour(answer.State(text)), text)
	}}
	if all {
		t.columns = 0
	}
	t.add("STATE", "WORKLOAD", "SINCE", "WHY")
	shown := progress
	if !all && len(progress) > few {
		shown = progress[:few]
	}
	before := ""
	for _, its := range shown {
		since := ""
		if its.Since != nil {
			since = answer.Ago(p.now(), *its.Since)
		}
		why := its.Why
		if why == before && !all {
			why = ""
		}
		before = its.Why
		t.add(string(its.State), its.Workload, since, why)
	}
	t.print(to)
	if more := len(progress) - len(shown); more > 0 {
		fmt.Fprintf(to, "  and %d more (-o wide names all)\n", more)
	}
}

func stateColour(state answer.State) string {
	switch state {
	case answer.Failed, answer.Halted:
		return red
	case answer.Held, answer.Unknown, answer.Waiting, answer.Suspended, answer.Observed:
		return yellow
	case answer.Rolling, answer.Done:
		return green
	case answer.Unserved:
	}
	return ""
}

// totals says how many workloads were looked at.
func totals(status *answer.Status) string {
	count := status.Workloads
	all := 0
	for _, n := range count {
		all += n
	}
	text := fmt.Sprintf("%d workloads: %d done", all, count[answer.Done])
	if all == 1 {
		text = fmt.Sprintf("1 workload: %d done", count[answer.Done])
	}
	for _, state := range []answer.State{answer.Failed, answer.Halted, answer.Held, answer.Waiting, answer.Rolling, answer.Suspended, answer.Observed, answer.Unknown, answer.Unserved} {
		if n := count[state]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, state)
		}
	}
	return text + "."
}
