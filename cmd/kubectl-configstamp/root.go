package main

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// Set by the linker.
//
//nolint:gochecknoglobals // -ldflags -X reaches nothing else
var (
	version = "dev"
	commit  = "unknown"
)

// plugin is what all commands share.
type plugin struct {
	genericiooptions.IOStreams
	// config are kubectl's flags: kubeconfig, context, namespace, as, request-timeout.
	config *genericclioptions.ConfigFlags
	// installation is configstamp's own namespace.
	installation string
	now          func() time.Time
	// clock is what the API server's clock showed at its newest answer, in seconds since 1970.
	clock      atomic.Int64
	patience   patience
	isTerminal func(stream any) bool
}

func newPlugin(streams genericiooptions.IOStreams, now func() time.Time) *plugin {
	p := &plugin{IOStreams: streams, now: now, patience: usualPatience(), isTerminal: isTerminal}
	p.config = genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50) // as kubectl has it
	p.config.WrapConfigFn = p.wrap
	return p
}

// wrap completes a configuration that was read from a kubeconfig.
func (p *plugin) wrap(config *rest.Config) *rest.Config {
	config.UserAgent = "kubectl-configstamp/" + version
	config.QPS = -1                           // the API server's fair queues do the rest
	config.WarningHandler = rest.NoWarnings{} // warnings are printed with what they are about
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return serverClock{next, &p.clock} })
	return config
}

// cluster is what the flags say how to reach.
func (p *plugin) cluster() (*inspect.Cluster, error) {
	config, err := p.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	return inspect.New(config, p.installation)
}

// look is the cluster with its settings, and the namespace that is asked about.
func (p *plugin) look(ctx context.Context, all bool) (cluster *inspect.Cluster, settings *seen.Settings, namespace string, err error) {
	if namespace, err = p.namespace(all); err != nil {
		return nil, nil, "", err
	}
	if cluster, err = p.cluster(); err != nil {
		return nil, nil, "", err
	}
	settings, err = cluster.Settings(ctx)
	return cluster, settings, namespace, err
}

// namespace is the one of -n, else of the context; all: "".
func (p *plugin) namespace(all bool) (string, error) {
	if all {
		return "", nil
	}
	namespace, _, err := p.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading kubeconfig: %w", err)
	}
	return namespace, nil
}

func rootCommand(p *plugin) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-configstamp",
		Short: "Say which workloads use a ConfigMap or Secret, and what is rolling, waiting or held",
		Long: "kubectl configstamp answers the questions of a person on call: which workloads use\n" +
			"this ConfigMap, why did this one restart or not, what is under way, what holds it. It\n" +
			"has only your own rights, and says what you may not look at.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl configstamp"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.ErrOut)
	flags := root.PersistentFlags()
	p.config.AddFlags(flags)
	flags.StringVar(&p.installation, "configstamp-namespace", "configstamp", "namespace in which configstamp itself runs")
	root.SetUsageTemplate(usage(root.UsageTemplate()))
	root.AddCommand(p.usersCommand(), p.impactCommand(), p.statusCommand(), p.whyCommand(), p.waitCommand(), p.versionCommand())
	root.AddCommand(p.pauseCommand(), p.unpauseCommand(), p.resumeCommand(), p.rollCommand())
	root.AddCommand(p.undoCommand(), p.acceptCommand(), p.snapshotsCommand(), p.restoreCommand())
	root.AddCommand(p.doctorCommand())
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	return root
}

// usage is cobra's help without kubectl's own flags, which every plugin has.
func usage(template string) string {
	const globals = "{{if .HasAvailableInheritedFlags}}\n\nGlobal Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}"
	const note = "\n\nkubectl's own flags work too, such as --namespace and --context: see \"kubectl options\".\n" +
		"--configstamp-namespace is the namespace in which configstamp itself runs (\"configstamp\")."
	template = strings.Replace(template, globals, note, 1)
	return strings.Replace(template, "{{if .HasAvailableLocalFlags}}", "{{if and .HasParent .HasAvailableLocalFlags}}", 1)
}

func (p *plugin) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this plugin",
		Example: "  kubectl configstamp version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(p.Out, "kubectl-configstamp %s (commit %s, %s %s/%s)\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
