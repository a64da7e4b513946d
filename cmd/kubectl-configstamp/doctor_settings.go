package main

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// fleet is what was read of the namespaces that doctor looks at. Of Namespaces and sources only metadata is read.
type fleet struct {
	namespaces map[string]knownNamespace
	workloads  []checkedWorkload
	// sources are those that exist, with what their annotations say; nil: nothing.
	sources map[rollout.SourceRef]*checksum.SourcePolicy
	// These say why some could not be read.
	unreadNamespaces, unreadWorkloads, unreadSources error
}

// configured is an object on which settings may stand: a Namespace, a workload or a source.
type configured struct {
	on               place
	namespace, about string // the namespace is empty for a Namespace; about names the object as kubectl does
	labels           map[string]string
	annotations      map[string]string
	template         map[string]string // labels and annotations of the pod template
	unreadable       []checksum.Finding
}

// place is a kind of object, as the table of settings calls it.
type place string

const (
	onWorkload  place = "workload"
	onNamespace place = "Namespace"
	onSource    place = "source"
)

// checkedWorkload is a workload that doctor checks.
type checkedWorkload struct {
	workload.Ref
	object     *workload.Object
	references []checksum.Reference
	unreadable bool // its pod template cannot be read
	status     workload.Status
	finalizers []string
	// touched is when it was created or its template was last written, whichever is later.
	touched time.Time
}

// looksOurs matches keys that configstamp reads or writes, and misspelt ones. The chart's policy configstamp-spelling has
// the same pattern.
var looksOurs = regexp.MustCompile(`(?i)^([^/]*[.])?conf[a-z]*-?st[amp]+s?([.][a-z]+)?/`)

// ours returns the sorted keys that look like configstamp's.
func ours(all map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key string) bool { return !looksOurs.MatchString(key) })
}

// eachMetadata visits the metadata of the objects of a resource in a namespace ("" for all).
func (d *doctor) eachMetadata(ctx context.Context, resource schema.GroupVersionResource, namespace string, visit func(*metav1.PartialObjectMetadata)) error {
	client := d.metadata.Resource(resource).Namespace(namespace)
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	}
	err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		visit(object.(*metav1.PartialObjectMetadata)) //nolint:forcetypeassert // the client returns no other
		return nil
	})
	if apierrors.IsNotFound(err) { // the cluster does not serve the resource
		return nil
	}
	return err
}

// settingsWritten reads the fleet, and looks for settings that cannot be read or have no effect, opted in or not.
func (d *doctor) settingsWritten(ctx context.Context) error {
	d.namespaces, d.sources = map[string]knownNamespace{}, map[rollout.SourceRef]*checksum.SourcePolicy{}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if d.namespace == "" {
		d.unreadNamespaces = d.eachMetadata(ctx, resource, "", d.takeNamespace)
	} else if object, err := d.metadata.Resource(resource).Get(ctx, d.namespace, metav1.GetOptions{}); err != nil {
		d.unreadNamespaces = err
	} else {
		d.takeNamespace(object)
	}
	unseen, err := d.eachWorkload(d.settings.Kinds.Readmitted(), d.namespace, d.takeWorkload)
	d.unreadWorkloads = errors.Join(errorsOf(unseen), err)
	for _, kind := range checksum.Kinds() {
		if d.migrates || d.settings.Policy.Serves(kind) {
			err := d.eachMetadata(ctx, sourceResource(kind), d.namespace, func(o *metav1.PartialObjectMetadata) { d.takeSource(kind, o) })
			d.unreadSources = errors.Join(d.unreadSources, err)
		}
	}
	return errors.Join(d.unreadNamespaces, d.unreadWorkloads, d.unreadSources)
}

func (d *doctor) takeNamespace(o *metav1.PartialObjectMetadata) {
	n := checksum.NamespaceOf(&o.ObjectMeta, d.settings.OptIn)
	d.namespaces[o.Name] = knownNamespace{Namespace: n, Known: true}
	d.settingsOf(&configured{onNamespace, "", "namespace/" + o.Name, o.Labels, o.Annotations, nil, n.Findings})
}

func (d *doctor) takeSource(kind checksum.Kind, o *metav1.PartialObjectMetadata) {
	source, policy := checksum.Source{Kind: kind, Name: o.Name}, checksum.SourcePolicyOf(o.Annotations)
	if entry := writerOf(o, checksum.ResumeAnnotation); policy != nil && entry != nil && entry.Time != nil {
		policy.ResumeWritten(entry.Time.Time)
	}
	d.sources[rollout.SourceRef{Namespace: o.Namespace, Source: source}] = policy
	d.settingsOf(&configured{onSource, o.Namespace, source.String(), nil, o.Annotations, nil, policy.Findings(checksum.Source{})})
}

func (d *doctor) takeWorkload(t *target) error {
	raw, err := t.object().MarshalJSON()
	if err != nil {
		return err
	}
	w := checkedWorkload{Ref: workload.Ref{Kind: t.kind, Namespace: t.Namespace, Name: t.Name}, finalizers: t.object().GetFinalizers()}
	if w.object, err = t.kind.Decode(raw); err == nil {
		w.references, err = w.object.References()
	}
	if w.unreadable = err != nil; w.unreadable {
		d.find(isWarning, t.Namespace, w.Text(), "its pod template cannot be read, so nothing is stamped: "+err.Error(), "kubectl get {of} -o yaml")
		if w.object, err = t.kind.DecodeMetadata(raw); err != nil {
			return err
		}
	}
	w.status, _ = t.kind.Status(raw) // what cannot be read shows nothing
	if w.touched, _ = t.kind.TemplateWritten(raw); w.touched.Before(t.object().GetCreationTimestamp().Time) {
		w.touched = t.object().GetCreationTimestamp().Time
	}
	d.workloads = append(d.workloads, w)
	template := map[string]string{}
	maps.Copy(template, w.object.Template.Labels())
	maps.Copy(template, w.object.TemplateAnnotations())
	annotations := w.object.Annotations
	d.settingsOf(&configured{onWorkload, t.Namespace, w.Text(), w.object.Labels, annotations, template, checksum.Unreadable(checksum.OfWorkload, checksum.SettingsOf(annotations))})
	for _, dialect := range []checksum.Dialect{checksum.Reloader, checksum.Wave} {
		if d.settings.Read && !slices.Contains(d.settings.Dialects, dialect) && w.object.Foreign([]checksum.Dialect{dialect}).OptsIn() {
			d.find(isNote, t.Namespace, w.Text(), "its annotations for "+string(dialect)+" do not count, because --dialects does not list "+string(dialect), d.install()+" --set 'dialects={"+string(dialect)+"}'")
		}
	}
	return nil
}

// settingsOf looks at what people wrote on an object.
func (d *doctor) settingsOf(o *configured) {
	if d.migrates {
		return
	}
	for _, f := range o.unreadable {
		text := f.String()
		if f.Reason == reason.UnreadableSetting {
			text = f.Text + "; until it is fixed, the workloads concerned do not restart"
		}
		d.find(isWarning, o.namespace, o.about, text, "kubectl edit {of}")
	}
	d.misplaced(o)
	d.pauseOf(o)
}

// misplaced looks for labels and annotations that are misspelt, or have no effect where they stand.
func (d *doctor) misplaced(o *configured) {
	warn := func(text, remedy string) { d.find(isWarning, o.namespace, o.about, text, remedy) }
	places := map[string]string{} // where each setting belongs, by its annotation
	for _, setting := range checksum.Settings() {
		places[setting.Key()] = strings.ReplaceAll(setting.On, ", flag", "")
	}
	for _, key := range ours(o.labels) {
		switch value := o.labels[key]; {
		case key == checksum.InjectLabel && value != checksum.InjectEnabled && value != checksum.InjectDisabled:
			text, remedy := "To opt in (nothing restarts):", "kubectl label {of} --overwrite "+optIn
			if d.settings.OptIn == checksum.OptInAll {
				text, remedy = "To opt out:", "kubectl label {of} --overwrite "+key+"="+checksum.InjectDisabled
			}
			warn("its label "+key+"=\""+value+"\" opts neither in nor out. "+text, remedy)
		case places[key] != "":
			warn(key+" is an annotation: as a label it has no effect", "kubectl label {of} "+key+"-")
		case key != checksum.InjectLabel:
			warn("configstamp knows no label "+key, "kubectl label {of} "+key+"-")
		}
	}
	for _, key := range ours(o.annotations) {
		remove := "kubectl annotate {of} " + key + "-"
		switch on := places[key]; {
		case on != "" && !slices.Contains(strings.Split(on, ", "), string(o.on)):
			warn(key+" has no effect on a "+string(o.on)+"; it belongs on a "+strings.ReplaceAll(on, ", ", " or a "), remove)
		case key == checksum.PinAnnotation && o.on != onSource && o.annotations[key] == "true" && d.settings.Read && !d.settings.Pins:
			warn(key+" has no effect, because pins are off (--pins)", d.install()+" --set pins.enabled=true")
		case key == checksum.InjectLabel:
			warn(key+" is a label: as an annotation it has no effect", remove)
		case on == "" && !slices.Contains(ownAnnotations(o.on), key) && !checksum.IsOursOnTemplate(key):
			warn("configstamp knows no annotation "+key, remove)
		}
	}
	for _, key := range ours(o.template) {
		_, label := o.labels[key]
		if _, annotation := o.annotations[key]; !label && !annotation && !checksum.IsOursOnTemplate(key) {
			warn(key+" has no effect on a pod template; put it on the workload itself", "kubectl edit {of}")
		}
	}
}

// ownAnnotations returns the annotations that configstamp and this plugin write on an object, beside settings.
func ownAnnotations(on place) []string {
	if on == onSource {
		return []string{"configstamp.dev/failed", checksum.SnapshotOfAnnotation, checksum.SnapshotMadeAnnotation}
	}
	return append(checksum.OursOnWorkload(), "configstamp.dev/failed", checksum.PausedByAnnotation)
}

// pauseOf looks for a pause that has ended, and for one that was taken back.
func (d *doctor) pauseOf(o *configured) {
	over := func(pause checksum.Pause) bool { return !pause.Until.IsZero() && pause.Until.Before(d.now) }
	value, set := o.annotations[pauseKey]
	pause, _ := pauseIn(value)
	note, remedy := checksum.PauseNoteIn(o.annotations), "kubectl annotate {of} "+pauseKey+"-"
	switch {
	case note != nil && !note.Stands(o.annotations):
		if wrote, _ := pauseIn(note.Wrote); !over(wrote) {
			text := "the pause" + note.Words() + " was removed: " + pauseKey + " is missing"
			if set {
				text = strings.TrimSuffix(text, "missing") + "\"" + value + "\" now"
			}
			d.find(isWarning, o.namespace, o.about, text+". To pause again:", "kubectl configstamp pause {of}")
		}
	case over(pause):
		if note != nil {
			remedy = "kubectl configstamp unpause {of}"
		}
		d.find(isNote, o.namespace, o.about, "the pause ended at "+at(pause.Until)+", and holds nothing now; like false, it overrides a pause of its Namespace or of the cluster", remedy)
	}
}

// served visits the workloads that are known to be served, and returns why others may be.
func (d *doctor) served(visit func(*checkedWorkload)) error {
	var unlisted error
	for i := range d.workloads {
		w := &d.workloads[i]
		switch standing, _ := d.settings.Serves(w.object, d.namespaces[w.Namespace]); standing {
		case isServed:
			visit(w)
		case maybeServed:
			unlisted = d.unlisted // the webhook configuration has the namespaces that --namespaces lists
		case notServed:
		}
	}
	return errors.Join(d.unreadNamespaces, d.unreadWorkloads, unlisted)
}

// sourcesIn returns what lists the names of the sources of a kind in a namespace.
func (d *doctor) sourcesIn(namespace string) func(checksum.Kind) []string {
	return func(kind checksum.Kind) (names []string) {
		for at := range d.sources {
			if at.Namespace == namespace && at.Source.Kind == kind {
				names = append(names, at.Source.Name)
			}
		}
		return names
	}
}

// records looks for workloads that are opted in and have no checksum, although their sources exist.
func (d *doctor) records(context.Context) error {
	unlooked := d.served(func(w *checkedWorkload) {
		policy := d.settings.PolicyOf(w.object, d.namespaces[w.Namespace].Settings, d.sourcesIn(w.Namespace))
		if w.unreadable || len(policy.Faults) > 0 || d.now.Sub(w.touched) < time.Minute {
			return
		}
		records, _ := w.object.Records() // a baseline that cannot be read counts as none
		counting := 0
		for _, selection := range checksum.Selections(w.references, policy) {
			of, exists := d.sources[rollout.SourceRef{Namespace: w.Namespace, Source: selection.Source}]
			if selection.Required && !exists || of != nil && len(of.Faults) > 0 { // it holds the workload
				return
			}
			if exists && !selection.HoldOnly && (of == nil || !of.Ignore) {
				counting++
			}
		}
		if counting > 0 && len(records.Stamps)+len(records.Baseline) == 0 {
			d.find(isWarning, w.Namespace, w.Text(), "it is opted in, but has no checksum: no webhook was asked about it, or something removed the checksums. To record the current content (nothing restarts):",
				"kubectl patch {of} --type=merge --field-manager="+checksum.RecordingManager+" -p '{}'")
		}
	})
	return errors.Join(unlooked, d.unreadSources)
}

// refusedPods looks for workloads whose pods the API server refuses.
func (d *doctor) refusedPods(context.Context) error {
	return d.served(func(w *checkedWorkload) {
		if w.status.Refused {
			shown := (&rollout.Facts{Status: w.status}).Shown(d.now)
			_, command := shown.Advice(w.Ref)
			d.find(isWarning, w.Namespace, w.Text(), shown.String()+": no content helps before a quota, a policy or a webhook admits them. What refuses them:", command)
		}
	})
}
