package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// settingsName is the ConfigMap in configstamp's own namespace that has the server's flags, a key for each flag. Lists
// are separated by commas, that of the flag "workload" by blanks.
const settingsName = "configstamp-settings"

// elsewhere is the value of a flag that the chart does not know, such as that of an environment variable with valueFrom.
const elsewhere = "unknown"

// clusterSettings is what counts in the whole cluster, as far as configstamp-settings has it.
type clusterSettings struct {
	// Installation is configstamp's own namespace.
	Installation string
	// Read says that the ConfigMap was read, and Absent that there is none. Without it, the rest is the program's defaults.
	Read, Absent bool
	// Policy counts where neither a workload nor its Namespace says more.
	Policy checksum.Policy
	// Kinds are the workloads that the cluster serves.
	Kinds workload.Table
	// Dialects are the products whose annotations count too.
	Dialects []checksum.Dialect
	// OptIn says which Namespaces are opted in.
	OptIn checksum.OptIn
	// Namespaces are the only ones that are served, all of them opted in; empty: OptIn counts. Excluded ones are
	// never served. The chart publishes neither; doctor reads them from the webhook configuration.
	Namespaces, Excluded []string
	// Pins says that workloads can pin their pods.
	Pins bool
	// Unread lists what could not be read, and why.
	Unread []string
}

// readSettings reads configstamp-settings, and which kinds of workloads the cluster serves. If the ConfigMap cannot be
// read, the program's defaults are assumed.
func (p *plugin) readSettings(ctx context.Context) (*clusterSettings, error) {
	client, _, err := p.clients()
	if err != nil {
		return nil, err
	}
	s := &clusterSettings{Installation: p.installation}
	name := "configmaps " + settingsName + " in namespace " + p.installation
	object, err := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(p.installation).Get(ctx, settingsName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		s.Absent = true
		s.Unread = append(s.Unread, name+": not found, so the program's defaults are assumed")
	case apierrors.IsForbidden(err):
		s.Unread = append(s.Unread, name+": forbidden, so the program's defaults are assumed")
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", name, err)
	default:
		s.Read = true
	}
	flags := map[string]string{}
	if s.Read {
		if flags, _, err = unstructured.NestedStringMap(object.Object, "data"); err != nil {
			return nil, fmt.Errorf("reading %s: it does not have the form of a ConfigMap", name)
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		if flags[flag] == elsewhere {
			s.Unread = append(s.Unread, "the flag "+flag+": its value is in another object than "+settingsName+", so the program's default is assumed")
			delete(flags, flag)
		}
	}
	if err := s.take(flags); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	s.Kinds, err = p.servedKinds(ctx, s.Kinds)
	return s, err
}

// take reads flags. A flag that is missing or empty has its default; docs/reference.md lists those.
func (s *clusterSettings) take(flags map[string]string) error {
	list := func(flag, byDefault string) []string {
		text := strings.TrimSpace(flags[flag])
		if text == "" {
			text = byDefault
		}
		return strings.FieldsFunc(text, func(letter rune) bool { return letter == ',' || letter == ' ' || letter == '\n' })
	}
	var ignored []checksum.Source
	for _, text := range list("ignore-sources", "configmap/kube-root-ca.crt,configmap/openshift-service-ca.crt") {
		source, err := checksum.ParseSource(text)
		if err != nil {
			return fmt.Errorf("key ignore-sources: %w", err)
		}
		ignored = append(ignored, source)
	}
	given := map[string]string{}
	for _, setting := range checksum.Settings() {
		if text := strings.TrimSpace(flags[setting.Name()]); setting.OnFlag() && text != "" {
			given[setting.Key()] = text
		}
	}
	s.Policy = checksum.DefaultPolicy(ignored...).With(checksum.Level{Origin: checksum.OfFlag, Annotations: given})
	s.Policy.SecretProviderClasses = flags["secret-provider-classes"] == "true"
	s.Policy.ConfigMapsAlone = !slices.Contains(list("sources", "configmaps,secrets"), "secrets")
	for _, text := range list("dialects", "") {
		dialect, err := checksum.ParseDialect(text)
		if err != nil {
			return fmt.Errorf("key dialects: %w", err)
		}
		s.Dialects = append(s.Dialects, dialect)
	}
	s.Kinds = workload.Builtin().With(workload.Known()...)
	for _, text := range strings.Fields(flags["workload"]) {
		kind, err := workload.ParseKind(text)
		if err != nil {
			return fmt.Errorf("key workload: %w", err)
		}
		s.Kinds = s.Kinds.With(kind)
	}
	s.Pins = flags["pins"] == "true"
	var err error
	if s.OptIn, err = checksum.ParseOptIn(cmp.Or(strings.TrimSpace(flags["opt-in"]), string(checksum.OptInLabelled))); err != nil {
		return fmt.Errorf("key opt-in: %w", err)
	}
	s.Namespaces, s.Excluded = list("namespaces", ""), append(list("excluded-namespaces", "kube-system"), s.OptIn.Excluded()...)
	return nil
}

// PolicyOf returns what counts for a workload whose Namespace has some settings. existing lists the names of the sources
// of a kind in that namespace, for those that are named by patterns.
func (s *clusterSettings) PolicyOf(object *workload.Object, onNamespace map[string]string, existing func(checksum.Kind) []string) checksum.Policy {
	return s.Policy.With(
		checksum.Level{Origin: checksum.OfWorkload, Annotations: checksum.SettingsOf(object.Annotations)},
		checksum.Level{Origin: checksum.OfNamespace, Annotations: onNamespace},
	).Translated(object.Foreign(s.Dialects), existing)
}
