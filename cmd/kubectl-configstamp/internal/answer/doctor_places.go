package answer

import (
	"slices"
	"strings"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// place is a kind of object on which settings can stand, as the table of settings calls it.
type place string

const (
	onWorkload  place = "workload"
	onNamespace place = "Namespace"
	onSource    place = "source"
)

// misplaced looks for labels and annotations of ours that have no effect on an object. The chart's policy
// configstamp-spelling warns of the same when they are written.
func (v *visit) misplaced(on place, namespace, about string, labels, annotations map[string]string) {
	for _, setting := range checksum.Settings() {
		key := setting.Key()
		if _, there := annotations[key]; there && !slices.Contains(strings.Split(setting.On, ", "), string(on)) {
			v.tell(Warning, namespace, about, key+" has no effect on a "+string(on)+"; it belongs on a "+strings.ReplaceAll(strings.ReplaceAll(setting.On, ", flag", ""), ", ", " or a "), "kubectl annotate {of} "+key+"-")
		}
		if _, there := labels[key]; there {
			v.tell(Warning, namespace, about, key+" is an annotation: as a label it has no effect", "kubectl label {of} "+key+"-")
		}
	}
	if _, there := annotations[checksum.InjectLabel]; there {
		v.tell(Warning, namespace, about, checksum.InjectLabel+" is a label: as an annotation it has no effect", "kubectl annotate {of} "+checksum.InjectLabel+"-")
	}
	inject, there := labels[checksum.InjectLabel]
	if there && on != onSource && inject != checksum.InjectEnabled && inject != checksum.InjectDisabled {
		v.tell(Warning, namespace, about, "its label "+checksum.InjectLabel+"="+quoted(inject)+" opts neither in nor out. To opt in (nothing restarts):", "kubectl label {of} --overwrite "+optIn)
	}
	if annotations[checksum.PinAnnotation] == "true" && on != onSource && v.Settings.Read && !v.Settings.Pins {
		v.tell(Warning, namespace, about, checksum.PinAnnotation+" has no effect, because pins are off (--pins)", v.install()+" --set pins.enabled=true")
	}
}

// optIn is the label that opts something in.
const optIn = checksum.InjectLabel + "=" + checksum.InjectEnabled

// onTemplate looks for settings on a workload's pod template, where nothing is read.
func (v *visit) onTemplate(w *seen.Workload) {
	for _, setting := range checksum.Settings() {
		key := setting.Key()
		_, there := w.Object.TemplateAnnotations()[key]
		if _, itself := w.Object.Annotations[key]; there && !itself {
			v.tell(Warning, w.Namespace, w.Text(), key+" has no effect on a pod template; put it on the "+w.Kind.Name+" itself", "kubectl edit {of}")
		}
	}
}

// unheard returns the products for which a workload is annotated, and whose annotations do not count (--dialects).
func unheard(settings *seen.Settings, w *seen.Workload) (dialects []checksum.Dialect) {
	if !settings.Read {
		return nil
	}
	for _, dialect := range []checksum.Dialect{checksum.Reloader, checksum.Wave} {
		if !slices.Contains(settings.Dialects, dialect) && w.Object.Foreign([]checksum.Dialect{dialect}).OptsIn() {
			dialects = append(dialects, dialect)
		}
	}
	return dialects
}

// dialects looks for workloads that are annotated for another product which does not run, and whose annotations
// do not count.
func (v *visit) dialects() {
	for _, w := range v.Workloads {
		for _, dialect := range unheard(v.Settings, w) {
			runs := func(peer seen.Peer) bool {
				return peer.Replicas > 0 && strings.EqualFold(peer.Product, string(dialect))
			}
			if !slices.ContainsFunc(v.Peers.All, runs) {
				v.tell(Note, w.Namespace, w.Text(), "its annotations for "+string(dialect)+" do not count, because --dialects does not list "+string(dialect), v.install()+" --set 'dialects={"+string(dialect)+"}'")
			}
		}
	}
}
