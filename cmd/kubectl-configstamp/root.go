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
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Set by the linker.
//
//nolint:gochecknoglobals // -ldflags -X reaches nothing else
var (
	version = "dev"
	commit  = "unknown"
)

// ownLabel selects configstamp's own objects.
const ownLabel = "app.kubernetes.io/name=configstamp"

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

// clients returns a client of objects of any kind, and one of their metadata alone.
func (p *plugin) clients() (objects dynamic.Interface, metadataOf metadata.Interface, err error) {
	config, err := p.config.ToRESTConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	if objects, err = dynamic.NewForConfig(config); err == nil {
		metadataOf, err = metadata.NewForConfig(config)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("making a client of the cluster: %w", err)
	}
	return objects, metadataOf, nil
}

// look returns the cluster's settings, and the namespace that is asked about.
func (p *plugin) look(ctx context.Context, all bool) (settings *clusterSettings, namespace string, err error) {
	if namespace, err = p.namespace(all); err != nil {
		return nil, "", err
	}
	settings, err = p.readSettings(ctx)
	return settings, namespace, err
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
		Short: "Show which workloads use a ConfigMap or Secret, and what is rolling, waiting or held",
		Long: "kubectl configstamp answers on-call questions: which workloads use this ConfigMap,\n" +
			"why did this one restart or not, what is under way, and what holds it? It has only\n" +
			"your own rights, and lists what you may not read.",
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
	root.AddCommand(p.usersCommand(), p.statusCommand(), p.whyCommand(), p.waitCommand(), p.versionCommand())
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
		Short:   "Print the version of this plugin, and of what runs in the cluster",
		Example: "  kubectl configstamp version",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			fmt.Fprintf(p.Out, "kubectl-configstamp %s (commit %s, %s %s/%s)\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			installed, err := p.installed(command.Context())
			if err != nil {
				installed = []string{"not known: " + err.Error()}
			}
			fmt.Fprintln(p.text(p.Out), "in namespace "+p.installation+": "+strings.Join(installed, "; "))
			return nil
		},
	}
}

// installed describes configstamp's Deployments in the cluster: the version of the chart, and the images.
func (p *plugin) installed(ctx context.Context) (texts []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, _, err := p.clients()
	if err != nil {
		return nil, err
	}
	deployments, err := readAll[appsv1.Deployment](ctx, client, appsv1.SchemeGroupVersion.WithResource("deployments"), p.installation, metav1.ListOptions{LabelSelector: ownLabel})
	for i := range deployments {
		d := &deployments[i]
		text := "deployment/" + d.Name + " " + d.Labels["app.kubernetes.io/version"]
		for _, container := range d.Spec.Template.Spec.Containers {
			text += ", " + container.Name + " " + container.Image
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		texts = []string{"no Deployment with the label " + ownLabel}
	}
	return texts, err
}
