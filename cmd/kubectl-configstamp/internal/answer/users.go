package answer

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/reason"
)

// Uses tells who uses one source.
type Uses struct {
	Namespace string `json:"namespace"`
	// Source is kind/name.
	Source checksum.Source `json:"source"`
	// Exists is "true", "false", or "unknown" where the user may not look.
	Exists string `json:"exists"`
	// Workloads are those that use it, sorted by name and kind.
	Workloads []WorkloadUse `json:"users"`
	// Restarts counts those that an edit restarts.
	Restarts int `json:"restarts"`
}

// WorkloadUse is one workload that uses a source.
type WorkloadUse struct {
	// Workload is kind/name.
	Workload string `json:"workload"`
	// Uses are how it uses the source, each way once.
	Uses []Usage `json:"uses"`
	// Restart is what an edit of the source does to it.
	Restart Restart `json:"restart"`
	// Why says why an edit does not restart it, and Remedy what would change that; both
	// "" if it does.
	Why    string `json:"why,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Served is whether configstamp looks after it at all.
	Served seen.Standing `json:"served"`
}

// Usage is one way in which a workload uses a source.
type Usage struct {
	// Use is startup, live, node or unused.
	Use checksum.Use `json:"use"`
	// How is env, envFrom, file, subPath, init file, volume, imagePullSecrets or also.
	How string `json:"how"`
	// Where are the places: container web, env MESSAGE.
	Where []string `json:"where,omitempty"`
	// All tells that every key counts; else Keys do.
	All  bool     `json:"all"`
	Keys []string `json:"keys,omitempty"`
	// Optional tells that containers start without it.
	Optional bool `json:"optional"`
}

// Restart is what an edit of a source does to a workload.
type Restart string

// What an edit does.
const (
	Restarts   Restart = "yes"
	LaterRuns  Restart = "later runs"
	NoRestart  Restart = "no"
	MayRestart Restart = "unknown"
)

// UsesOf finds who uses a source among the workloads of its namespace.
func UsesOf(settings *seen.Settings, namespace seen.Namespace, source *seen.Source, workloads []*seen.Workload) Uses {
	answered := Uses{Namespace: source.Namespace, Source: source.Source, Exists: exists(source), Workloads: []WorkloadUse{}}
	for _, w := range workloads {
		policy := settings.PolicyOf(w, namespace, func(kind checksum.Kind) []string {
			if kind != source.Kind {
				return nil
			}
			return []string{source.Name}
		})
		uses := usesOf(w, &policy, source.Source)
		if len(uses) == 0 {
			continue
		}
		its := WorkloadUse{Workload: w.Text(), Uses: uses}
		judge(&its, settings, namespace, &policy, source, w)
		if its.Restart == Restarts || its.Restart == LaterRuns {
			answered.Restarts++
		}
		answered.Workloads = append(answered.Workloads, its)
	}
	return answered
}

func exists(source *seen.Source) string {
	switch {
	case !source.Looked:
		return "unknown"
	case source.Exists:
		return "true"
	}
	return "false"
}

// usesOf lists the ways in which a workload uses a source.
func usesOf(w *seen.Workload, policy *checksum.Policy, source checksum.Source) []Usage {
	var uses []Usage
	add := func(r *checksum.Reference, how string) {
		i := slices.IndexFunc(uses, func(u Usage) bool { return u.Use == r.Use && u.How == how && u.Optional == r.Optional })
		if i < 0 {
			uses = append(uses, Usage{Use: r.Use, How: how, Optional: r.Optional})
			i = len(uses) - 1
		}
		u := &uses[i]
		if r.Where != nil {
			u.Where = append(u.Where, r.Where.String())
		}
		if u.All = u.All || r.All; u.All {
			u.Keys = nil
			return
		}
		u.Keys = append(u.Keys, r.Keys...)
		slices.Sort(u.Keys)
		u.Keys = slices.Compact(u.Keys)
	}
	spec, _ := w.Object.Template.PodSpec() // nil when it cannot be read
	for i := range w.References {
		if r := &w.References[i]; r.Source == source {
			add(r, howOf(r, spec))
		}
	}
	if slices.Contains(policy.Also, source) {
		add(&checksum.Reference{Use: checksum.Startup, All: true, Optional: true}, "also")
	} else if w.Foreign != nil && w.Foreign.Named(source) {
		add(&checksum.Reference{Use: checksum.Startup, All: true, Optional: true}, "named by an annotation")
	}
	return uses
}

// howOf names the way of one reference. A volume may be mounted in several.
func howOf(r *checksum.Reference, spec *corev1.PodSpec) string {
	where := r.Where
	switch {
	case where == nil:
		return "reference"
	case where.Volume == "" && where.Env != "":
		return "env"
	case where.PullSecret:
		return "imagePullSecrets"
	case where.Volume == "":
		return "envFrom"
	case r.Use == checksum.Node, r.Use == checksum.Unused:
		return "volume"
	case r.Use == checksum.Startup && spec != nil:
		return strings.Join(startupMounts(where.Volume, spec), ", ")
	}
	return "file"
}

// startupMounts names the ways in which a volume is mounted that a container reads at its
// start alone.
func startupMounts(volume string, spec *corev1.PodSpec) []string {
	var ways []string
	look := func(container *corev1.Container, init bool) {
		for _, mount := range container.VolumeMounts {
			switch {
			case mount.Name != volume:
			case mount.SubPath != "" || mount.SubPathExpr != "":
				ways = append(ways, "subPath")
			case init:
				ways = append(ways, "init file")
			}
		}
	}
	for i := range spec.InitContainers {
		look(&spec.InitContainers[i], spec.InitContainers[i].RestartPolicy == nil)
	}
	for i := range spec.Containers {
		look(&spec.Containers[i], false)
	}
	slices.Sort(ways)
	return slices.Compact(ways)
}

// judge says what an edit of the source does to a user.
func judge(its *WorkloadUse, settings *seen.Settings, namespace seen.Namespace, policy *checksum.Policy, source *seen.Source, w *seen.Workload) {
	standing, why := settings.Serves(w, namespace)
	its.Served, its.Restart = standing, NoRestart
	selections := checksum.Selections(w.References, *policy)
	i := slices.IndexFunc(selections, func(s checksum.Selection) bool { return s.Source == source.Source })
	switch {
	case w.Kind.CreateOnly:
		its.Why = "it is stamped when it is created, and never restarted"
	case standing == seen.NotServed:
		its.Why, its.Remedy = NotServedWords(settings, namespace, w, why)
	case w.Fault != "":
		its.Why = w.Fault
	case i < 0 || selections[i].HoldOnly:
		its.Why, its.Remedy = leftOut(policy, source.Source, its.Uses)
	case source.Policy != nil && source.Policy.Ignore:
		its.Why, its.Remedy = "the source says configstamp.dev/ignore: true", "kubectl annotate "+source.String()+" -n "+source.Namespace+" configstamp.dev/ignore-"
	case policy.Observe:
		its.Why, its.Remedy = "its mode is observe, so a change is reported and nothing restarts", "kubectl configstamp roll "+w.Text()+" -n "+w.Namespace
	case standing == seen.MaybeServed:
		its.Restart, its.Why = MayRestart, "its Namespace could not be read, and may opt in or out"
	case !w.Kind.Restarts:
		its.Restart = LaterRuns
	default:
		its.Restart = Restarts
	}
}

// leftOut says why a source does not count for a workload, by its policy.
func leftOut(policy *checksum.Policy, source checksum.Source, uses []Usage) (why, remedy string) {
	by := func(setting string) string {
		origin, _ := policy.OriginOf(setting)
		return "configstamp.dev/" + setting + origins(origin)
	}
	matches := func(p checksum.SourcePattern) bool { return p.Matches(source) }
	switch {
	case !source.Nameable():
		return "no object can have that name", ""
	case !policy.Serves(source.Kind) && source.Kind == checksum.Secret:
		return "Secrets do not count here (--sources=configmaps)", ""
	case !policy.Serves(source.Kind):
		return "SecretProviderClasses do not count here (--secret-provider-classes)", ""
	case slices.ContainsFunc(policy.Ignore, matches):
		return by("ignore") + " names it", "take the source out of that list"
	case slices.Contains(policy.Ignored, source):
		return "the platform makes it, and it counts only where it is named", "annotate it with configstamp.dev/also=" + source.String()
	case len(policy.Only) > 0 && !slices.ContainsFunc(policy.Only, matches):
		return by("only") + " does not name it", "add " + source.String() + " to that list"
	}
	var kinds []string
	for _, use := range uses {
		kinds = append(kinds, string(use.Use))
	}
	slices.Sort(kinds)
	switch kinds = slices.Compact(kinds); strings.Join(kinds, "") {
	case string(checksum.Unused):
		return "no container mounts the volume", ""
	case string(checksum.Node):
		return "only nodes read it, and pods do not", "annotate it with configstamp.dev/restart-on=everything"
	case string(checksum.Live):
		return by("restart-on") + " leaves out files that the kubelet refreshes", "annotate it with configstamp.dev/restart-on=all"
	}
	return "its policy leaves it out", ""
}

// origins says where a setting stands, behind its name.
func origins(origin checksum.Origin) string {
	switch origin {
	case checksum.OfNamespace:
		return " (on the Namespace)"
	case checksum.OfFlag:
		return " (a flag of the cluster)"
	case checksum.OfWorkload, checksum.OfSource:
	}
	return ""
}

// NotServedWords says why configstamp leaves a workload alone, and what would change that.
// why is what seen.Settings.Serves said.
func NotServedWords(settings *seen.Settings, namespace seen.Namespace, w *seen.Workload, why reason.Reason) (words, remedy string) {
	inject, labelled := w.Object.Labels[checksum.InjectLabel]
	optIn := "kubectl label " + w.Text() + " -n " + w.Namespace + " --overwrite " + checksum.InjectLabel + "=" + checksum.InjectEnabled
	of := namespace.Labels[checksum.InjectLabel]
	hinges := ""
	if namespace.Unasked {
		hinges = ", unless the flag --namespaces lists its namespace: that is not published, and the webhook could not be asked"
	}
	switch {
	case why == reason.Owned:
		owner := w.Object.Controller()
		return "its owner " + strings.ToLower(owner.Kind) + "/" + owner.Name + " makes its template, and is looked after instead", ""
	case w.Object.DeletionTimestamp != nil || namespace.Ending:
		return "it is being deleted", ""
	case w.Namespace == settings.Installation || slices.Contains(settings.Excluded, w.Namespace):
		return "its namespace is never served (--excluded-namespaces)", ""
	case len(settings.Namespaces) > 0 && !slices.Contains(settings.Namespaces, w.Namespace):
		return "its namespace is not among those that are served (--namespaces)", ""
	case inject == checksum.InjectDisabled:
		return "its label " + checksum.InjectLabel + " is disabled", optIn
	case labelled:
		return checksum.InjectLabel + "=" + quoted(inject) + " is not \"enabled\"" + hinges, optIn
	case of != "" && of != checksum.InjectDisabled && of != checksum.InjectEnabled:
		return checksum.InjectLabel + "=" + quoted(of) + " on its Namespace is not \"enabled\"" + hinges, "kubectl label namespace " + w.Namespace + " --overwrite " + checksum.InjectLabel + "=" + checksum.InjectEnabled
	}
	return "neither it nor its Namespace has the label " + checksum.InjectLabel + "=" + checksum.InjectEnabled + hinges, optIn
}

func quoted(text string) string { return `"` + text + `"` }

// SortWorkloads sorts workloads: those that restart first, then by name.
func SortWorkloads(all []WorkloadUse) {
	rank := []Restart{Restarts, LaterRuns, MayRestart, NoRestart}
	slices.SortStableFunc(all, func(a, b WorkloadUse) int {
		return cmp.Or(cmp.Compare(slices.Index(rank, a.Restart), slices.Index(rank, b.Restart)), cmp.Compare(a.Workload, b.Workload))
	})
}
