package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

func (p *plugin) usersCommand() *cobra.Command {
	var output format
	command := &cobra.Command{
		Use:   "users SOURCE",
		Short: "Say which workloads use a ConfigMap or Secret, and which restart when it changes",
		Long: "Says which workloads of the namespace use a ConfigMap or Secret, which keys they use\n" +
			"and how, and what an edit does to each workload.\n\n" +
			"  startup  read once, when a container starts\n" +
			"  live     in files that the kubelet refreshes\n" +
			"  node     read by the node, such as imagePullSecrets\n" +
			"  unused   in a volume that no container mounts",
		Example: "  kubectl configstamp users configmap/payment-api-config\n" +
			"  kubectl configstamp users cm/payment-api-config -n shop -o wide\n" +
			"  kubectl configstamp users secret/db -o json",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			return p.users(command, args, output)
		},
	}
	addFormat(command, &output)
	return command
}

func (p *plugin) users(command *cobra.Command, args []string, output format) error {
	source, err := sourceOf(args)
	if err != nil {
		return err
	}
	cluster, settings, namespace, err := p.look(command.Context(), false)
	if err != nil {
		return err
	}
	var of map[string]seen.Namespace
	var found *seen.Source
	var workloads []*seen.Workload
	group, ctx := errgroup.WithContext(command.Context())
	group.Go(func() (err error) { of, err = cluster.Namespaces(ctx, namespace); return err })
	group.Go(func() (err error) { found, err = cluster.Source(ctx, namespace, source); return err })
	group.Go(func() (err error) {
		workloads, err = cluster.Workloads(ctx, settings, inspect.Which{Namespace: namespace, CreateOnly: true})
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if err := blindIn(cluster, settings, namespace); err != nil {
		return err
	}
	cluster.AskNamespaces(command.Context(), settings, of, workloads)
	answered := answer.UsesOf(settings, of[namespace], found, workloads)
	answer.SortWorkloads(answered.Workloads)
	return p.print(output, answered, cluster.Gaps(), func(to io.Writer) { p.printUses(to, &answered, output) })
}

func (p *plugin) printUses(to io.Writer, answered *answer.Uses, output format) {
	if output == names {
		for _, its := range answered.Workloads {
			fmt.Fprintln(to, its.Workload)
		}
		return
	}
	if answered.Exists == "false" {
		fmt.Fprintf(to, "%s does not exist in namespace %s.\n", answered.Source, answered.Namespace)
	}
	if len(answered.Workloads) == 0 {
		fmt.Fprintf(to, "No workload in namespace %s uses %s.\n", answered.Namespace, answered.Source)
		return
	}
	t := &table{columns: narrow, colour: func(column int, text string) string {
		return p.paint(map[string]string{"yes": green, "later": green, "unknown": yellow}[restartWord(column, text)], text)
	}}
	if output == wide {
		t.columns = 0
	}
	heads := []string{"WORKLOAD", "RESTARTS", "USE", "HOW", "KEYS"}
	if output == wide {
		heads = append(heads, "WHERE")
	}
	t.add(heads...)
	for _, its := range answered.Workloads {
		name, restart := its.Workload, string(its.Restart)
		for _, use := range its.Uses {
			cells := []string{name, restart, string(use.Use), how(&use), keys(&use, output == wide)}
			if output == wide {
				cells = append(cells, strings.Join(use.Where, "; "))
			}
			t.add(cells...)
			name, restart = "", ""
		}
	}
	t.print(to)
	fmt.Fprintln(to)
	p.printWhyNot(to, answered)
	paragraph(to, "", restartWords(answered))
	paragraph(to, "", "What an edit would do: kubectl configstamp impact "+answered.Source.String()+" -n "+answered.Namespace)
}

// restartWords counts who restarts.
func restartWords(answered *answer.Uses) string {
	count := map[answer.Restart]int{}
	for _, its := range answered.Workloads {
		count[its.Restart]++
	}
	text := fmt.Sprintf("%d of %d restart when %s changes", count[answer.Restarts], len(answered.Workloads), answered.Source)
	if n := count[answer.LaterRuns]; n > 0 {
		text += fmt.Sprintf("; later runs of %d read it", n)
	}
	if n := count[answer.MayRestart]; n > 0 {
		text += fmt.Sprintf("; for %d this is not known", n)
	}
	return text + "."
}

// restartWord is the first word of the column RESTARTS, "" of others.
func restartWord(column int, text string) string {
	if column != 1 {
		return ""
	}
	word, _, _ := strings.Cut(text, " ")
	return word
}

func how(use *answer.Usage) string {
	if use.Optional && use.How != "also" {
		return use.How + " (optional)"
	}
	return use.How
}

// keys lists the keys, the first few if they need not be all.
func keys(use *answer.Usage, all bool) string {
	const first = 4
	switch {
	case use.All:
		return "all"
	case len(use.Keys) > first && !all:
		return fmt.Sprintf("%s and %d more", strings.Join(use.Keys[:first], ", "), len(use.Keys)-first)
	}
	return strings.Join(use.Keys, ", ")
}

// printWhyNot says why some do not restart, each reason once, and what would change that.
func (p *plugin) printWhyNot(to io.Writer, answered *answer.Uses) {
	var order []string
	by := map[string][]answer.WorkloadUse{}
	for _, its := range answered.Workloads {
		if its.Why == "" {
			continue
		}
		if by[its.Why] == nil {
			order = append(order, its.Why)
		}
		by[its.Why] = append(by[its.Why], its)
	}
	for _, why := range order {
		of := by[why]
		paragraph(to, "", fmt.Sprintf("%s: %s.", firstNames(of), why))
		if remedy := of[0].Remedy; remedy != "" {
			paragraph(to, "  ", "To change that: "+remedy)
		}
	}
	if len(order) > 0 {
		fmt.Fprintln(to)
	}
}

// firstNames names some workloads: the first few, and how many more.
func firstNames(all []answer.WorkloadUse) string {
	const first = 3
	var texts []string
	for _, its := range all[:min(first, len(all))] {
		texts = append(texts, its.Workload)
	}
	if more := len(all) - first; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts, ", "), more)
	}
	return strings.Join(texts, ", ")
}
