package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rules"
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
	// Flags and Rules are those of the server. The chart publishes neither --namespaces nor --excluded-namespaces: doctor
	// reads them from the webhook configuration.
	rules.Flags
	rules.Rules
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

// take reads the published values of flags. A flag that is missing or empty has its default.
func (s *clusterSettings) take(published map[string]string) error {
	flags := pflag.NewFlagSet(settingsName, pflag.ContinueOnError)
	s.Add(flags)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(published)) {
		flag, values := flags.Lookup(name), []string{strings.TrimSpace(published[name])}
		if flag == nil || values[0] == "" { // it is none that judges workloads
			continue
		}
		if flag.Value.Type() == "stringArray" {
			values = strings.Fields(published[name])
		}
		for _, value := range values {
			errs = append(errs, flags.Set(name, value))
		}
	}
	var err error
	s.Rules, err = s.Flags.Rules()
	return errors.Join(append(errs, err)...)
}

// PolicyOf returns what counts for a workload whose Namespace has some settings. existing lists the names of the sources
// of a kind in that namespace, for those that are named by patterns.
func (s *clusterSettings) PolicyOf(object *workload.Object, onNamespace map[string]string, existing func(checksum.Kind) []string) checksum.Policy {
	return s.Policy.With(
		checksum.Level{Origin: checksum.OfWorkload, Annotations: checksum.SettingsOf(object.Annotations)},
		checksum.Level{Origin: checksum.OfNamespace, Annotations: onNamespace},
	).Translated(object.Foreign(s.Dialects), existing)
}
