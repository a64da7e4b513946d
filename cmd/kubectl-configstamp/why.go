package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

func (p *plugin) whyCommand() *cobra.Command {
	var output format
	command := &cobra.Command{
		Use:   "why WORKLOAD|POD",
		Short: "Say why a workload or pod restarted, or why it did not",
		Long: "Says about one workload: what opted it in, its policy, the sources that count, its\n" +
			"state now and what holds it, why each of its revisions was made, and the events of\n" +
			"the last hour. Given a pod, it says the same about the workload that made the pod.",
		Example: "  kubectl configstamp why deployment/web-app\n" +
			"  kubectl configstamp why pod/web-app-5d4f9-x2x9l\n" +
			"  kubectl configstamp why sts/db -n shop -o yaml",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			return p.why(command.Context(), args, output)
		},
	}
	addFormat(command, &output)
	return command
}

// one reads all about the workload that a command names, and the pod, if it names one.
func (p *plugin) one(ctx context.Context, args []string) (*inspect.Cluster, *seen.Fleet, *seen.Pod, error) {
	cluster, settings, namespace, err := p.look(ctx, false)
	if err != nil {
		return nil, nil, nil, err
	}
	w, pod, err := workloadOf(ctx, cluster, settings, namespace, args)
	if err != nil {
		return nil, nil, nil, err
	}
	fleet, err := cluster.One(ctx, settings, w)
	return cluster, fleet, pod, err
}

func (p *plugin) why(ctx context.Context, args []string, output format) error {
	cluster, fleet, pod, err := p.one(ctx, args)
	if err != nil {
		return err
	}
	w := fleet.Workloads[0]
	var pods []seen.Pod
	if w.Selector != "" {
		if pods, err = cluster.Pods(ctx, w.Namespace, w.Selector); err != nil {
			return err
		}
	}
	why := answer.WhyOf(fleet, w, pods, pod, p.now())
	return p.print(output, why, cluster.Gaps(), func(to io.Writer) { p.printWhy(to, &why, output) })
}

func (p *plugin) printWhy(to io.Writer, why *answer.Why, output format) {
	if output == names {
		fmt.Fprintln(to, why.Workload)
		return
	}
	fmt.Fprintln(to, p.paint(bold, why.Workload+" in namespace "+why.Namespace))
	t := &table{columns: narrow, indent: "  "}
	if output == wide {
		t.columns = 0
	}
	if why.Pod != nil {
		t.add("pod", p.podWords(why.Pod))
	}
	t.add("now", why.Sentence(p.now()))
	t.add("served", servedWords(why))
	t.add("policy", policyWords(why))
	for i := range why.Sources {
		t.add("source", p.sourceWords(&why.Sources[i]))
	}
	if len(why.Sources) == 0 {
		t.add("source", "none: it names no ConfigMap or Secret that counts")
	}
	if why.Pods != nil {
		t.add("pods", podsWords(why.Pods))
	}
	t.print(to)
	if next := nextFor(why); next != "" {
		paragraph(to, "  ", "Next: "+next)
	}
	if len(why.Revisions) > 0 {
		fmt.Fprintln(to)
		p.printRevisions(to, why.Revisions, output == wide)
	}
	if len(why.Events) > 0 {
		fmt.Fprintln(to)
		p.printEvents(to, why.Events, output == wide)
	}
}

// nextFor is what to do next: of what is not served, what would opt it in.
func nextFor(why *answer.Why) string {
	if why.Now.Next != "" && !strings.HasPrefix(why.Now.Next, "kubectl configstamp why ") { // it says that already
		return why.Now.Next
	}
	return why.Remedy
}

func servedWords(why *answer.Why) string {
	switch why.Served {
	case seen.Served:
		return "yes, " + why.Because
	case seen.NotServed:
		return "no: " + why.Because
	case seen.MaybeServed:
	}
	return "not known: " + why.Because
}

func policyWords(why *answer.Why) string {
	var parts []string
	for _, setting := range why.Policy {
		text := setting.Name + "=" + setting.Value
		switch setting.On {
		case checksum.OfNamespace:
			text += " (on the Namespace)"
		case checksum.OfFlag:
			text += " (in the whole cluster: its Secrets do not count)"
		case checksum.OfWorkload, checksum.OfSource:
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		parts = append(parts, "the cluster's defaults")
	}
	for _, fault := range why.Faults {
		parts = append(parts, "cannot be read: "+fault)
	}
	return strings.Join(parts, "; ")
}

func (p *plugin) sourceWords(source *answer.WhySource) string {
	var uses []string
	for i := range source.Uses {
		use := &source.Uses[i]
		uses = append(uses, fmt.Sprintf("%s (%s: %s)", use.How, use.Use, keys(use, false)))
	}
	text := source.Source.String() + ": " + strings.Join(uses, ", ")
	switch {
	case source.Exists == "false":
		text += "; it does not exist"
	case source.Edited != nil:
		text += fmt.Sprintf("; edited %s ago by %s", answer.Ago(p.now(), source.Edited.At), source.Edited.Manager)
	}
	if source.Stale {
		text += "; not rolled out yet"
	}
	return text
}

func podsWords(pods *answer.Pods) string {
	text := fmt.Sprintf("%d of %d ready; %d of the newest revision", pods.Ready, pods.All, pods.Newest)
	for _, name := range slices.Sorted(maps.Keys(pods.Trouble)) {
		text += "; " + name + ": " + pods.Trouble[name]
	}
	if len(pods.Ahead) > 0 {
		text += fmt.Sprintf("; %s started after the edit and reads the new content already", strings.Join(pods.Ahead, ", "))
	}
	return text
}

func (p *plugin) podWords(pod *answer.WhyPod) string {
	text := fmt.Sprintf("%s was made %s ago", pod.Name, answer.Ago(p.now(), pod.Made))
	if pod.Revision != nil {
		text += fmt.Sprintf(" for revision %d: %s", pod.Revision.Number, pod.Revision.Because())
	}
	if !pod.Newest {
		text += "; it is not of the newest revision"
	}
	for _, source := range slices.SortedFunc(maps.Keys(pod.Pinned), checksum.Source.Compare) {
		text += fmt.Sprintf("; of %s it reads snapshot %s", source, pod.Pinned[source])
	}
	if pod.Trouble != "" {
		text += "; " + pod.Trouble
	}
	if pod.Restarts > 0 {
		text += fmt.Sprintf("; its containers were restarted %d times, which configstamp never does", pod.Restarts)
	}
	return text
}

func (p *plugin) printRevisions(to io.Writer, revisions []answer.Revision, all bool) {
	t := &table{columns: narrow, indent: "  "}
	if all {
		t.columns = 0
	}
	pins := slices.ContainsFunc(revisions, func(r answer.Revision) bool { return len(r.Pinned) > 0 })
	row := func(revision, age, result, pinned, because string) {
		if pins {
			t.add(revision, age, result, pinned, because)
		} else {
			t.add(revision, age, result, because)
		}
	}
	row("REVISION", "AGE", "RESULT", "PINNED", "BECAUSE")
	for i := range revisions {
		r := &revisions[i]
		row(fmt.Sprint(r.Number), answer.Ago(p.now(), r.At), r.Result, r.PinnedText(all), r.Because())
	}
	t.print(to)
}

func (p *plugin) printEvents(to io.Writer, events []answer.Told, all bool) {
	t := &table{columns: narrow, indent: "  "}
	shown := events
	if all {
		t.columns = 0
	} else if len(shown) > few {
		shown = shown[:few]
	}
	t.add("AGO", "REASON", "WHAT WAS SAID")
	for i := range shown {
		event := &shown[i]
		t.add(answer.Ago(p.now(), event.At), event.Reason, event.About+": "+event.Message)
	}
	t.print(to)
	if more := len(events) - len(shown); more > 0 {
		fmt.Fprintf(to, "  and %d more (-o wide shows all)\n", more)
	}
}
