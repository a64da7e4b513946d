package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/internal/answer"
)

func (p *plugin) historyCommand() *cobra.Command {
	var output format
	command := &cobra.Command{
		Use:   "history WORKLOAD",
		Short: "Say why each revision of a workload was made",
		Long: "Lists the revisions of a workload that the cluster still keeps, and says why each\n" +
			"was made: which ConfigMaps and Secrets changed, and by whom as far as that is known,\n" +
			"or what else changed in the template. The workload's spec.revisionHistoryLimit says\n" +
			"how many revisions are kept.\n\n" +
			"PINNED is there when pods are pinned to snapshots: it names the ConfigMaps whose\n" +
			"content an undo to that revision brings back as well.",
		Example: "  kubectl configstamp history deployment/web-app\n" +
			"  kubectl configstamp history sts/db -n shop -o json",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: p.completeWorkload,
		RunE: func(command *cobra.Command, args []string) error {
			return p.history(command.Context(), args, output)
		},
	}
	addFormat(command, &output)
	return command
}

func (p *plugin) history(ctx context.Context, args []string, output format) error {
	cluster, fleet, _, err := p.one(ctx, args)
	if err != nil {
		return err
	}
	history := answer.HistoryOf(fleet, fleet.Workloads[0])
	return p.print(output, history, cluster.Gaps(), func(to io.Writer) {
		switch {
		case output == names:
			for _, revision := range history.Revisions {
				fmt.Fprintln(to, revision.Name)
			}
		case !history.Kept:
			paragraph(to, "", history.Workload+" has no revisions that can be read. To see the events of the last hour: kubectl configstamp why "+history.Workload+" -n "+history.Namespace)
		default:
			fmt.Fprintln(to, p.paint(bold, history.Workload+" in namespace "+history.Namespace))
			p.printRevisions(to, history.Revisions, output == wide)
		}
	})
}
