package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
)

func (p *plugin) restoreCommand() *cobra.Command {
	var to string
	command := &cobra.Command{
		Use:   "restore SOURCE",
		Short: "Write the content of a snapshot back into its ConfigMap",
		Long: "Writes old content back into a ConfigMap, as your own edit: the workloads that\n" +
			"have other content roll out, in steps. The ConfigMap keeps its own labels and\n" +
			"annotations. kubectl configstamp snapshots lists the snapshots. If Git or Helm owns\n" +
			"the ConfigMap, change it there.",
		Example: "  kubectl configstamp restore configmap/web-message --to 3f2a91c07d5e8b4416aa --dry-run=server\n" +
			"  kubectl configstamp restore cm/web-message --to 3f2a91c07d5e8b4416aa -n shop",
		Args: cobra.RangeArgs(1, 2),
	}
	command.Flags().StringVar(&to, "to", "", "name of the snapshot, or the digits at its end")
	return p.orderCommand(command, func(ctx context.Context, o *task, args []string) error {
		k, err := o.kept(args)
		if err != nil {
			return err
		}
		if k.now == nil {
			return fmt.Errorf("%s does not exist in namespace %s: create it first, empty, then restore it", k.source, o.namespace)
		}
		if to == "" {
			return fmt.Errorf("want the snapshot, as --to NAME: kubectl configstamp snapshots %s lists them", k.now.words())
		}
		snapshot, err := k.called(to)
		if err != nil {
			return err
		}
		return o.restore(ctx, k.now, snapshot)
	})
}

// restore writes what a snapshot holds into its ConfigMap, if nobody has changed that since it was read.
func (o *task) restore(ctx context.Context, now, snapshot *keptConfigMap) error {
	of := "snapshot " + snapshot.target.Name + " of " + at(snapshot.made)
	switch {
	case now.content.SameEntries(snapshot.content):
		return o.say(&result{target: now.target, did: "unchanged", why: "it already holds what " + of + " holds"})
	case now.Immutable != nil && *now.Immutable:
		return fmt.Errorf("%s is immutable", now.place())
	}
	after, err := o.send(ctx, now.target, types.MergePatchType, restoring(now, snapshot), orderManager)
	if err != nil {
		return err
	}
	return o.say(&result{
		target: after, did: "restored", changed: true, next: "kubectl configstamp users " + now.words(),
		why: "it holds what " + of + " holds; workloads that use it and have other content roll out, in steps",
	})
}

// restoring is the merge patch that gives a ConfigMap the content of another.
func restoring(now, snapshot *keptConfigMap) []byte {
	data, binaryData := map[string]any{}, map[string]any{}
	for key := range now.Data {
		data[key] = nil
	}
	for key := range now.BinaryData {
		binaryData[key] = nil
	}
	for key, value := range snapshot.Data {
		data[key] = value
	}
	for key, value := range snapshot.BinaryData {
		binaryData[key] = value
	}
	return asJSONText(map[string]any{
		"metadata": map[string]any{"resourceVersion": now.ConfigMap.ResourceVersion},
		"data":     data, "binaryData": binaryData,
	})
}
