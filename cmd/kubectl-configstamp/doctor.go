package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// How doctor ends, beside 0: nothing is wrong, and all was looked at.
const (
	codeWrong    = 1
	codeUnlooked = 5
)

func (p *plugin) doctorCommand() *cobra.Command {
	var output format
	all := false
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong with configstamp or with your settings for it, and how to fix it",
		Long: "Checks configstamp itself (webhook, certificate, leader, key), what may be\n" +
			"in its way (other webhooks, Reloader or wave), and what people have written for\n" +
			"it: labels, annotations and names that have no effect, settings that cannot be\n" +
			"read, sources that are missing, pauses that were forgotten or taken back.\n\n" +
			"Each finding has a command that fixes it, or that shows what to fix. Nothing is\n" +
			"changed. The exit code is 0 when nothing is wrong (there may be notes); 1 when\n" +
			"something is wrong; 5 when nothing wrong was found, but not everything could be\n" +
			"checked. If nothing is opted in yet, a note says so, and the webhook is not asked.",
		Example: "  kubectl configstamp doctor\n" +
			"  kubectl configstamp doctor -A\n" +
			"  kubectl configstamp doctor -n shop -o json",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.doctor(command.Context(), all, output) },
	}
	addFormat(command, &output)
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "look at all namespaces")
	return command
}

func (p *plugin) doctor(ctx context.Context, all bool, output format) error {
	cluster, settings, namespace, err := p.look(ctx, all)
	if err != nil {
		return err
	}
	up, err := cluster.Checkup(ctx, settings, namespace, p.progress())
	if err != nil {
		return err
	}
	now := p.now().UTC()
	if at, err := p.serverTime(); err == nil {
		now = at // a lease is renewed by the cluster's clock, not by ours
	}
	doctor := answer.DoctorOf(up, now)
	if err := p.print(output, doctor, up.Gaps, func(to io.Writer) { p.printDoctor(to, &doctor, output) }); err != nil {
		return err
	}
	return doctorsExit(&doctor, up.Gaps)
}

// doctorsExit is how doctor ends.
func doctorsExit(doctor *answer.Doctor, gaps []seen.Gap) error {
	if n := countOf(doctor, answer.Error) + countOf(doctor, answer.Warning); n > 0 {
		return exit{codeWrong, fmt.Errorf("something is wrong: %s", counted(n, "finding", "findings"))}
	}
	for _, check := range doctor.Checks {
		if check.State == answer.Unlooked || len(gaps) > 0 {
			return exit{codeUnlooked, errors.New("nothing wrong was found, but not everything could be checked")}
		}
	}
	return nil
}

func countOf(doctor *answer.Doctor, weight answer.Weight) (n int) {
	for i := range doctor.Findings {
		if doctor.Findings[i].Weight == weight {
			n++
		}
	}
	return n
}

func (p *plugin) printDoctor(to io.Writer, doctor *answer.Doctor, output format) {
	for i := range doctor.Findings {
		f := &doctor.Findings[i]
		switch output {
		case names:
			for _, about := range f.About {
				fmt.Fprintln(to, about)
			}
		case wide:
			fmt.Fprintf(to, "%s: %s: %s: %s\n", f.Weight, f.Where(), f.Text, f.Remedy)
		case plain, asJSON, asYAML:
			p.printFinding(to, f)
		}
	}
	if output == names {
		return
	}
	if len(doctor.Findings) > 0 {
		fmt.Fprintln(to)
	}
	var parts []string
	for _, weight := range []answer.Weight{answer.Error, answer.Warning, answer.Note} {
		if n := countOf(doctor, weight); n > 0 {
			parts = append(parts, counted(n, string(weight), string(weight)+"s"))
		}
	}
	if len(parts) > 0 {
		fmt.Fprintln(to, strings.Join(parts, ", ")+".")
	}
	p.printChecks(to, doctor.Checks)
}

// printChecks says where nothing is wrong, and what is not known.
func (p *plugin) printChecks(to io.Writer, checks []answer.Check) {
	var well, reasons, said []string
	unknown := map[string][]string{} // by reason
	for _, check := range checks {
		if check.Says != "" {
			said = append(said, strings.ToUpper(check.Name[:1])+check.Name[1:]+": "+check.Says+".")
		}
		switch check.State {
		case answer.Well:
			well = append(well, check.Name)
		case answer.Unlooked:
			if unknown[check.Why] == nil {
				reasons = append(reasons, check.Why)
			}
			unknown[check.Why] = append(unknown[check.Why], check.Name)
		case answer.WrongFound, answer.Skipped:
		}
	}
	if len(well) > 0 {
		paragraph(to, "", "Nothing wrong: "+strings.Join(well, ", ")+".")
	}
	for _, one := range said {
		paragraph(to, "", one)
	}
	if len(reasons) > 0 {
		fmt.Fprintln(to, p.paint(yellow, "Not known:"))
	}
	for _, why := range reasons {
		paragraph(to, "  ", strings.Join(unknown[why], ", ")+": "+why)
	}
}

// printFinding prints a finding: its weight, what is wrong, and below that the remedy, whole,
// so that it can be copied.
func (p *plugin) printFinding(to io.Writer, f *answer.Finding) {
	head := string(f.Weight) + strings.Repeat(" ", len(answer.Warning)+2-utf8.RuneCountInString(string(f.Weight)))
	indent := strings.Repeat(" ", len(head))
	colour := map[answer.Weight]string{answer.Error: red, answer.Warning: yellow}[f.Weight]
	for i, line := range wrap(f.Where()+": "+f.Text, narrow-len(head)) {
		if i == 0 {
			fmt.Fprintln(to, p.paint(colour, head)+line)
			continue
		}
		fmt.Fprintln(to, indent+line)
	}
	fmt.Fprintln(to, indent+"  "+f.Remedy)
}

// progress shows on a terminal how many questions are answered, when that takes long.
func (p *plugin) progress() func(done, of int) {
	began := time.Now()
	return func(done, of int) {
		if !p.isTerminal(p.ErrOut) || time.Since(began) < time.Second {
			return
		}
		fmt.Fprintf(p.ErrOut, "\r\x1b[Kasked the webhook %d of %d times", done, of)
		if done == of {
			fmt.Fprint(p.ErrOut, "\r\x1b[K")
		}
	}
}
