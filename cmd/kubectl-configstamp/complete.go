package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
)

// completeWithin bounds what a person waits for after the tabulator.
const completeWithin = 3 * time.Second

// describeCompletion says in cobra's command completion what kubectl needs, which is none of
// its scripts.
func describeCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		if command.Name() == "completion" {
			command.Short = "Explain completion with kubectl, or print a completion script for a shell"
			command.Long = "kubectl completes the arguments of this plugin too, as soon as it finds the plugin on\n" +
				"the PATH under a second name:\n\n" +
				"  cd \"$(dirname \"$(command -v kubectl-configstamp)\")\"\n" +
				"  ln -s kubectl-configstamp kubectl_complete-configstamp\n\n" +
				"On Windows, copy the plugin to kubectl_complete-configstamp.exe. How kubectl itself\n" +
				"completes: see \"kubectl completion --help\".\n\n" +
				"The scripts that this command prints are for calls of kubectl-configstamp without\n" +
				"kubectl."
		}
	}
}

// completing asks the cluster for names, shortly; what goes wrong completes nothing.
func (p *plugin) completing(ask func(ctx context.Context, cluster *inspect.Cluster) []string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), completeWithin)
	defer cancel()
	cluster, err := p.cluster()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return ask(ctx, cluster), cobra.ShellCompDirectiveNoFileComp
}

func (p *plugin) completeNamespace(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return p.completing(func(ctx context.Context, cluster *inspect.Cluster) []string {
		return cluster.Names(ctx, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "")
	})
}

// completeSource completes configmap/NAME and secret/NAME.
func (p *plugin) completeSource(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return p.completeKinds(args, typed, checksum.ConfigMap, checksum.Secret)
}

// completeConfigMap completes configmap/NAME.
func (p *plugin) completeConfigMap(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return p.completeKinds(args, typed, checksum.ConfigMap)
}

func (p *plugin) completeKinds(args []string, typed string, kinds ...checksum.Kind) (found []string, directive cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	word, _, named := strings.Cut(typed, "/")
	if !named {
		for _, kind := range kinds {
			found = append(found, string(kind)+"/")
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	source, err := sourceOf([]string{word, "x"})
	if err != nil || !slices.Contains(kinds, source.Kind) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.completing(func(ctx context.Context, cluster *inspect.Cluster) []string {
		return p.named(ctx, cluster, inspect.SourceResource(source.Kind), word)
	})
}

// completeSnapshot completes the name of a snapshot of a source that is named already.
func (p *plugin) completeSnapshot(args []string) ([]string, cobra.ShellCompDirective) {
	source, err := sourceOf(args)
	namespace, unknown := p.namespace(false)
	if err != nil || unknown != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.completing(func(ctx context.Context, cluster *inspect.Cluster) (names []string) {
		snapshots, err := cluster.Snapshots(ctx, namespace, source)
		if err != nil {
			return nil
		}
		for _, snapshot := range snapshots {
			names = append(names, snapshot.Name)
		}
		return names
	})
}

// completeWorkload completes deployment/NAME and the like.
func (p *plugin) completeWorkload(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	word, _, found := strings.Cut(typed, "/")
	if !found {
		return []string{"deployment/", "statefulset/", "daemonset/", "cronjob/", "pod/"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return p.completing(func(ctx context.Context, cluster *inspect.Cluster) []string {
		kind, err := inspect.FindKind(inspect.KnownKinds(), word)
		if err != nil {
			return nil
		}
		return p.named(ctx, cluster, kind.GroupVersionResource(), word)
	})
}

// named lists the objects of a resource, each behind the word that people call it.
func (p *plugin) named(ctx context.Context, cluster *inspect.Cluster, of schema.GroupVersionResource, word string) []string {
	namespace, err := p.namespace(false)
	if err != nil {
		return nil
	}
	names := cluster.Names(ctx, of, namespace)
	for i := range names {
		names[i] = word + "/" + names[i]
	}
	return names
}
