package answer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
)

// settings looks for settings that cannot be read, or have no effect where they stand: everywhere, opted in or not.
func (v *visit) settings() string {
	for _, w := range v.Workloads {
		v.unreadable(w.Namespace, w.Text(), checksum.Unreadable(checksum.OfWorkload, checksum.SettingsOf(w.Object.Annotations)))
		v.misplaced(onWorkload, w.Namespace, w.Text(), w.Object.Labels, w.Object.Annotations)
		v.onTemplate(w)
		if w.Fault != "" {
			v.tell(Warning, w.Namespace, w.Text(), "its pod template cannot be read, so nothing is stamped: "+w.Fault, "kubectl get {of} -o yaml")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Namespaces)) {
		v.unreadable("", "namespace/"+name, v.Namespaces[name].Findings)
		v.misplaced(onNamespace, "", "namespace/"+name, v.Namespaces[name].Labels, v.Namespaces[name].Annotations)
	}
	for _, at := range slices.SortedFunc(maps.Keys(v.Sources), rollout.SourceRef.Compare) {
		v.unreadable(at.Namespace, at.Source.String(), v.Sources[at].Policy.Findings(checksum.Source{}))
		v.misplaced(onSource, at.Namespace, at.Source.String(), nil, v.Sources[at].Ours)
	}
	return cmp.Or(v.unlooked("namespaces"), v.lists(append(v.kinds(), kindsOfSources()...)...))
}

// unreadable tells what was found on one object.
func (v *visit) unreadable(namespace, about string, found []checksum.Finding) {
	for _, finding := range found {
		text := finding.String()
		if finding.Reason == reason.UnreadableSetting {
			text = finding.Text + "; until it is fixed, the workloads concerned do not restart"
		}
		v.tell(Warning, namespace, about, text, "kubectl edit {of}")
	}
}

// forgotten is after how long a pause has probably been forgotten.
const forgotten = 7 * 24 * time.Hour

// pauses looks for those that are over, those that stand for long, and those that somebody
// took back.
func (v *visit) pauses() string {
	for _, name := range slices.Sorted(maps.Keys(v.Namespaces)) {
		namespace := v.Namespaces[name]
		v.pause("", "namespace/"+name, namespace.Annotations, namespace.Paused.At)
	}
	for _, w := range v.Workloads {
		v.pause(w.Namespace, w.Text(), w.Object.Annotations, w.Paused.At)
	}
	return cmp.Or(v.unlooked("namespaces"), v.lists(v.kinds()...))
}

func (v *visit) pause(namespace, about string, annotations map[string]string, written time.Time) {
	text, paused := annotations[checksum.PauseAnnotation]
	if !paused {
		return
	}
	policy := checksum.DefaultPolicy().With(checksum.Level{Origin: checksum.OfWorkload, Annotations: map[string]string{checksum.PauseAnnotation: text}})
	until, remedy := policy.Pause.Until, "kubectl annotate {of} "+checksum.PauseAnnotation+"-"
	if note := checksum.PauseNoteIn(annotations); note != nil && note.Stands(annotations) {
		remedy = "kubectl configstamp unpause {of}"
	}
	switch {
	case !policy.Pause.On:
	case !until.IsZero() && until.Before(v.now):
		v.tell(Note, namespace, about, fmt.Sprintf("the pause ended %s ago, and no longer holds anything; it overrules a pause of what is around it, as false does", Ago(v.now, until)), remedy)
	case until.IsZero() && !written.IsZero() && v.now.Sub(written) > forgotten:
		v.tell(Warning, namespace, about, fmt.Sprintf("paused for %s or longer: no edit rolls anything out", Ago(v.now, written)), remedy)
	}
}

// sources looks for what workloads require and is not there.
func (v *visit) sources() string {
	v.served(func(w *seen.Workload) {
		policy := v.Policy(w)
		for _, selection := range checksum.Selections(w.References, policy) {
			source := selection.Source
			if !selection.Required || !v.gone(w.Namespace, source) {
				continue
			}
			v.tell(Warning, w.Namespace, w.Text(), source.String()+" is required, but does not exist: pods cannot start, and nothing rolls until it exists", "kubectl configstamp users "+inNamespace(source.String(), w.Namespace)+" -o wide")
		}
		for _, also := range policy.Also {
			if v.gone(w.Namespace, also) {
				v.tell(Note, w.Namespace, w.Text(), "configstamp.dev/also names "+also.String()+", which does not exist", "kubectl edit {of}")
			}
		}
		outcome := v.Outcome(w)
		for _, beside := range outcome.Beside {
			if beside.Code == reason.MissingKey.String() && outcome.Code == seen.Missing {
				v.tell(Warning, w.Namespace, w.Text(), "the key "+strconv.Quote(beside.Key)+" of "+beside.Source+" is required, but does not exist: pods cannot start, and nothing rolls until it exists", "kubectl configstamp users "+inNamespace(beside.Source, w.Namespace)+" -o wide")
			}
		}
	})
	return cmp.Or(v.unlooked("namespaces"), v.lists(append(v.kinds(), kindsOfSources()...)...), v.unasked())
}

// gone reports whether a source is known not to exist.
func (v *visit) gone(namespace string, source checksum.Source) bool {
	known := v.Source(namespace, source)
	if known.Looked || !source.Nameable() {
		return known.Looked && !known.Exists
	}
	i := slices.Index([]checksum.Kind{checksum.ConfigMap, checksum.Secret, checksum.SecretProviderClass}, source.Kind)
	return v.lists(kindsOfSources()[i]) == ""
}

// unasked says that some workload could not be asked about: the webhook alone knows which
// keys are missing.
func (v *visit) unasked() (why string) {
	v.served(func(w *seen.Workload) {
		if v.Outcome(w).Code == seen.Unknown {
			why = "only the webhook knows which keys are missing, and it did not answer"
		}
	})
	return why
}

// records looks for workloads that no webhook has ever seen, and for those that had
// checksums and have none any more.
func (v *visit) records() string {
	v.served(func(w *seen.Workload) {
		policy := v.Policy(w)
		code := v.Outcome(w).Code
		if w.Fault != "" || len(policy.Faults) > 0 || code == seen.Missing || code == seen.Unreadable || v.now.Sub(newestOf(w.Created, w.Written)) < time.Minute {
			return
		}
		there := 0
		for _, source := range v.Selected(w) {
			if _, recorded := w.Records.Of(source); recorded {
				return
			}
			if v.Source(w.Namespace, source).Exists {
				there++
			}
		}
		if there == 0 {
			return
		}
		remedy := "kubectl patch {of} --type=merge --field-manager=" + checksum.RecordingManager + " -p '{}'"
		if !v.Stamped[w.Object.UID] {
			v.tell(Warning, w.Namespace, w.Text(), "it is opted in, but has no checksum: neither the webhook nor the controller has looked at it. To record the current content (nothing restarts):", remedy)
			return
		}
		v.tell(Warning, w.Namespace, w.Text(), "an older revision has checksums, but the newest has none: "+lastWriter(w)+" took them away, or wrote the template while no webhook answered. To record the current content (nothing restarts):", remedy)
	})
	return cmp.Or(v.unlooked("namespaces"), v.lists(append(v.kinds(), kindsOfSources()...)...))
}

// refusedPods looks for workloads whose pods the API server refuses.
func (v *visit) refusedPods() string {
	v.served(func(w *seen.Workload) {
		if w.Status.Refused {
			shown := (&rollout.Facts{Status: w.Status}).Shown(v.now)
			_, command := shown.Advice(w.Ref)
			v.tell(Warning, w.Namespace, w.Text(), shown.String()+": no content helps before a quota, a policy or a webhook admits them. What refuses them:", command)
		}
	})
	return cmp.Or(v.unlooked("namespaces"), v.lists(v.kinds()...))
}

// lastWriter names the newest field manager of a workload's template.
func lastWriter(w *seen.Workload) string {
	for _, write := range w.Writers {
		if write.Content {
			return cmp.Or(write.Manager, "somebody")
		}
	}
	return "somebody"
}
