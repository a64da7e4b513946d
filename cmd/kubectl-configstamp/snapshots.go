package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/order"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// kept is what a source holds, and its snapshots, the newest first.
type kept struct {
	source    checksum.Source
	namespace string
	now       *corev1.ConfigMap // nil: it does not exist
	snapshots []*corev1.ConfigMap
}

// kept reads the snapshots of the ConfigMap that is named.
func (p *plugin) kept(ctx context.Context, cluster *inspect.Cluster, namespace string, args []string) (k *kept, err error) {
	source, err := sourceOf(args)
	if err != nil {
		return nil, err
	}
	if source.Kind != checksum.ConfigMap {
		return nil, fmt.Errorf("%s: only ConfigMaps have snapshots", source)
	}
	k = &kept{source: source, namespace: namespace}
	if k.now, err = cluster.ConfigMap(ctx, namespace, source.Name); err != nil {
		return nil, err
	}
	if k.snapshots, err = cluster.Snapshots(ctx, namespace, source); err != nil {
		return nil, err
	}
	if k.now == nil && len(k.snapshots) == 0 && len(cluster.Gaps()) == 0 {
		return nil, fmt.Errorf("%s in namespace %s: %w, and it has no snapshots", source, namespace, errNone)
	}
	return k, nil
}

// isNow reports whether a snapshot is what the source holds.
func (k *kept) isNow(snapshot *corev1.ConfigMap) bool {
	return k.now != nil && checksum.ContentOfConfigMap(k.now).SameEntries(checksum.ContentOfConfigMap(snapshot))
}

// named finds a snapshot by its name, or by the digits at its end.
func (k *kept) named(name string) (*corev1.ConfigMap, error) {
	for _, snapshot := range k.snapshots {
		if snapshot.Name == name || strings.HasSuffix(snapshot.Name, "-"+name) {
			return snapshot, nil
		}
	}
	return nil, fmt.Errorf("%s has no snapshot %q: see kubectl configstamp snapshots %s -n %s", k.source, name, k.source, k.namespace)
}

// before is the newest snapshot of other content than the source holds that a workload or a
// revision names. The plugin has no key to verify a snapshot with: whoever may create
// ConfigMaps can make one that looks like the newest, but no template names it.
func (k *kept) before(ctx context.Context, cluster *inspect.Cluster, settings *seen.Settings) (*corev1.ConfigMap, error) {
	used, err := usersOf(ctx, cluster, settings, k)
	if err != nil {
		return nil, err
	}
	for _, snapshot := range k.snapshots {
		if len(texts(used[snapshot.Name])) > 0 && !k.isNow(snapshot) {
			return snapshot, nil
		}
	}
	return nil, fmt.Errorf("%s in namespace %s has no snapshot of other content that a workload or a revision names: name one yourself, see kubectl configstamp snapshots %s -n %s", k.source, k.namespace, k.source, k.namespace)
}

func (p *plugin) snapshotsCommand() *cobra.Command {
	var output format
	var purge purgeFlags
	command := &cobra.Command{
		Use:   "snapshots SOURCE",
		Short: "List the snapshots of a ConfigMap, and what uses them",
		Long: "Lists the snapshots of a ConfigMap, the newest first: how old each is, whether\n" +
			"the ConfigMap still holds the same, how many pods read it, and which workloads and\n" +
			"revisions name it.\n" +
			"Snapshots are made for workloads with configstamp.dev/pin: \"true\".\n" +
			"With --purge it deletes those whose content the ConfigMap does not hold any more,\n" +
			"for good, such as after a password was put into it by mistake. Those that pods\n" +
			"read, or would, stay: their containers could not start again.",
		Example: "  kubectl configstamp snapshots configmap/web-message\n" +
			"  kubectl configstamp snapshots cm/web-message -n shop -o json\n" +
			"  kubectl configstamp snapshots cm/web-message -n shop --purge --yes",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			if purge.on {
				return p.purge(command.Context(), args, &purge, output)
			}
			return p.snapshots(command.Context(), args, output)
		},
	}
	addFormat(command, &output)
	addPurgeFlags(command, &purge)
	return command
}

// snapshotLine is one snapshot, as it is printed.
type snapshotLine struct {
	Name string    `json:"name"`
	Made time.Time `json:"made"`
	// Now tells that the source holds the same.
	Now bool `json:"now"`
	// Pods is how many read it.
	Pods int `json:"pods"`
	// UsedBy are workloads, and workloads with the number of a revision.
	UsedBy []string `json:"usedBy"`
}

func (p *plugin) snapshots(ctx context.Context, args []string, output format) error {
	cluster, settings, namespace, err := p.look(ctx, false)
	if err != nil {
		return err
	}
	k, err := p.kept(ctx, cluster, namespace, args)
	if err != nil {
		return err
	}
	used, err := usersOf(ctx, cluster, settings, k)
	if err != nil {
		return err
	}
	reading, err := readers(ctx, cluster, k)
	if err != nil {
		return err
	}
	lines := []snapshotLine{}
	for _, snapshot := range k.snapshots {
		lines = append(lines, snapshotLine{snapshot.Name, inspect.MadeAt(snapshot), k.isNow(snapshot), reading[snapshot.Name], append([]string{}, texts(used[snapshot.Name])...)})
	}
	return p.print(output, lines, cluster.Gaps(), func(to io.Writer) {
		if output == names {
			for _, line := range lines {
				fmt.Fprintln(to, line.Name)
			}
			return
		}
		if len(lines) == 0 {
			paragraph(to, "", k.source.String()+" in namespace "+namespace+" has no snapshots: no workload that uses it has configstamp.dev/pin set to true, or none was stamped since.")
			return
		}
		rows := table{columns: narrow}
		if output == wide {
			rows.columns = 0
		}
		rows.add("NAME", "AGE", "NOW", "PODS", "USED BY")
		for _, line := range lines {
			now := ""
			if line.Now {
				now = "yes"
			}
			rows.add(line.Name, duration.HumanDuration(p.now().Sub(line.Made)), now, strconv.Itoa(line.Pods), strings.Join(line.UsedBy, ", "))
		}
		rows.print(to)
	})
}

// usersOf are the workloads and revisions whose pods read each snapshot of a source.
func usersOf(ctx context.Context, cluster *inspect.Cluster, settings *seen.Settings, k *kept) (map[string]order.Uses, error) {
	workloads, err := cluster.Workloads(ctx, settings, inspect.Which{Namespace: k.namespace})
	if err != nil {
		return nil, err
	}
	revisions, err := cluster.AllRevisions(ctx, k.namespace, "", settings.Kinds...)
	if err != nil {
		return nil, err
	}
	used := map[string]order.Uses{}
	for _, w := range workloads {
		now := w.Records.PinnedAt()[k.source].Snapshot
		if now != "" {
			uses := used[now]
			uses.Workloads, uses.Bring = append(uses.Workloads, w.Text()), append(uses.Bring, bring(w))
			used[now] = uses
		}
		for _, revision := range revisions[w.Object.UID] {
			if then := revision.Pins[k.source].Snapshot; then != "" && then != now {
				uses := used[then]
				uses.Revisions = append(uses.Revisions, fmt.Sprintf("%s revision %d", w.Text(), revision.Number))
				used[then] = uses
			}
		}
	}
	return used, nil
}

// bring is what has a workload take the present content.
func bring(w *seen.Workload) string {
	verb := "roll"
	if w.Records.Declined != "" {
		verb = "accept"
	}
	return "kubectl configstamp " + verb + " " + w.Text() + " -n " + w.Namespace
}

// texts are all users, for a table.
func texts(uses order.Uses) []string {
	return slices.Sorted(slices.Values(slices.Concat(uses.Workloads, uses.Revisions)))
}

// readers are how many pods read each snapshot of a source.
func readers(ctx context.Context, cluster *inspect.Cluster, k *kept) (map[string]int, error) {
	pods, err := cluster.Pods(ctx, k.namespace, "")
	if err != nil {
		return nil, err
	}
	reading := map[string]int{}
	for i := range pods {
		if !pods[i].Finished {
			reading[pods[i].Pinned[k.source]]++
		}
	}
	return reading, nil
}

func (p *plugin) restoreCommand() *cobra.Command {
	var flags orderFlags
	var to string
	command := &cobra.Command{
		Use:   "restore SOURCE",
		Short: "Write the content of a snapshot back into its ConfigMap",
		Long: "Writes old content back into a ConfigMap, as an edit of yours: the workloads that\n" +
			"have other content roll out, in steps. The ConfigMap keeps its own labels and\n" +
			"annotations. Without --to it takes the newest snapshot of other content that a\n" +
			"workload or a revision names. If Git or Helm owns the ConfigMap, change it there.",
		Example: "  kubectl configstamp restore configmap/web-message --dry-run=server\n" +
			"  kubectl configstamp restore cm/web-message --to 3f2a91c07d5e8b4416aa -n shop",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			return p.restore(command.Context(), args, to, &flags)
		},
	}
	addOrderFlags(command, &flags)
	command.Flags().StringVar(&to, "to", "", "name of the snapshot, or the digits at its end")
	return command
}

func (p *plugin) restore(ctx context.Context, args []string, to string, flags *orderFlags) error {
	o, namespace, err := p.orders(ctx, flags)
	if err != nil {
		return err
	}
	k, err := p.kept(ctx, o.Cluster, namespace, args)
	if err != nil {
		return err
	}
	var snapshot *corev1.ConfigMap
	if to == "" {
		snapshot, err = k.before(ctx, o.Cluster, o.Settings)
	} else {
		snapshot, err = k.named(to)
	}
	switch {
	case err != nil:
		return err
	case k.now == nil:
		return errors.New(k.source.String() + " does not exist in namespace " + namespace + ": create it first, empty, then restore it")
	}
	fleet, err := o.Cluster.Unasked(ctx, o.Settings, inspect.Which{Namespace: namespace, Using: k.source})
	if err != nil {
		return err
	}
	return p.printDids(o, flags, []order.Did{o.Restore(ctx, fleet, k.now, snapshot)})
}
