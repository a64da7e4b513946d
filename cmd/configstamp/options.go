package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// envPrefix and a flag's name in capitals, "-" as "_", is the environment
// variable that gives the flag's value when the flag is not on the command line.
const envPrefix = "CONFIGSTAMP_"

// maxVerbosity is the most that may be logged: from 8 on client-go writes the
// bodies of requests and answers, Secrets among them.
const maxVerbosity = 7

// common are the options of both processes.
type common struct {
	serving
	kubeconfig    string
	namespace     string
	name          string
	keyGrace      time.Duration
	namespaces    []string
	sources       []string
	excluded      []string
	optIn         checksum.OptIn
	ignoreSources []string
	settings      map[string]*string // by name
	dialects      []string
	workloads     []string
	providers     bool
	pins          bool
	logFormat     string
	verbosity     int
}

func (o *common) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; empty: the Pod's service account")
	flags.StringVar(&o.namespace, "namespace", "configstamp", "configstamp's own namespace")
	flags.StringVar(&o.name, "name", "configstamp", "name of this installation, its Service and its webhook configurations; followed by -key and -authority of its Secrets, by -controller of its Lease")
	flags.DurationVar(&o.keyGrace, "key-grace", time.Minute, "how long after a newer key appears configstamp begins to use it")
	flags.StringSliceVar(&o.namespaces, "namespaces", nil, "serve only these namespaces, all opted in, without rights elsewhere; empty: all, opted in as --opt-in says")
	flags.StringVar((*string)(&o.optIn), "opt-in", string(checksum.OptInLabelled), "which namespaces are opted in: labelled: those with the label "+checksum.InjectLabel+"="+checksum.InjectEnabled+"; "+
		"all: those without the label "+checksum.InjectLabel+"="+checksum.InjectDisabled+", except "+strings.Join(checksum.OptInAll.Excluded(), " and ")+"; not with --namespaces; the webhook configuration has to match")
	flags.StringSliceVar(&o.sources, "sources", []string{"configmaps", "secrets"}, "what counts; with configmaps alone, configstamp needs no right to read Secrets but its own, and Secrets restart nothing")
	flags.StringSliceVar(&o.excluded, "excluded-namespaces", []string{"kube-system"}, "namespaces that are never served, beside configstamp's own; ignored with --namespaces; the webhook configuration has to match")
	flags.StringSliceVar(&o.ignoreSources, "ignore-sources", []string{"configmap/kube-root-ca.crt", "configmap/openshift-service-ca.crt"}, "sources that never count, in any namespace")
	o.settings = map[string]*string{}
	for _, setting := range checksum.Settings() {
		if setting.OnFlag() {
			usage := fmt.Sprintf("%s, where neither the workload nor its Namespace has the annotation %s: %s", setting.Meaning, setting.Key(), setting.Value)
			// pflag would take a word in backquotes as the name of the value.
			o.settings[setting.Name()] = flags.String(setting.Name(), "", strings.ReplaceAll(usage, "`", ""))
		}
	}
	flags.StringSliceVar(&o.dialects, "dialects", nil, "products whose annotations count too, and opt in: reloader, wave; needs the webhook entry dialects.configstamp.dev")
	flags.StringArrayVar(&o.workloads, "workload", nil, "custom kind with a pod template, as group/version/resource=path.to.template[,rollout=Condition]; the condition is True when a rollout is healthy, False when it has failed; may be repeated")
	flags.BoolVar(&o.providers, "secret-provider-classes", false, "SecretProviderClasses (Secrets Store CSI driver) count too, by the versions that their pods report")
	flags.BoolVar(&o.pins, "pins", false, "let workloads pin (configstamp.dev/pin): their pods start with the content of their stamps; "+
		"needs the rights to create and delete ConfigMaps and to list Jobs, and the webhook entry pins.configstamp.dev")
	o.serving.add(flags)
	flags.StringVar(&o.logFormat, "log-format", "json", "format of the log on standard error: json or text")
	flags.IntVarP(&o.verbosity, "v", "v", 0, fmt.Sprintf("verbosity: 0: what an operator acts on; 2: each admission; 4: client-go; at most %d", maxVerbosity))
}

func (o *common) check() error {
	errs := []error{o.serving.check()}
	for _, namespace := range append([]string{o.namespace}, o.namespaces...) {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("--namespace(s): %q cannot be a namespace: %s", namespace, strings.Join(problems, "; ")))
		}
	}
	if _, err := checksum.ParseOptIn(string(o.optIn)); err != nil {
		errs = append(errs, fmt.Errorf("--opt-in: %w", err))
	}
	if o.optIn == checksum.OptInAll && len(o.namespaces) > 0 {
		errs = append(errs, errors.New("--opt-in=all and --namespaces exclude each other: --namespaces opts in the namespaces that it lists, and no others"))
	}
	if sources := slices.Sorted(slices.Values(o.sources)); !slices.Equal(sources, []string{"configmaps"}) && !slices.Equal(sources, []string{"configmaps", "secrets"}) {
		errs = append(errs, fmt.Errorf("--sources=%s: want configmaps,secrets or configmaps", strings.Join(o.sources, ",")))
	}
	if _, err := o.rules(); err != nil {
		errs = append(errs, err)
	}
	if o.logFormat != "json" && o.logFormat != "text" {
		errs = append(errs, fmt.Errorf("--log-format=%s: want json or text", o.logFormat))
	}
	if o.verbosity < 0 || o.verbosity > maxVerbosity {
		errs = append(errs, fmt.Errorf("-v=%d: want 0 to %d; beyond that client-go logs the bodies of Secrets", o.verbosity, maxVerbosity))
	}
	if o.keyGrace < 0 {
		errs = append(errs, fmt.Errorf("--key-grace=%s: want no less than 0s", o.keyGrace))
	}
	return errors.Join(errs...)
}

func (o *common) configMapsAlone() bool { return !slices.Contains(o.sources, "secrets") }

// never are the namespaces that are not served. A list of namespaces is an opt-in
// by name, which no default overrules.
func (o *common) never() []string {
	if len(o.namespaces) > 0 {
		return []string{o.namespace}
	}
	return slices.Concat([]string{o.namespace}, o.excluded, o.optIn.Excluded())
}

// mayServe reports whether anything in a namespace can be opted in.
func (o *common) mayServe(namespace string) bool {
	return !slices.Contains(o.never(), namespace) && (len(o.namespaces) == 0 || slices.Contains(o.namespaces, namespace))
}

// rules are what both processes judge workloads by.
type rules struct {
	policy   checksum.Policy
	kinds    workload.Table
	dialects []checksum.Dialect
}

// rules reads them from the flags; its error tells of every flag that is wrong.
func (o *common) rules() (rules, error) {
	policy, policyErr := o.policy()
	kinds, kindsErr := o.kinds()
	dialects, dialectsErr := o.spoken()
	return rules{policy, kinds, dialects}, errors.Join(policyErr, kindsErr, dialectsErr)
}

func (o *common) policy() (checksum.Policy, error) {
	ignored := make([]checksum.Source, 0, len(o.ignoreSources))
	for _, text := range o.ignoreSources {
		source, err := checksum.ParseSource(strings.TrimSpace(text))
		if err != nil {
			return checksum.Policy{}, fmt.Errorf("--ignore-sources: %w", err)
		}
		ignored = append(ignored, source)
	}
	given := map[string]string{}
	for _, setting := range checksum.Settings() {
		if value := o.settings[setting.Name()]; value != nil && *value != "" {
			given[setting.Key()] = *value
		}
	}
	policy := checksum.DefaultPolicy(ignored...).With(checksum.Level{Origin: checksum.OfFlag, Annotations: given})
	policy.SecretProviderClasses, policy.ConfigMapsAlone = o.providers, o.configMapsAlone()
	var errs []error
	for _, fault := range policy.Faults {
		errs = append(errs, fault)
	}
	if policy.PinFault != nil {
		errs = append(errs, *policy.PinFault)
	}
	return policy, errors.Join(errs...)
}

// kinds is the table of workloads.
func (o *common) kinds() (workload.Table, error) {
	var given workload.Table
	for _, text := range o.workloads {
		kind, err := workload.ParseKind(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--workload: %w", err)
		}
		if other, twice := given.Find(kind.Group, kind.Resource); twice {
			return nil, fmt.Errorf("--workload: %s is given twice, with the pod templates %s and %s: one pod template of a kind counts; remove one of the two",
				kind, strings.Join(other.Template, "."), strings.Join(kind.Template, "."))
		}
		given = append(given, kind)
	}
	return workload.Builtin().With(workload.Known()...).With(given...), nil
}

// spoken are the dialects that count.
func (o *common) spoken() ([]checksum.Dialect, error) {
	dialects := make([]checksum.Dialect, 0, len(o.dialects))
	for _, text := range o.dialects {
		dialect, err := checksum.ParseDialect(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--dialects: %w", err)
		}
		dialects = append(dialects, dialect)
	}
	return dialects, nil
}

// logger makes the structured log of the process, which client-go's goes to as well.
func (o *common) logger() klog.Logger {
	// logr's verbosity n is slog's level -n.
	options := &slog.HandlerOptions{Level: slog.Level(-o.verbosity)}
	var handler slog.Handler = slog.NewJSONHandler(os.Stderr, options)
	if o.logFormat == "text" {
		handler = slog.NewTextHandler(os.Stderr, options)
	}
	log := logr.FromSlogHandler(handler)
	klog.SetLoggerWithOptions(log, klog.ContextualLogger(true))
	return log
}

// run is what each command does: read its flags, check them, and start what they
// ask for, with a logger in its context.
func run(o *common, check func() error, start func(context.Context) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		if err := fromEnvironment(command); err != nil {
			return err
		}
		if err := check(); err != nil {
			return err
		}
		return start(klog.NewContext(command.Context(), o.logger()))
	}
}

// fromEnvironment gives every flag that was not set the value of its
// environment variable, and tells of it in the flag's help.
func fromEnvironment(command *cobra.Command) error {
	var errs []error
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		value, ok := os.LookupEnv(envName(flag))
		if !ok || flag.Changed {
			return
		}
		if err := command.Flags().Set(flag.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", envName(flag), err))
		}
	})
	return errors.Join(errs...)
}

func envName(flag *pflag.Flag) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
}

// describeEnvironment adds its environment variable to each flag's help. It lists flags as they are declared,
// because their texts refer to their neighbours.
func describeEnvironment(command *cobra.Command) {
	command.Flags().SortFlags = false
	command.Flags().VisitAll(func(flag *pflag.Flag) { flag.Usage += " [$" + envName(flag) + "]" })
}
