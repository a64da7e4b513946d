package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/workload"
)

const (
	restartedAt = "kubectl.kubernetes.io/restartedAt"
	changeCause = "kubernetes.io/change-cause"
)

// Revisions reads the revisions of one workload, newest first: its ReplicaSets, or its
// ControllerRevisions. A kind that has neither has none.
func (c *Cluster) Revisions(ctx context.Context, w *seen.Workload) ([]seen.Revision, error) {
	all, err := c.AllRevisions(ctx, w.Namespace, w.Selector, w.Kind)
	return all[w.Object.UID], err
}

// AllRevisions reads the revisions of the workloads of some kinds in a namespace ("" for
// all), newest first, by the UID of the workload. selector is a label selector, "" for all.
func (c *Cluster) AllRevisions(ctx context.Context, namespace, selector string, kinds ...*workload.Kind) (map[types.UID][]seen.Revision, error) {
	of := map[types.UID][]seen.Revision{}
	for _, resource := range revisionsOf(kinds) {
		q := query{gvr: v1("apps", resource), namespace: namespace, labels: selector}
		err := c.each(ctx, q, func(raw []byte) error {
			revision, err := revisionOf(raw)
			if err == nil && revision.Owner != "" {
				of[revision.Owner] = append(of[revision.Owner], revision)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, revisions := range of {
		slices.SortFunc(revisions, newestFirst)
	}
	return of, nil
}

func newestFirst(a, b seen.Revision) int {
	return cmp.Or(cmp.Compare(b.Number, a.Number), b.Created.Compare(a.Created))
}

// revisionsOf are the resources in which revisions of some kinds are kept.
func revisionsOf(kinds []*workload.Kind) []string {
	var resources []string
	for _, kind := range kinds {
		if kept := kind.RevisionResource(); kept != "" {
			resources = append(resources, kept)
		}
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}

type template struct {
	Metadata struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`
}

// revisionOf reads a ReplicaSet or a ControllerRevision.
func revisionOf(raw []byte) (seen.Revision, error) {
	var object struct {
		Revision int64 `json:"revision"` // k8s.io/api/apps/v1, ControllerRevision
		Data     struct {
			Spec struct {
				Template jsontext.Value `json:"template"`
			} `json:"spec"`
		} `json:"data"`
		Spec struct {
			Template jsontext.Value `json:"template"`
		} `json:"spec"`
		Status struct {
			Replicas int32 `json:"replicas"`
			Ready    int32 `json:"readyReplicas"`
		} `json:"status"`
	}
	if err := unmarshal(raw, &object); err != nil {
		return seen.Revision{}, fmt.Errorf("reading a revision: it does not have the form of its kind")
	}
	meta := metadataOf(raw)
	revision := seen.Revision{
		Name: meta.Name, Number: object.Revision, Created: meta.Created.UTC(), Cause: meta.Annotations[changeCause],
		Replicas: object.Status.Replicas, Ready: object.Status.Ready,
	}
	text := object.Spec.Template
	if len(text) == 0 {
		text = object.Data.Spec.Template
	}
	for _, annotation := range []string{"deployment.kubernetes.io/revision", "rollout.argoproj.io/revision"} {
		if number, err := strconv.ParseInt(meta.Annotations[annotation], 10, 64); err == nil {
			revision.Number = number
		}
	}
	for _, owner := range meta.Owners {
		if owner.Controller {
			revision.Owner = types.UID(owner.UID)
		}
	}
	var read template
	_ = unmarshal(text, &read) // a template that cannot be read tells nothing
	revision.Stamps = checksum.Stamps(read.Metadata.Annotations)
	revision.Pins, _ = checksum.ParsePins(read.Metadata.Annotations[checksum.PinsAnnotation]) // unreadable ones are none
	revision.Restarted = read.Metadata.Annotations[restartedAt]
	revision.Images = images(read.Spec)
	revision.Template = fingerprint(&read)
	return revision, nil
}

func images(spec map[string]any) map[string]string {
	found := map[string]string{}
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := spec[list].([]any)
		for _, one := range containers {
			container, _ := one.(map[string]any)
			name, _ := container["name"].(string)
			found[name], _ = container["image"].(string)
		}
	}
	return found
}

// fingerprint is a hash of what people write into a template: without our stamps, without
// what kubectl rollout restart writes, and without what controllers add.
func fingerprint(t *template) string {
	annotations := maps.Clone(t.Metadata.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return checksum.IsOursOnTemplate(key) || key == restartedAt })
	labels := maps.Clone(t.Metadata.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return strings.HasSuffix(key, "pod-template-hash") || key == "controller-revision-hash"
	})
	t.Metadata.Annotations, t.Metadata.Labels = annotations, labels
	text, err := json.Marshal(t) // sorts keys
	if err != nil {
		return ""
	}
	hash := fnv.New64a()
	_, _ = hash.Write(text) // which never fails
	return strconv.FormatUint(hash.Sum64(), 16)
}
