package snapshot

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
)

// Snapshot is what is remembered of one: never its bytes.
type Snapshot struct {
	Namespace, Name string
	// Of is the source that it says it is of.
	Of checksum.Source
	// Content holds the checksum of each key.
	Content *checksum.Content
	// Immutable tells that nobody can write other content into it.
	Immutable       bool
	UID             types.UID
	ResourceVersion string
	Created         time.Time
	// Made is the annotation that says when it was made, as it was written.
	Made string
	// Bytes is how long its keys and values are, together.
	Bytes int
}

// Claims reads of an object's metadata whether it is a snapshot as far as that tells: it
// has the label, and its name fits the other object that it says it is of. Whatever else
// has the label is an ordinary ConfigMap.
func Claims(labels, annotations map[string]string, name string) (of checksum.Source, ok bool) {
	if labels[checksum.SnapshotLabel] != checksum.SnapshotMarked {
		return checksum.Source{}, false
	}
	of, err := checksum.ParseSource(annotations[checksum.SnapshotOfAnnotation])
	if err != nil || of.Name == name || !checksum.SnapshotFits(of, name) {
		return checksum.Source{}, false
	}
	return of, true
}

// Of makes the snapshot of a ConfigMap. It copies no label and no annotation, which others
// act on, and has no owner.
func Of(cm *corev1.ConfigMap, name string, made time.Time) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cm.Namespace,
			Name:      name,
			Labels:    map[string]string{checksum.SnapshotLabel: checksum.SnapshotMarked},
			Annotations: map[string]string{
				checksum.SnapshotOfAnnotation:   checksum.Source{Kind: checksum.ConfigMap, Name: cm.Name}.String(),
				checksum.SnapshotMadeAnnotation: made.UTC().Format(time.RFC3339),
			},
		},
		Data:       maps.Clone(cm.Data),
		BinaryData: maps.Clone(cm.BinaryData),
		Immutable:  &immutable,
	}
}

// From condenses a ConfigMap that claims to be a snapshot.
func From(cm *corev1.ConfigMap) (Snapshot, bool) {
	of, ok := Claims(cm.Labels, cm.Annotations, cm.Name)
	if !ok {
		return Snapshot{}, false
	}
	s := Snapshot{
		Namespace: cm.Namespace, Name: cm.Name, Of: of, Content: checksum.ContentOfConfigMap(cm),
		Immutable: cm.Immutable != nil && *cm.Immutable, UID: cm.UID, ResourceVersion: cm.ResourceVersion,
		Created: cm.CreationTimestamp.Time,
		Made:    cm.Annotations[checksum.SnapshotMadeAnnotation],
	}
	for key, value := range cm.Data {
		s.Bytes += len(key) + len(value)
	}
	for key, value := range cm.BinaryData {
		s.Bytes += len(key) + len(value)
	}
	return s, true
}

// Verified reports whether it is a snapshot of ours: what it holds gives its name, and stays.
func (s *Snapshot) Verified(ring *checksum.Ring) bool {
	return s.Immutable && ring != nil && ring.NamesSnapshot(s.Namespace, s.Of, s.Content, s.Name)
}

// MadeAt is when it was made: as it says, else as the API server does.
func (s *Snapshot) MadeAt() time.Time {
	if at, err := time.Parse(time.RFC3339, s.Made); err == nil {
		return at
	}
	return s.Created
}
