package answer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// Why tells of one workload all that is known: why it restarted, or did not.
type Why struct {
	Namespace string `json:"namespace"`
	// Workload is kind/name.
	Workload string `json:"workload"`
	// Pod is the pod that was asked for, if one was.
	Pod *WhyPod `json:"pod,omitempty"`
	// Served is whether configstamp looks after it, and Because by what, or why not.
	// Remedy is what would change that.
	Served  seen.Standing `json:"served"`
	Because string        `json:"because"`
	Remedy  string        `json:"remedy,omitempty"`
	// Policy are the settings that stand on it and on its Namespace.
	Policy []Setting `json:"policy,omitempty"`
	// Faults are settings that cannot be read.
	Faults []string `json:"faults,omitempty"`
	// Sources are those that count for it.
	Sources []WhySource `json:"sources"`
	// Now is where it stands.
	Now Progress `json:"now"`
	// Pods counts its pods; nil when they could not be read, or it has none of its own.
	Pods *Pods `json:"pods,omitempty"`
	// Revisions are its newest ones, newest first.
	Revisions []Revision `json:"revisions,omitempty"`
	// Events are those of the last hour about it, and configstamp's about its sources,
	// newest first.
	Events []Told `json:"events,omitempty"`
}

// Setting is one setting of a policy.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// On is workload, Namespace, or flag: what holds in the whole cluster.
	On checksum.Origin `json:"on"`
}

// WhySource is one source that counts for a workload.
type WhySource struct {
	Source checksum.Source `json:"source"`
	// Exists is "true", "false", or "unknown".
	Exists string  `json:"exists"`
	Uses   []Usage `json:"uses"`
	// Edited is when its content was written last, and by whom.
	Edited *seen.Write `json:"edited,omitempty"`
	// Stale tells that the workload is out of date because of it.
	Stale bool `json:"stale"`
}

// Pods counts the pods of a workload that have not ended.
type Pods struct {
	All   int `json:"all"`
	Ready int `json:"ready"`
	// Newest carry the stamps that the template has now.
	Newest int `json:"newest"`
	// Trouble is what the kubelet says of containers that cannot start, by pod.
	Trouble map[string]string `json:"trouble,omitempty"`
	// Ahead are pods that started after the newest edit of a source that the workload is
	// out of date with: they read the new content already.
	Ahead []string `json:"ahead,omitempty"`
}

// WhyPod tells of one pod why it is there.
type WhyPod struct {
	Name string    `json:"name"`
	Made time.Time `json:"made"`
	// Revision is the one that it was made from; nil when that is not known.
	Revision *Revision `json:"revision,omitempty"`
	// Newest tells that it carries the stamps that its workload's template has now.
	Newest bool `json:"newest"`
	// Pinned are the snapshots that it reads, by their sources.
	Pinned   map[checksum.Source]string `json:"pinned,omitempty"`
	Restarts int                        `json:"restarts"`
	Trouble  string                     `json:"trouble,omitempty"`
}

// Told is one event.
type Told struct {
	At time.Time `json:"at"`
	// About is the object: Deployment/web.
	About   string `json:"about"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Warning bool   `json:"warning"`
	Count   int32  `json:"count"`
}

// mostRevisions is how many revisions an answer to why has.
const mostRevisions = 5

// WhyOf tells of a workload. pods are all of its selector, pod is the one that was asked
// for; both may be nil.
func WhyOf(f *seen.Fleet, w *seen.Workload, pods []seen.Pod, pod *seen.Pod, now time.Time) Why {
	why := Why{Namespace: w.Namespace, Workload: w.Text(), Sources: []WhySource{}}
	namespace := f.Namespaces[w.Namespace]
	standing, reason := f.Serves(w)
	why.Served = standing
	switch standing {
	case seen.Served:
		if why.Because = optedInBy(f, w); f.Outcome(w).Code == seen.Unknown {
			why.Because += "; the webhook has not confirmed it, and --namespaces or --excluded-namespaces may leave its namespace out"
		}
	case seen.NotServed:
		why.Because, why.Remedy = NotServedWords(f.Settings, namespace, w, reason)
	case seen.MaybeServed:
		why.Because = "its Namespace could not be read, and may opt in or out"
	}
	for _, dialect := range unheard(f.Settings, w) {
		why.Because += "; its annotations for " + string(dialect) + " do not count, because --dialects does not list " + string(dialect)
	}
	policy := f.Policy(w)
	why.Policy = settingsOf(w, namespace)
	if policy.ConfigMapsAlone && slices.ContainsFunc(w.References, func(r checksum.Reference) bool { return r.Source.Kind == checksum.Secret }) {
		why.Policy = append(why.Policy, Setting{"sources", "configmaps", checksum.OfFlag})
	}
	for _, fault := range policy.Faults {
		why.Faults = append(why.Faults, fault.Error())
	}
	why.Now = progressOf(f, w, pods, now)
	stale := why.Now.Because
	if why.Now.Declined {
		stale = nil
	}
	why.Sources = sourcesFor(f, w, &policy, stale)
	revisions := RevisionsOf(f, w)
	why.Revisions = revisions[:min(len(revisions), mostRevisions)]
	why.Pods = countPods(f, w, pods, &why.Now)
	if pod != nil {
		why.Pod = whyPod(f, w, pod, revisions)
	}
	why.Events = eventsFor(f, w, why.Sources)
	return why
}

// optedInBy says what has opted a workload in.
func optedInBy(f *seen.Fleet, w *seen.Workload) string {
	label := "label " + checksum.InjectLabel + "=" + checksum.InjectEnabled
	switch {
	case len(f.Settings.Namespaces) > 0, f.Namespaces[w.Namespace].Listed:
		return "its namespace is among those that are served (--namespaces)"
	case w.Object.Labels[checksum.InjectLabel] == checksum.InjectEnabled:
		return "by its own " + label
	case f.Namespaces[w.Namespace].OptedIn:
		return "by the " + label + " of its Namespace"
	}
	return "by another product's annotations (--dialects)"
}

// settingsOf are the settings that stand on a workload, and those of its Namespace that it
// does not overrule.
func settingsOf(w *seen.Workload, namespace seen.Namespace) []Setting {
	var settings []Setting
	own := checksum.SettingsOf(w.Object.Annotations)
	for _, setting := range checksum.Settings() {
		if value, written := own[setting.Key()]; written {
			settings = append(settings, Setting{setting.Name(), value, checksum.OfWorkload})
		} else if value, written := namespace.Settings[setting.Key()]; written {
			settings = append(settings, Setting{setting.Name(), value, checksum.OfNamespace})
		}
	}
	return settings
}

// sourcesFor are the sources that count for a workload.
func sourcesFor(f *seen.Fleet, w *seen.Workload, policy *checksum.Policy, stale []checksum.Source) []WhySource {
	sources := []WhySource{}
	for _, source := range f.Selected(w) {
		known := f.Source(w.Namespace, source)
		one := WhySource{Source: source, Exists: exists(known), Uses: usesOf(w, policy, source), Stale: f.Outcome(w).Stale() && slices.Contains(stale, source)}
		if edit := known.Edited(); !edit.At.IsZero() {
			one.Edited = &edit
		}
		sources = append(sources, one)
	}
	return sources
}

// countPods counts the pods of a workload.
func countPods(f *seen.Fleet, w *seen.Workload, pods []seen.Pod, now *Progress) *Pods {
	if pods == nil {
		return nil
	}
	var edited time.Time
	if f.Outcome(w).Stale() && !now.Declined {
		for _, source := range now.Because {
			edited = newestOf(edited, f.Source(w.Namespace, source).Edited().At)
		}
	}
	count := &Pods{Trouble: map[string]string{}}
	for i := range pods {
		pod := &pods[i]
		if pod.Finished || pod.Deleting {
			continue
		}
		count.All++
		if pod.Ready {
			count.Ready++
		}
		if isNewest(w, pod) {
			count.Newest++
		}
		if pod.Trouble != "" {
			count.Trouble[pod.Name] = pod.Trouble
		}
		if !edited.IsZero() && pod.Started.After(edited) && !pinned(pod, now.Because) {
			count.Ahead = append(count.Ahead, pod.Name)
		}
	}
	return count
}

// pinned reports whether a pod reads snapshots of all of some sources.
func pinned(pod *seen.Pod, sources []checksum.Source) bool {
	return !slices.ContainsFunc(sources, func(source checksum.Source) bool { return pod.Pinned[source] == "" })
}

// isNewest reports whether a pod carries the stamps that the template has now; where
// neither has any, it is so.
func isNewest(w *seen.Workload, pod *seen.Pod) bool {
	return pod.Carries(w.Records.Stamps) || len(pod.Stamps) == 0 && len(w.Records.Stamps) == 0
}

func whyPod(f *seen.Fleet, w *seen.Workload, pod *seen.Pod, revisions []Revision) *WhyPod {
	why := &WhyPod{Name: pod.Name, Made: pod.Created, Newest: isNewest(w, pod), Pinned: pod.Pinned, Restarts: pod.Restarts, Trouble: pod.Trouble}
	for i, revision := range f.Revisions[w.Object.UID] {
		if revision.Name == pod.OwnerName || pod.Revision != "" && (revision.Name == pod.Revision || strings.HasSuffix(revision.Name, "-"+pod.Revision)) {
			why.Revision = &revisions[i]
			break
		}
	}
	return why
}

// eventsFor are the events about a workload and its sources.
func eventsFor(f *seen.Fleet, w *seen.Workload, sources []WhySource) []Told {
	var told []Told
	for i := range f.Events {
		event := &f.Events[i]
		about := event.Kind == w.Kind.Name && event.Name == w.Name || event.Kind == "Namespace" && event.Name == w.Namespace ||
			slices.ContainsFunc(sources, func(s WhySource) bool {
				return strings.EqualFold(event.Kind, string(s.Source.Kind)) && event.Name == s.Source.Name
			})
		if about {
			told = append(told, Told{At: event.Last, About: event.Kind + "/" + event.Name, Reason: event.Reason, Message: event.Message, Warning: event.Warning, Count: event.Count})
		}
	}
	slices.SortStableFunc(told, func(a, b Told) int { return b.At.Compare(a.At) })
	return told
}

// Sentence says in one sentence where a workload stands.
func (w *Why) Sentence(now time.Time) string {
	p := &w.Now
	since := ""
	for _, source := range w.Sources {
		if source.Stale && source.Edited != nil {
			since = fmt.Sprintf(", since %s was edited %s ago by %s", source.Source, Ago(now, source.Edited.At), source.Edited.Manager)
		}
	}
	stale := "out of date" + since
	if since == "" && len(p.Because) > 0 {
		stale += ": " + joined(p.Because, " and ") + " changed"
	}
	switch p.State {
	case Done:
		return "in step: the webhook says that its pods started with what its sources hold now"
	case Rolling, Failed:
		text := string(p.State) + ": " + p.Why
		if p.Unasked != "" {
			text += "; whether it is up to date is not known: " + p.Unasked
		}
		return text
	case Waiting, Held, Halted, Observed:
		if p.Declined {
			return string(p.State) + ": " + p.Why
		}
		if p.Outcome == seen.WouldRoll || p.Outcome == seen.Held || p.Outcome == seen.Observed {
			return stale + "; " + string(p.State) + ": " + p.Why
		}
		return string(p.State) + ": " + p.Why
	case Suspended:
		return p.Why
	case Unserved:
		return "configstamp leaves it alone: " + p.Why
	case Unknown:
	}
	return "unknown: " + p.Why
}
