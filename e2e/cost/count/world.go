package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/cost"
)

const namespace = "shop"

// madeBefore ends the names of snapshots of other content.
const madeBefore = "-00000000000000000000"

// world has a workload of a shape, in all forms in which it is read, and what its sources hold.
type world struct {
	*maker
	ring       *checksum.Ring
	configMap  *corev1.ConfigMap // what each source holds, or held
	held       *checksum.Content // of it
	references []checksum.Reference
	selections []checksum.Selection
	contents   checksum.Contents
	// stored is on record. Of the others changed has another image, bare none of our
	// annotations, undone the stamps and pins of another content.
	stored, changed, bare, undone []byte
	message                       []byte // stored, in protobuf
	pod, pods                     []byte
}

func newWorld(s cost.Shape, n int) (*world, error) {
	key, err := checksum.NewKey(make([]byte, checksum.KeySize))
	if err != nil {
		return nil, err
	}
	w := &world{maker: &maker{Shape: s, n: n, left: 4 * n}, ring: checksum.NewRing(key), contents: checksum.Contents{}}
	template := w.template()
	w.references = checksum.References(&template.Spec)
	w.fill()
	w.selections = checksum.Selections(w.references, w.policy())
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: "u-1", Generation: 2, ResourceVersion: "7", Annotations: w.said(), ManagedFields: w.managedFields()},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template},
	}
	depth := min(w.many(cost.Nested), 4000)
	w.bare = raw(d, depth, "1")
	w.record(d, w.one(cost.Stamps, 6), w.one(cost.Pins, 3))
	w.stored = raw(d, depth, "1")
	if w.message, err = d.Marshal(); err != nil {
		return nil, err
	}
	w.pod, w.pods = podsOf(d)
	w.record(d, 1+w.one(cost.Stamps, 2), 2) // neither none nor those on record
	w.undone = raw(d, depth, "1")
	w.changed = bytes.Replace(raw(d, depth, "2"), []byte(`"image":"web"`), []byte(`"image":"web:2"`), 1)
	return w, nil
}

// fill has the sources hold something.
func (w *world) fill() {
	named := map[checksum.Source]bool{}
	for i := range w.references {
		named[w.references[i].Source] = true
	}
	w.configMap = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s-0", Annotations: w.saidBySource()}, Data: map[string]string{}}
	for i := range max(min(w.many(cost.Keys), 4*w.n/max(len(named), 1)), 1) {
		w.configMap.Data[key(i)] = "x"
	}
	w.held = checksum.ContentOfConfigMap(w.configMap)
	for i, source := range slices.SortedFunc(maps.Keys(named), checksum.Source.Compare) {
		w.contents[source] = nil
		if exist := w.one(cost.Exists, 3); exist == 0 || exist == 2 && i%2 == 0 {
			w.contents[source] = checksum.ContentOfConfigMap(w.configMap)
		}
	}
}

// policy is what counts for the workload.
func (w *world) policy() checksum.Policy {
	return checksum.DefaultPolicy().With(checksum.Level{Origin: checksum.OfWorkload, Annotations: w.said()}).
		Translated(checksum.Translate([]checksum.Dialect{checksum.Reloader, checksum.Wave}, namespace, w.said(), nil), w.named)
}

// named lists the sources of a kind that there are.
func (w *world) named(kind checksum.Kind) (names []string) {
	for source, content := range w.contents {
		if source.Kind == kind && content != nil {
			names = append(names, source.Name)
		}
	}
	return names
}

// record puts onto a workload what the webhook would have, or anybody before there was one.
func (w *world) record(d *appsv1.Deployment, stamp, pin int) {
	template, pinned, lost, undone := d.Spec.Template.Annotations, checksum.Pins{}, map[checksum.Source]string{}, checksum.Declined{}
	for i := range w.selections {
		s := &w.selections[i]
		if value := w.value(stamp, i); value != "" {
			template[checksum.StampKey(s.Source)] = value
		}
		if value := w.value(w.one(cost.Baseline, 6), i); value != "" {
			lost[s.Source] = value
		}
		if value := w.value(w.one(cost.Declined, 6), i); value != "" {
			undone[s.Source] = []string{value}
		}
		content := w.contents[s.Source]
		switch {
		case pin == 2 || pin == 1 && content == nil:
			pinned[s.Source] = checksum.Pin{Snapshot: s.Source.Name + madeBefore, Uses: []checksum.Use{checksum.Startup, checksum.Live}}
		case pin == 1:
			pinned[s.Source] = checksum.Pin{Snapshot: w.ring.SnapshotName(namespace, s.Source, content), Uses: []checksum.Use{checksum.Startup}}
		}
	}
	for key, text := range map[string]string{checksum.BaselineAnnotation: checksum.FormatBaseline(lost), checksum.DeclinedAnnotation: undone.String()} {
		if d.Annotations[key] = text; text == "" || text == "{}" {
			delete(d.Annotations, key)
		}
	}
	if text := pinned.String(); text != "" {
		template[checksum.PinsAnnotation] = text
	}
}

// value is one on record of a selection.
func (w *world) value(kind, i int) string {
	ours := strings.Split(w.ring.Digest(namespace, checksum.Selection{All: true}, &checksum.Content{}), ":")[1]
	zeros := strings.Repeat("0", 32)
	switch kind {
	case 1:
		return w.ring.Digest(namespace, w.selections[i], w.held)
	case 2:
		return "v1:" + ours + ":all:" + zeros
	case 3:
		return "v1:deadbeef:all:" + zeros
	case 4:
		return fmt.Sprintf("v1:%08x:all:%s", i+1, zeros)
	case 5:
		return "v1:" + ours + ":00000001:" + zeros
	}
	return ""
}

func (w *world) managedFields() (all []metav1.ManagedFieldsEntry) {
	fields := `{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{`
	for i := range w.many(cost.Managed) {
		at := metav1.NewTime(time.Unix(int64(i), 0))
		all = append(all, metav1.ManagedFieldsEntry{Manager: "m", Operation: "Update", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields + `"f:x":{}}}}}`)})
	}
	return all
}

// raw is a workload as the API server writes it, with a field that nobody knows.
func raw(d *appsv1.Deployment, depth int, leaf string) []byte {
	text := must(json.Marshal(d))
	deep := `"spec":{"deep":` + strings.Repeat(`{"x":`, depth) + leaf + strings.Repeat("}", depth) + ","
	return bytes.Replace(text, []byte(`"spec":{`), []byte(deep), 1)
}

// podsOf is a Pod of a workload, and a list that has it as it runs.
func podsOf(d *appsv1.Deployment) (pod, pods []byte) {
	yes := true
	p := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	p.Name, p.Namespace, p.OwnerReferences = "web-1", namespace, []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "u-2", Controller: &yes}}
	pod = must(json.Marshal(p))
	for i := len(p.Spec.Containers) - 1; i >= 0; i-- {
		running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		running.Running.StartedAt = metav1.NewTime(time.Unix(7, 0))
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: p.Spec.Containers[i].Name, State: running, RestartCount: 1})
	}
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{p}}
	return pod, must(json.Marshal(list))
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err) // all of these can be written
	}
	return text
}
