package inspect

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// SettingsName is the ConfigMap in configstamp's own namespace that says what the server's
// flags are: one key for each flag, by the flag's name. Lists are separated by commas, and
// that of the flag "workload" by blanks.
const SettingsName = "configstamp-settings"

// elsewhere is the value of a flag that the chart does not know (deploy/chart, an
// environment variable with valueFrom).
const elsewhere = "unknown"

// Settings reads what counts in the whole cluster: configstamp-settings, and what kinds of
// workloads the cluster serves. Where the ConfigMap cannot be read the program's defaults
// are taken, which is noted. An error is one of the API server, or a value that cannot be
// read.
func (c *Cluster) Settings(ctx context.Context) (*seen.Settings, error) {
	q := query{gvr: v1("", "configmaps"), namespace: c.installation, name: SettingsName}
	raw, forbidden, err := c.look(ctx, q)
	if err != nil {
		return nil, err
	}
	var read struct {
		Data map[string]string `json:"data"`
	}
	if raw == nil {
		why := "not found"
		if forbidden {
			why = "forbidden"
		}
		c.miss(q.String(), why+", so the program's defaults are assumed")
	} else if err := unmarshal(raw, &read); err != nil {
		return nil, fmt.Errorf("reading %s: it does not have the form of a ConfigMap", q.String())
	}
	for flag, value := range read.Data {
		if value == elsewhere {
			c.miss("the flag "+flag, "its value is in another object than "+SettingsName+", so the program's default is assumed")
			delete(read.Data, flag)
		}
	}
	settings, err := settingsOf(read.Data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", q.String(), err)
	}
	settings.Installation, settings.Read, settings.Absent = c.installation, raw != nil, raw == nil && !forbidden
	settings.Kinds, err = c.served(ctx, settings.Kinds)
	return settings, err
}

// defaults are what the server does without flags; docs/reference.md lists them.
func defaults() map[string]string {
	return map[string]string{
		"sources":             "configmaps,secrets",
		"ignore-sources":      "configmap/kube-root-ca.crt,configmap/openshift-service-ca.crt",
		"excluded-namespaces": "kube-system",
		"settle":              "2s", "step": "1", "max-unsettled": "default", "soak": "10s", "first-soak": "30s",
		"crash-deadline": "30s", "rollout-deadline": "10m", "foreign-halt": "1h", "replicated": "together",
		"max-unsettled-per-namespace": "0", "secret-provider-classes": "false", "pins": "false",
	}
}

// settingsOf reads flags from texts; what is not there is the default.
func settingsOf(texts map[string]string) (*seen.Settings, error) {
	r := reader{texts: texts, defaults: defaults()}
	s := &seen.Settings{Namespaces: r.list("namespaces"), Excluded: r.list("excluded-namespaces")}
	ignored := make([]checksum.Source, 0, 2)
	for _, text := range r.list("ignore-sources") {
		source, err := checksum.ParseSource(text)
		r.note("ignore-sources", err)
		ignored = append(ignored, source)
	}
	given := map[string]string{}
	for _, setting := range checksum.Settings() {
		if text := r.text(setting.Name()); setting.OnFlag() && text != "" {
			given[setting.Key()] = text
		}
	}
	s.Policy = checksum.DefaultPolicy(ignored...).With(checksum.Level{Origin: checksum.OfFlag, Annotations: given})
	s.Policy.SecretProviderClasses = r.text("secret-provider-classes") == "true"
	s.Policy.ConfigMapsAlone = !slices.Contains(r.list("sources"), "secrets")
	for _, text := range r.list("dialects") {
		dialect, err := checksum.ParseDialect(text)
		r.note("dialects", err)
		s.Dialects = append(s.Dialects, dialect)
	}
	s.Kinds = workload.Builtin().With(workload.Known()...)
	for _, text := range strings.Fields(r.text("workload")) {
		kind, err := workload.ParseKind(text)
		r.note("workload", err)
		if err == nil {
			s.Kinds = s.Kinds.With(kind)
		}
	}
	s.Pins = r.text("pins") == "true"
	s.Limits = r.limits()
	return s, r.err
}

// reader reads flags, and keeps the first that cannot be read.
type reader struct {
	texts, defaults map[string]string
	err             error
}

func (r *reader) note(flag string, err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("key %s: %w", flag, err)
	}
}

func (r *reader) text(flag string) string {
	if text := strings.TrimSpace(r.texts[flag]); text != "" {
		return text
	}
	return r.defaults[flag]
}

func (r *reader) list(flag string) []string {
	return strings.FieldsFunc(r.text(flag), func(letter rune) bool { return letter == ',' || letter == ' ' || letter == '\n' })
}

func (r *reader) duration(flag string) time.Duration {
	value, err := time.ParseDuration(r.text(flag))
	r.note(flag, err)
	return value
}

func (r *reader) number(flag string) int {
	value, err := strconv.Atoi(r.text(flag))
	r.note(flag, err)
	return value
}

func (r *reader) limits() rollout.Limits {
	limits := rollout.Limits{
		Settle: r.duration("settle"), Soak: r.duration("soak"), FirstSoak: r.duration("first-soak"), CrashDeadline: r.duration("crash-deadline"),
		RolloutDeadline: r.duration("rollout-deadline"), ForeignHalt: r.duration("foreign-halt"),
		UnsettledPerNamespace: r.number("max-unsettled-per-namespace"), ReplicatedEach: r.text("replicated") == "each",
	}
	if r.text("step") != "off" {
		limits.Step = r.number("step")
	}
	r.note("max-unsettled", limits.Unsettled.Set(r.text("max-unsettled")))
	return limits
}

// v1 names a resource of that version.
func v1(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
}
