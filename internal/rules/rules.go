// Package rules has the flags that say which workloads and sources count. The server's two processes declare them, and
// the plugin reads them from what the chart publishes, so that all three come to the same rules.
package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Flags are the values of the flags. Add declares them and sets their defaults.
type Flags struct {
	// Namespaces are the only ones that are served, all of them opted in; empty: OptIn counts.
	Namespaces []string
	// Excluded namespaces are never served; with Namespaces they do not count.
	Excluded []string
	// OptIn says which Namespaces are opted in.
	OptIn checksum.OptIn
	// SecretProviderClasses says that these count, too.
	SecretProviderClasses bool
	// Pins says that workloads can pin their pods.
	Pins bool

	sources, ignored    []string
	dialects, workloads []string
	settings            map[string]*string // by name
}

// Rules are what workloads are judged by.
type Rules struct {
	// Policy counts where neither a workload nor its Namespace says more.
	Policy checksum.Policy
	// Kinds are the workloads.
	Kinds workload.Table
	// Dialects are the products whose annotations count, too.
	Dialects []checksum.Dialect
}

// Add declares the flags.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.Namespaces, "namespaces", nil, "serve only these namespaces, all opted in, without rights elsewhere; empty: all, opted in as --opt-in says")
	flags.StringVar((*string)(&f.OptIn), "opt-in", string(checksum.OptInLabelled), "which namespaces are opted in: labelled: those with the label "+checksum.InjectLabel+"="+checksum.InjectEnabled+"; "+
		"all: those without the label "+checksum.InjectLabel+"="+checksum.InjectDisabled+", except "+strings.Join(checksum.OptInAll.Excluded(), " and ")+"; not with --namespaces; the webhook configuration must match")
	flags.StringSliceVar(&f.sources, "sources", []string{"configmaps", "secrets"}, "what counts; with only configmaps, configstamp needs no right to read other Secrets than its own, and Secrets restart nothing")
	flags.StringSliceVar(&f.Excluded, "excluded-namespaces", []string{"kube-system"}, "namespaces that are never served, in addition to configstamp's own; ignored with --namespaces; the webhook configuration must match")
	flags.StringSliceVar(&f.ignored, "ignore-sources", []string{"configmap/kube-root-ca.crt", "configmap/openshift-service-ca.crt"}, "sources that never count, in any namespace")
	f.settings = map[string]*string{}
	for _, setting := range checksum.Settings() {
		if setting.OnFlag() {
			usage := fmt.Sprintf("%s, where neither the workload nor its Namespace has the annotation %s: %s", setting.Meaning, setting.Key(), setting.Value)
			// pflag would take a word in backquotes as the name of the value.
			f.settings[setting.Name()] = flags.String(setting.Name(), "", strings.ReplaceAll(usage, "`", ""))
		}
	}
	flags.StringSliceVar(&f.dialects, "dialects", nil, "other products whose annotations count and opt in: reloader, wave; needs the webhook entry dialects.configstamp.dev")
	flags.StringArrayVar(&f.workloads, "workload", nil, "custom kind with a pod template, as group/version/resource=path.to.template[,rollout=Condition]; the condition is True when a rollout is healthy, False when it has failed; may be repeated")
	flags.BoolVar(&f.SecretProviderClasses, "secret-provider-classes", false, "also count SecretProviderClasses (Secrets Store CSI driver), by the versions that their pods report")
	flags.BoolVar(&f.Pins, "pins", false, "let workloads pin (configstamp.dev/pin): their pods start with the content of their stamps; "+
		"needs the rights to create and delete ConfigMaps and to list Jobs, and the webhook entry pins.configstamp.dev")
}

// Rules reads the flags. Its error names each flag that is wrong.
func (f *Flags) Rules() (Rules, error) {
	policy, policyErr := f.policy()
	kinds, kindsErr := f.kinds()
	dialects, dialectsErr := read("--dialects", f.dialects, checksum.ParseDialect)
	return Rules{policy, kinds, dialects}, errors.Join(f.checkNamespaces(), policyErr, kindsErr, dialectsErr)
}

func (f *Flags) checkNamespaces() error {
	var errs []error
	for _, namespace := range f.Namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("--namespaces: %q cannot be a namespace: %s", namespace, strings.Join(problems, "; ")))
		}
	}
	if _, err := checksum.ParseOptIn(string(f.OptIn)); err != nil {
		errs = append(errs, fmt.Errorf("--opt-in: %w", err))
	}
	if f.OptIn == checksum.OptInAll && len(f.Namespaces) > 0 {
		errs = append(errs, errors.New("--opt-in=all and --namespaces exclude each other: --namespaces opts in the namespaces that it lists, and no others"))
	}
	return errors.Join(errs...)
}

// ConfigMapsAlone returns whether no Secret counts.
func (f *Flags) ConfigMapsAlone() bool { return !slices.Contains(f.sources, "secrets") }

// Never returns the namespaces that are not served by an installation in a namespace of its own. A list of namespaces is
// an opt-in by name, which no default overrules.
func (f *Flags) Never(own string) []string {
	if len(f.Namespaces) > 0 {
		return []string{own}
	}
	return slices.Concat([]string{own}, f.Excluded, f.OptIn.Excluded())
}

// MayServe returns whether anything in a namespace can be opted in.
func (f *Flags) MayServe(own, namespace string) bool {
	return !slices.Contains(f.Never(own), namespace) && (len(f.Namespaces) == 0 || slices.Contains(f.Namespaces, namespace))
}

func (f *Flags) policy() (checksum.Policy, error) {
	var errs []error
	if sources := slices.Sorted(slices.Values(f.sources)); !slices.Equal(sources, []string{"configmaps"}) && !slices.Equal(sources, []string{"configmaps", "secrets"}) {
		errs = append(errs, fmt.Errorf("--sources=%s: want configmaps,secrets or configmaps", strings.Join(f.sources, ",")))
	}
	ignored, err := read("--ignore-sources", f.ignored, checksum.ParseSource)
	errs = append(errs, err)
	given := map[string]string{}
	for _, setting := range checksum.Settings() {
		if value := f.settings[setting.Name()]; value != nil && *value != "" {
			given[setting.Key()] = *value
		}
	}
	policy := checksum.DefaultPolicy(ignored...).With(checksum.Level{Origin: checksum.OfFlag, Annotations: given})
	policy.SecretProviderClasses, policy.ConfigMapsAlone = f.SecretProviderClasses, f.ConfigMapsAlone()
	for _, fault := range policy.Faults {
		errs = append(errs, fault)
	}
	if policy.PinFault != nil {
		errs = append(errs, *policy.PinFault)
	}
	return policy, errors.Join(errs...)
}

// kinds returns the table of workloads.
func (f *Flags) kinds() (workload.Table, error) {
	kinds, err := read("--workload", f.workloads, workload.ParseKind)
	if err != nil {
		return nil, err
	}
	var given workload.Table
	for _, kind := range kinds {
		if other, twice := given.Find(kind.Group, kind.Resource); twice {
			return nil, fmt.Errorf("--workload: %s is given twice, with the pod templates %s and %s: one pod template of a kind counts; remove one of the two",
				kind, strings.Join(other.Template, "."), strings.Join(kind.Template, "."))
		}
		given = append(given, kind)
	}
	return workload.Builtin().With(workload.Known()...).With(given...), nil
}

// read parses the values of a flag.
func read[T any](flag string, values []string, parse func(string) (T, error)) ([]T, error) {
	all := make([]T, 0, len(values))
	for _, text := range values {
		value, err := parse(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		all = append(all, value)
	}
	return all, nil
}
