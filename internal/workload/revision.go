package workload

import (
	"cmp"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Revision is what a ReplicaSet or a ControllerRevision keeps of a workload.
type Revision struct {
	Metadata
	Number  int64
	Created time.Time
	// Owner is the workload that controls it, "" for none.
	Owner    types.UID
	Template Template
	// Idle reports whether it is a ReplicaSet that is to have no pods.
	Idle bool
}

// DecodeRevision reads a ReplicaSet or a ControllerRevision, and keeps nothing of raw.
func DecodeRevision(raw []byte) (*Revision, error) {
	type of struct {
		Template sparingTemplate `json:"template"`
		Replicas *int32          `json:"replicas"`
	}
	var read struct {
		Metadata struct {
			Metadata
			Created metav1.Time `json:"creationTimestamp"`
		} `json:"metadata"`
		Spec     of    `json:"spec"`
		Revision int64 `json:"revision"`
		Data     struct {
			Spec of `json:"spec"`
		} `json:"data"`
	}
	if err := unmarshal(raw, &read); err != nil {
		return nil, errors.New("reading a revision: it does not have the form of its kind")
	}
	template := read.Spec.Template
	if template.Spec.end == 0 {
		template = read.Data.Spec.Template
	}
	revision := &Revision{
		Metadata: read.Metadata.Metadata, Number: read.Revision, Created: read.Metadata.Created.UTC(),
		Template: Template{Metadata: template.Metadata, Spec: template.Spec.of(raw).Clone()},
		Idle:     read.Spec.Replicas != nil && *read.Spec.Replicas == 0,
	}
	if number, err := strconv.ParseInt(read.Metadata.Annotations["deployment.kubernetes.io/revision"], 10, 64); err == nil {
		revision.Number = number
	}
	object := Object{Metadata: revision.Metadata}
	if owner := object.Controller(); owner != nil {
		revision.Owner = owner.UID
	}
	return revision, nil
}

// NewestFirst compares revisions by their numbers.
func NewestFirst(a, b *Revision) int { return cmp.Compare(b.Number, a.Number) }

// PodSelector finds pods of the revision, beside the selector of its workload.
func (r *Revision) PodSelector() string {
	if hash := hashOf(r.Labels); hash != "" {
		return appsv1.DefaultDeploymentUniqueLabelKey + "=" + hash
	}
	// A DaemonSet's revision has the label of its pods, and those of a StatefulSet its name.
	return appsv1.ControllerRevisionHashLabelKey + "=" + cmp.Or(r.Labels[appsv1.ControllerRevisionHashLabelKey], r.Name)
}

// IsOf reports whether a template is that of a revision, our annotations aside, and what
// the Deployment controller adds to it.
func (t *Template) IsOf(revision *Revision) bool {
	return sameJSON(t.Spec, revision.Template.Spec) &&
		sameForeign(t.Metadata.Annotations, revision.Template.Metadata.Annotations) &&
		sameRest(withoutHash(t.Metadata.rest), withoutHash(revision.Template.Metadata.rest))
}

// withoutHash is metadata without the label that the Deployment controller adds.
func withoutHash(rest map[string]jsontext.Value) map[string]jsontext.Value {
	if !strings.Contains(string(rest["labels"]), appsv1.DefaultDeploymentUniqueLabelKey) {
		return rest
	}
	var labels map[string]jsontext.Value
	if unmarshal(rest["labels"], &labels) != nil {
		return rest
	}
	delete(labels, appsv1.DefaultDeploymentUniqueLabelKey)
	text, err := json.Marshal(labels)
	if err != nil {
		return rest
	}
	rest = maps.Clone(rest)
	rest["labels"] = text
	return rest
}

// SameButAnnotations reports whether two templates differ in nothing but annotations, as
// after kubectl rollout restart.
func (t *Template) SameButAnnotations(other *Template) bool {
	return sameJSON(t.Spec, other.Spec) && sameRest(t.Metadata.rest, other.Metadata.rest)
}
