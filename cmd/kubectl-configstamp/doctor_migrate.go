package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

const reloaderDomain = "reloader.stakater.com/"

// migrationChecks returns the checks of doctor --migrate. Their findings have codes of their own, which docs/kubectl.md
// lists. The check reloader assumes the settings after the migration, which the others need.
func migrationChecks() []check {
	return []check{
		{"reloader", (*doctor).reloader},
		{"workloads", (*doctor).settingsWritten},
		{"migration", (*doctor).migration},
	}
}

// say adds a finding with a code.
func (d *doctor) say(code string, weight weight, w *checkedWorkload, text, remedy string) {
	d.find(weight, w.Namespace, w.Text(), text, remedy)
	d.findings[len(d.findings)-1].Check = code
}

// reloaderFlag is a row of the table of Reloader's flags and environment variables, as of version 1.4.21.
type reloaderFlag struct {
	names []string
	// instead is what configstamp has, or "none".
	instead string
	// missed reports that the flag does something that configstamp does not do by itself.
	missed bool
}

func reloaderFlags() []reloaderFlag {
	return []reloaderFlag{
		{[]string{"auto-reload-all"}, "`optIn: all`", false},
		{[]string{"namespaces", "KUBERNETES_NAMESPACE"}, "`namespaces: […]`", false},
		{[]string{"namespaces-to-ignore"}, "`excludedNamespaces: […]`", false},
		{[]string{"namespace-selector"}, "none; list the other namespaces in `excludedNamespaces`", true},
		{[]string{"resource-label-selector"}, "none; annotate the other sources `configstamp.dev/ignore: \"true\"`", true},
		{[]string{"resources-to-ignore"}, "`secrets`: `sources: [configmaps]`; `configmaps`: none, annotate Namespaces `configstamp.dev/only: secret/*`", true},
		{[]string{"ignored-workload-types"}, "always so: no Job is started or created again", false},
		{[]string{"is-Argo-Rollouts"}, "always so", false},
		{[]string{"reload-strategy"}, "always annotations of the pod template", false},
		{[]string{"reload-on-create", "reload-on-delete"}, "none; only an optional source that appears or is deleted restarts workloads", true},
		{[]string{"sync-after-restart"}, "always so, without restarts where nothing changed", false},
		{[]string{"enable-ha"}, "`replicas: 2`, the default", false},
		{[]string{"enable-csi-integration"}, "`secretProviderClasses: true`", false},
		{[]string{
			"auto-annotation", "configmap-auto-annotation", "secret-auto-annotation", "configmap-annotation", "secret-annotation", "ignore-annotation",
			"auto-search-annotation", "search-match-annotation", "pause-deployment-annotation", "pause-deployment-time-annotation",
		}, "none; add the annotations under Reloader's own names", true},
		{[]string{"webhook-url"}, "none", true},
		{[]string{"ALERT_ON_RELOAD", "ALERT_SINK", "ALERT_WEBHOOK_URL", "ALERT_WEBHOOK_PROXY", "ALERT_ADDITIONAL_INFO"}, "none; Events and alerts, as in examples/alertmanager", true},
		{[]string{"log-format", "log-level"}, "`log.format`, `log.verbosity`", false},
		{[]string{"enable-pprof", "pprof-addr", "METRICS_COUNT_BY_NAMESPACE"}, "none", false},
	}
}

// rowOf returns the row of a flag or an environment variable.
func rowOf(name string) (row reloaderFlag, known bool) {
	rows := reloaderFlags()
	i := slices.IndexFunc(rows, func(row reloaderFlag) bool { return slices.Contains(row.names, name) })
	if i < 0 {
		return reloaderFlag{instead: "this version of the plugin does not know it", missed: true}, false
	}
	return rows[i], true
}

// reloader is a Reloader that runs in the cluster.
type reloader struct {
	namespace string
	flags     map[string]string // with the environment variables of the table
}

func (r *reloader) isOn(flag string) bool {
	on, _ := strconv.ParseBool(r.flags[flag])
	return on
}

// watches returns whether it restarts workloads of a namespace. Its label selectors are not evaluated.
func (r *reloader) watches(namespace string) bool {
	_, alone := r.flags["KUBERNETES_NAMESPACE"]
	switch only := r.flags["namespaces"]; {
	case only != "":
		return slices.Contains(strings.Split(only, ","), namespace)
	case alone:
		return namespace == r.namespace
	}
	return !slices.Contains(strings.Split(r.flags["namespaces-to-ignore"], ","), namespace)
}

// reloader looks for Reloader, and says what configstamp has instead of its flags.
func (d *doctor) reloader(ctx context.Context) error {
	d.readWebhooks(ctx)
	deployments := slices.DeleteFunc(slices.Clone(d.settings.Kinds), func(kind *workload.Kind) bool { return kind.Resource != "deployments" })
	unseen, err := d.eachWorkload(deployments, "", d.takeReloader)
	if err = errors.Join(err, errorsOf(unseen)); err == nil && len(d.reloaders) == 0 {
		d.find(isNote, "", "the cluster", "no Deployment of Reloader was found, so --auto-reload-all is assumed to be off", "")
	}
	d.settings.Dialects = []checksum.Dialect{checksum.Reloader, checksum.Wave}
	if slices.ContainsFunc(d.reloaders, func(r reloader) bool { return r.isOn("auto-reload-all") }) {
		d.settings.OptIn = checksum.OptInAll
	}
	return errors.Join(err, d.unlisted)
}

func (d *doctor) takeReloader(t *target) error {
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t.object().Object, &deployment); err != nil {
		return fmt.Errorf("reading %s: %w", t.place(), err)
	}
	for _, c := range deployment.Spec.Template.Spec.Containers {
		if !strings.Contains(c.Image, "stakater/reloader") && !slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == "RELOADER_DEPLOYMENT_NAME" }) {
			continue
		}
		r := reloader{t.Namespace, flagsIn(c)}
		d.reloaders = append(d.reloaders, r)
		for _, name := range slices.Sorted(maps.Keys(r.flags)) {
			row, _ := rowOf(name)
			value, weight, text := r.flags[name], isNote, name
			if on, err := strconv.ParseBool(value); row.missed && (on || err != nil) && !strings.Contains(value, reloaderDomain) {
				weight = isWarning
			}
			if !strings.Contains(name, "_") {
				text = "--" + name
			}
			d.find(weight, t.Namespace, t.String(), text+"="+value+": "+strings.ReplaceAll(row.instead, "`", ""), "")
		}
	}
	return nil
}

// flagsIn returns the flags of a container of Reloader. The value stands behind "=", or is the next argument.
func flagsIn(c corev1.Container) map[string]string {
	flags, args := map[string]string{}, slices.Concat(c.Command, c.Args)
	for i, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		if !strings.HasPrefix(name, "--") {
			continue
		}
		if !given {
			value = "true"
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				value = args[i+1]
			}
		}
		flags[strings.TrimPrefix(name, "--")] = strings.Trim(value, `"`)
	}
	for _, variable := range c.Env {
		if _, known := rowOf(variable.Name); known {
			flags[variable.Name] = variable.Value
		}
	}
	return flags
}

// migration says what restarts workloads today, what would differ with configstamp, and what only the other product undoes.
func (d *doctor) migration(context.Context) error {
	for i := range d.workloads {
		w := &d.workloads[i]
		d.leftOver(w)
		settings, object, standIns := d.today(w)
		var was []checksum.Source
		if object.Foreign(settings.Dialects).OptsIn() {
			_, was = d.counting(settings, object, w.references)
		}
		if !d.restarted(w, len(was) > 0) {
			continue
		}
		namespace := d.namespaces[w.Namespace]
		asToday, _ := d.settings.Serves(object, namespace)
		if standing, why := d.settings.Serves(w.object, namespace); standing == notServed && asToday == notServed {
			words, remedy := d.settings.notServedWords(w.object, why)
			d.say("differs", isWarning, w, "configstamp would leave it alone: "+words, remedy)
		} else {
			d.differences(w, standing, was, standIns)
		}
	}
	return nil
}

func (d *doctor) leftOver(w *checkedWorkload) {
	say := func(text, remedy string) { d.say("left-over", isWarning, w, text, remedy) }
	const pausedAt, scheduling = "deployment." + reloaderDomain + "paused-at", "wave.pusher.com/scheduling-disabled"
	if _, has := w.object.Annotations[pausedAt]; has {
		say("Reloader paused it ("+pausedAt+"). Wait until Reloader resumes it, or:", "kubectl rollout resume {of} && kubectl annotate {of} "+pausedAt+"-")
	}
	if scheduler, has := w.object.Annotations[scheduling]; has {
		say("a source is missing, so wave disabled its scheduler ("+scheduling+"). Create the source while wave still runs, or:",
			`kubectl patch {of} --type=json -p '[{"op":"remove","path":"/metadata/annotations/`+strings.ReplaceAll(scheduling, "/", "~1")+`"},`+
				`{"op":"replace","path":"/spec/template/spec/schedulerName","value":"`+cmp.Or(scheduler, corev1.DefaultSchedulerName)+`"}]'`)
	}
	if slices.Contains(w.finalizers, "wave.pusher.com/finalizer") {
		say("an older wave left its finalizer wave.pusher.com/finalizer, and owner references on sources. Run wave v0.11.0 once: it removes both", "kubectl get {of} -o yaml")
	}
	for _, r := range d.reloaders {
		for name, key := range r.flags {
			if strings.HasSuffix(name, "-annotation") && !strings.Contains(key, reloaderDomain) && (w.object.Annotations[key] != "" || w.object.TemplateAnnotations()[key] != "") {
				d.say("differs", isWarning, w, "its annotation "+key+" (Reloader's --"+name+") is not read; add the one with Reloader's own name", "kubectl edit {of}")
			}
		}
	}
}

// today returns the settings by which a workload restarts today, and the workload with annotations as Reloader reads them:
// "ignore" and "match" count on sources alone. With --auto-reload-all a kind of source counts unless an annotation says
// otherwise: standIns are the annotations that mean the same.
func (d *doctor) today(w *checkedWorkload) (settings *clusterSettings, object *workload.Object, standIns []string) {
	copied, read := *d.settings, *w.object
	settings, object = &copied, &read
	watched, reloadsAll, providers := len(d.reloaders) == 0, false, len(d.reloaders) == 0
	for _, r := range d.reloaders {
		if r.watches(w.Namespace) {
			watched, reloadsAll, providers = true, reloadsAll || r.isOn("auto-reload-all"), providers || r.isOn("enable-csi-integration")
		}
	}
	settings.Policy.SecretProviderClasses, settings.Policy.ConfigMapsAlone = providers, false
	if !watched {
		settings.Dialects = []checksum.Dialect{checksum.Wave}
	}
	object.Annotations = map[string]string{}
	maps.Copy(object.Annotations, w.object.Annotations)
	has := func(key string) bool {
		_, on := w.object.Annotations[key]
		_, in := w.object.TemplateAnnotations()[key]
		return on || in
	}
	for _, key := range []string{reloaderDomain + "ignore", reloaderDomain + "match"} {
		if has(key) {
			object.Annotations[key] = "false"
		}
	}
	for _, kind := range checksum.Kinds() {
		if key := string(kind) + "." + reloaderDomain + "auto"; reloadsAll && !has(key) && !has(reloaderDomain+"auto") {
			object.Annotations[key] = "true"
			standIns = append(standIns, key+"=true")
		}
	}
	switch {
	case has(reloaderDomain + "ignore"): // it overrules them
		standIns = nil
	case len(standIns) == len(checksum.Kinds()):
		standIns = []string{reloaderDomain + "auto=true"}
	}
	return settings, object, standIns
}

// restarted says what restarts a workload today, and returns whether anything does, or would if its sources existed.
func (d *doctor) restarted(w *checkedWorkload, restarts bool) bool {
	var products []string
	for _, dialect := range d.settings.Dialects {
		if foreign := w.object.Foreign([]checksum.Dialect{dialect}); foreign.OptsIn() || foreign != nil && foreign.Chooses {
			products = append(products, string(dialect))
			restarts = restarts || foreign.OptsIn()
		}
	}
	switch of := strings.Join(products, " and "); {
	case restarts && products == nil:
		d.say("auto-reload-all", isNote, w, "restarted only because of Reloader's --auto-reload-all; configstamp needs optIn: all", "")
	case restarts:
		d.say("annotations", isNote, w, "annotated for "+of+"; configstamp reads these annotations", "")
	case products != nil:
		d.say("opted-out", isNote, w, "opted out by annotations for "+of+"; configstamp reads them", "")
	}
	return restarts
}

// counting returns the policy of a workload, and the sources that count by it.
func (d *doctor) counting(settings *clusterSettings, object *workload.Object, references []checksum.Reference) (policy checksum.Policy, sources []checksum.Source) {
	policy = settings.PolicyOf(object, d.namespaces[object.Namespace].Settings, d.sourcesIn(object.Namespace))
	for _, selection := range checksum.Selections(references, policy) {
		of := d.sources[rollout.SourceRef{Namespace: object.Namespace, Source: selection.Source}]
		if selection.Counts(&checksum.Content{Policy: of}) {
			sources = append(sources, selection.Source)
		}
	}
	return policy, sources
}

// differences says what would differ for a workload that sources restart today.
func (d *doctor) differences(w *checkedWorkload, standing standing, was []checksum.Source, standIns []string) {
	say := func(weight weight, text, remedy string) { d.say("differs", weight, w, text, remedy) }
	policy, is := d.counting(d.settings, w.object, w.references)
	if standing == notServed {
		is = nil
	}
	for _, source := range was {
		remedy := "kubectl edit {of}"
		switch {
		case slices.Contains(is, source):
			continue
		case !policy.Serves(source.Kind):
			remedy = d.install() + " --set " + map[checksum.Kind]string{checksum.Secret: "'sources={configmaps,secrets}'", checksum.SecretProviderClass: "secretProviderClasses=true"}[source.Kind]
		case len(standIns) > 0:
			remedy = "kubectl annotate {of} " + strings.Join(standIns, " ")
		}
		say(isWarning, "edits of "+source.String()+" restart it today, and would not with configstamp. To change this:", remedy)
	}
	for _, source := range is {
		if !slices.Contains(was, source) {
			say(isWarning, "edits of "+source.String()+" would restart it with configstamp, and do not today. To change this:", "kubectl annotate "+source.String()+" -n "+w.Namespace+" configstamp.dev/ignore=true")
		}
	}
	if len(was)+len(is)+len(policy.Faults) == 0 {
		say(isNote, "its annotations choose no source, so nothing restarts it", "kubectl get {of} -o yaml")
	}
	for _, finding := range policy.Unnameable(w.references) {
		say(isWarning, finding.String(), "kubectl edit {of}")
	}
	for _, fault := range policy.Faults {
		say(isWarning, fault.Finding().String(), "kubectl edit {of}")
	}
	if foreign := w.object.Foreign(d.settings.Dialects); foreign != nil && foreign.MinInterval > 0 {
		say(isNote, "its pause-period becomes configstamp.dev/min-interval: "+foreign.MinInterval.String()+", and spec.paused is never set", "")
	}
	if w.object.Annotations[reloaderDomain+"rollout-strategy"] != "" {
		say(isNote, "its "+reloaderDomain+"rollout-strategy has no effect", "")
	}
	if !w.Kind.Restarts {
		say(isNote, "no Job starts at once with configstamp: the next run reads the new content", "")
	}
}
