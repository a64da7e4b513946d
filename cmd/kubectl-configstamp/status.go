package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/checksum"
)

// statusOf is one run of the command status.
type statusOf struct {
	*task
	// about is the workload or source that was named, "" for none; of are its sources.
	about string
	of    []checksum.Source
}

func (p *plugin) statusCommand() *cobra.Command {
	var all, watch bool
	command := &cobra.Command{
		Use:   "status [WORKLOAD|SOURCE]",
		Short: "Show which edits are rolling, held or halted, since when, and what to do next",
		Long: "Prints the ConfigRollouts of edits that are not complete, the newest first: which\n" +
			"workloads are rolling, waiting, held or failed, since when, why, and what to do.\n" +
			"For a workload, it prints those of its sources, complete or not.\n\n" +
			"configstamp's leader writes these objects, and the role view may read them.",
		Example: "  kubectl configstamp status\n" +
			"  kubectl configstamp status -A --watch\n" +
			"  kubectl configstamp status deployment/web-app\n" +
			"  kubectl configstamp status configmap/payment-api-config -o yaml",
		Args: cobra.MaximumNArgs(2),
	}
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "look at all namespaces")
	command.Flags().BoolVarP(&watch, "watch", "w", false, "keep running, and print again whenever something has changed")
	return p.taskCommand(command, func(ctx context.Context, o *task, args []string) (err error) {
		s := &statusOf{task: o}
		switch {
		case len(args) > 0 && all:
			return errors.New("you named one object: leave out --all-namespaces")
		case len(args) > 0:
			err = s.named(ctx, args)
		default:
			s.namespace, err = o.plugin.namespace(all)
		}
		switch {
		case err != nil:
			return err
		case watch:
			return s.follow(ctx)
		}
		return s.show(ctx, s.Out)
	})
}

// named finds the sources that are asked about.
func (s *statusOf) named(ctx context.Context, args []string) error {
	if err := s.readSettings(ctx); err != nil {
		return err
	}
	if namesSource(args) {
		source, err := sourceOf(args)
		if err != nil {
			return err
		}
		s.about, s.of = source.String(), []checksum.Source{source}
		if _, err = s.source(source); apierrors.IsForbidden(err) {
			return nil // its report may be read all the same
		}
		return err
	}
	w, err := s.subject(args)
	if err == nil {
		s.about, s.of = w.String(), w.sources
	}
	return err
}

// show prints the reports that are asked for.
func (s *statusOf) show(ctx context.Context, to io.Writer) error {
	all, err := s.reports(ctx, s.namespace)
	if err != nil {
		return err
	}
	var shown []*rolloutReport
	if s.about != "" {
		shown = reportsOn(all, s.of)
	} else {
		for _, r := range all {
			if r.ready().Status != metav1.ConditionTrue {
				shown = append(shown, r)
			}
		}
	}
	switch {
	case s.output.wanted() && s.about != "" && len(shown) == 1:
		return s.output.object(to, shown[0].object)
	case s.output.wanted():
		return s.output.object(to, listOf(shown))
	}
	if len(all) == 0 && s.namespace != "" { // is there such a namespace?
		if _, err := s.read("", "namespaces", s.namespace, metadataOnly); apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, r := range shown[:min(few, len(shown))] {
		r.print(to)
		fmt.Fprintln(to)
	}
	paragraph(to, "", s.sum(len(all), len(shown)))
	return nil
}

// few is how many reports are printed.
const few = 10

// sum says how many reports there are beside those that are shown.
func (s *statusOf) sum(all, shown int) string {
	where, flag := "in namespace "+s.namespace, "-n "+s.namespace
	if s.namespace == "" {
		where, flag = "in all namespaces", "-A"
	}
	switch {
	case s.about != "" && shown == 0:
		return "There is no report on " + s.about + " " + where + ": no edit has had to roll anything for it."
	case s.about != "":
		return counted(shown, "report", "reports") + " on " + s.about + " " + where + "."
	case all == 0:
		return "There is no report " + where + ": no edit has had to roll anything."
	case shown == 0:
		return fmt.Sprintf("Nothing is under way %s: %s. kubectl get configrollouts %s", where, counted(all, "edit is complete", "edits are complete"), flag)
	}
	text := fmt.Sprintf("%s not complete %s, %d complete.", counted(shown, "edit is", "edits are"), where, all-shown)
	if more := shown - few; more > 0 {
		text += fmt.Sprintf(" %d more are not shown: kubectl get configrollouts %s", more, flag)
	}
	return text
}

// watchEvery is how often --watch reads the reports.
const watchEvery = 3 * time.Second

// follow prints the reports, and again whenever they have changed, until ctx ends. A terminal shows the newest alone.
func (s *statusOf) follow(ctx context.Context) error {
	before, lost := "", false
	for ; ctx.Err() == nil; pause(ctx, watchEvery) {
		var text bytes.Buffer
		err := s.show(ctx, &text)
		switch {
		case ctx.Err() != nil: // it was stopped
		case err != nil && before == "":
			return err
		case err != nil && !lost:
			fmt.Fprintf(s.text(s.ErrOut), "--- %s not up to date: %s\n", at(s.now()), err)
		case err == nil && lost:
			fmt.Fprintf(s.ErrOut, "--- %s up to date again\n", at(s.now()))
		}
		if lost = err != nil; lost || text.String() == before {
			continue
		}
		if s.isTerminal(s.Out) {
			fmt.Fprint(s.Out, "\x1b[H\x1b[2J") // home, and clear
		} else if before != "" {
			fmt.Fprintf(s.Out, "--- %s\n", at(s.now()))
		}
		before = text.String()
		if _, err := io.WriteString(s.Out, before); err != nil {
			return err
		}
	}
	return nil
}

// listOf puts reports into one object, as kubectl get prints several.
func listOf(reports []*rolloutReport) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}}
	for _, r := range reports {
		list.Items = append(list.Items, *r.object)
	}
	return list
}
