package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
)

// The exit codes of impact --exit-code.
const (
	codeRolls  = 2
	codeUnsure = 5
)

// impactFlags are what impact is asked.
type impactFlags struct {
	keys, files       []string
	deleted, exitCode bool
	output            format
}

func (p *plugin) impactCommand() *cobra.Command {
	var flags impactFlags
	command := &cobra.Command{
		Use:   "impact SOURCE | impact -f FILE...",
		Short: "Say what an edit of a ConfigMap or Secret would restart, and what not",
		Long: "Says which workloads an edit would roll, how many of them at first, and which a\n" +
			"setting holds. Says which workloads would not roll, and why. Nothing is changed.\n" +
			"With -f it compares the ConfigMaps and Secrets of manifests with those in the\n" +
			"cluster, key by key, as far as you may read them. It prints names of keys, and no\n" +
			"content.\n\n" +
			"With --exit-code, for pipelines: 0 when nothing would roll, 2 when something would\n" +
			"roll, now or later, and 5 when this is not known. 1 is an error, as always.",
		Example: "  kubectl configstamp impact configmap/payment-api-config\n" +
			"  kubectl configstamp impact cm/payment-api-config --key LOG_LEVEL\n" +
			"  kubectl configstamp impact secret/db --delete -n shop\n" +
			"  kubectl configstamp impact -f config.yaml --exit-code",
		Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return p.impact(command.Context(), args, &flags)
		},
	}
	set := command.Flags()
	set.StringArrayVar(&flags.keys, "key", nil, "a key that would change; may be given several times (default: all)")
	set.BoolVar(&flags.deleted, "delete", false, "say what it would do to delete the source")
	set.StringSliceVarP(&flags.files, "filename", "f", nil, "manifests to compare with the cluster: files, folders, URLs, or - for stdin")
	set.BoolVar(&flags.exitCode, "exit-code", false, "exit with 2 when something would roll, with 5 when this is not known")
	addFormat(command, &flags.output)
	return command
}

// errNothingAsked and errTwoQuestions are for those who ask wrongly.
var (
	errNothingAsked = errors.New("name a source, such as configmap/web, or manifests by -f")
	errTwoQuestions = errors.New("-f compares manifests: leave out the source, --key and --delete")
)

func (p *plugin) impact(ctx context.Context, args []string, flags *impactFlags) error {
	switch {
	case len(args) == 0 && len(flags.files) == 0:
		return errNothingAsked
	case len(flags.files) > 0 && (len(args) > 0 || len(flags.keys) > 0 || flags.deleted):
		return errTwoQuestions
	}
	namespace, err := p.namespace(false)
	if err != nil {
		return err
	}
	cluster, err := p.cluster()
	if err != nil {
		return err
	}
	scene := &answer.Scene{Listed: cluster.Listed, Now: p.now().UTC()}
	plans, others, err := planned(ctx, cluster, scene, args, flags, namespace)
	if err != nil {
		return err
	}
	switch err := readScene(ctx, cluster, scene, plans); {
	case errors.As(err, new(blind)) && flags.exitCode:
		return exit{codeUnsure, err}
	case err != nil:
		return err
	}
	impact, err := answer.ImpactOf(scene, plans)
	if err != nil {
		return err
	}
	if err := p.print(flags.output, impact, cluster.Gaps(), func(to io.Writer) { p.printImpact(to, &impact, flags.output, others) }); err != nil {
		return err
	}
	if flags.exitCode {
		return exitOf(&impact, cluster.Gaps())
	}
	return nil
}

// planned is what is asked about. others is how many objects in manifests are neither
// ConfigMaps nor Secrets.
func planned(ctx context.Context, cluster *inspect.Cluster, scene *answer.Scene, args []string, flags *impactFlags, namespace string) (plans []answer.Plan, others int, err error) {
	if len(flags.files) == 0 {
		source, err := sourceOf(args)
		if err != nil {
			return nil, 0, err
		}
		at := rollout.SourceRef{Namespace: namespace, Source: source}
		return []answer.Plan{{At: at, Keys: flags.keys, Delete: flags.deleted}}, 0, nil
	}
	all, others, err := manifestsIn(flags.files, namespace)
	if err != nil {
		return nil, 0, err
	}
	plans, scene.Contents, err = compared(ctx, cluster, all)
	return plans, others, err
}

// readScene reads the namespaces that are concerned.
func readScene(ctx context.Context, cluster *inspect.Cluster, scene *answer.Scene, plans []answer.Plan) (err error) {
	if scene.Settings, err = cluster.Settings(ctx); err != nil {
		return err
	}
	var namespaces []string
	for i := range plans {
		namespaces = append(namespaces, plans[i].At.Namespace)
	}
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)
	workloads, sources := make([][]*seen.Workload, len(namespaces)), make([][]*seen.Source, len(namespaces))
	group, within := errgroup.WithContext(ctx)
	if len(namespaces) > 0 {
		group.Go(func() (err error) { scene.Namespaces, err = cluster.Namespaces(within, namespaces...); return err })
	}
	for i, namespace := range namespaces {
		group.Go(func() (err error) {
			workloads[i], err = cluster.Workloads(within, scene.Settings, inspect.Which{Namespace: namespace, CreateOnly: true})
			return err
		})
		group.Go(func() (err error) { sources[i], err = cluster.Sources(within, scene.Settings, namespace); return err })
	}
	err = group.Wait()
	if err != nil {
		return err
	}
	scene.Workloads, scene.Sources = slices.Concat(workloads...), slices.Concat(sources...)
	if err := blindIn(cluster, scene.Settings, namespaces...); err != nil {
		return err
	}
	cluster.AskNamespaces(ctx, scene.Settings, scene.Namespaces, scene.Workloads)
	return nil
}

// exitOf is how impact --exit-code ends.
func exitOf(impact *answer.Impact, gaps []seen.Gap) error {
	sure, unsure := 0, 0
	count := func(isUnsure bool) {
		if isUnsure {
			unsure++
		} else {
			sure++
		}
	}
	for i := range impact.Rolls {
		count(impact.Rolls[i].Unsure)
	}
	for i := range impact.Stays { // those that roll later; observe rolls never
		if s := &impact.Stays[i]; s.Rolls && s.Code != reason.ObserveMode.String() {
			count(s.Unsure)
		}
	}
	switch {
	case sure > 0:
		return exit{codeRolls, fmt.Errorf("%s would roll, now or later", counted(sure+unsure, "workload", "workloads"))}
	case unsure > 0 || someUnseen(gaps):
		return exit{codeUnsure, errors.New("it is not known whether something would roll")}
	}
	return nil
}

// someUnseen reports whether workloads could not be looked at.
func someUnseen(gaps []seen.Gap) bool {
	return slices.ContainsFunc(gaps, func(gap seen.Gap) bool {
		return !isAbout(gap, "configmaps") && !isAbout(gap, "secrets") && !isAbout(gap, "secretproviderclasses")
	})
}
