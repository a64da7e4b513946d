package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/snapshot"
	"github.com/configstamp/configstamp/internal/workload"
)

// ConfigMap reads one with what it holds, to show it to the user who asks; nil when there is
// none.
func (c *Cluster) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	q := query{gvr: v1("", "configmaps"), namespace: namespace, name: name}
	raw, forbidden, err := c.look(ctx, q)
	switch {
	case err != nil || raw == nil && !forbidden:
		return nil, err
	case forbidden:
		return nil, fmt.Errorf("you have no right to read %s", q.String())
	}
	return configMapOf(raw)
}

// Snapshots reads those of a source with what they hold, the newest first. The user has no
// key: whether a snapshot is what its name says, only the webhook can tell.
func (c *Cluster) Snapshots(ctx context.Context, namespace string, of checksum.Source) (all []*corev1.ConfigMap, err error) {
	q := query{gvr: v1("", "configmaps"), namespace: namespace, labels: checksum.SnapshotLabel + "=" + checksum.SnapshotMarked}
	err = c.each(ctx, q, func(raw []byte) error {
		meta := metadataOf(raw)
		if its, claims := snapshot.Claims(meta.Labels, meta.Annotations, meta.Name); !claims || its != of {
			return nil
		}
		cm, err := configMapOf(raw)
		if err == nil {
			all = append(all, cm)
		}
		return err
	})
	slices.SortFunc(all, func(a, b *corev1.ConfigMap) int {
		return cmp.Or(MadeAt(b).Compare(MadeAt(a)), cmp.Compare(a.Name, b.Name))
	})
	return all, err
}

// Delete deletes a ConfigMap as it was read, with the rights of the user; the errors are the
// API server's.
func (c *Cluster) Delete(ctx context.Context, cm *corev1.ConfigMap) error {
	body, err := json.Marshal(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &cm.UID, ResourceVersion: &cm.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("writing the deletion of %s: %w", cm.Name, err)
	}
	q := query{gvr: v1("", "configmaps"), namespace: cm.Namespace, name: cm.Name}
	return c.client.Delete().AbsPath(q.path()).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}

// MadeAt is when a snapshot was made.
func MadeAt(cm *corev1.ConfigMap) time.Time {
	read, _ := snapshot.From(cm)
	return read.MadeAt().UTC()
}

func configMapOf(raw []byte) (*corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	if unmarshal(raw, &cm) != nil {
		return nil, fmt.Errorf("reading a ConfigMap: it does not have the form of one")
	}
	return &cm, nil
}

// Undo is the patch that gives a workload the template of one of its revisions, as kubectl
// rollout undo does: it names no field manager, by which the webhook knows it. The
// workload's own annotations stay.
func (c *Cluster) Undo(ctx context.Context, w *seen.Workload, to *seen.Revision) (*Patch, error) {
	resources := revisionsOf([]*workload.Kind{w.Kind})
	if len(resources) == 0 {
		return nil, fmt.Errorf("%s keeps no revisions", w.Text())
	}
	q := query{gvr: v1("apps", resources[0]), namespace: w.Namespace, name: to.Name}
	raw, err := c.get(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", q.String(), err)
	}
	template, err := templateOf(raw)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", q.String(), err)
	}
	body, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template", "value": template}})
	if err != nil {
		return nil, fmt.Errorf("writing the patch of %s: %w", w.Text(), err)
	}
	return &Patch{Of: OfWorkload(w.Ref), Body: body, Type: types.JSONPatchType}, nil
}

// templateOf is the pod template that a ReplicaSet or a ControllerRevision keeps.
func templateOf(raw []byte) (map[string]any, error) {
	var object struct {
		Data struct {
			Spec struct {
				Template map[string]any `json:"template"`
			} `json:"spec"`
		} `json:"data"`
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	if err := unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("it does not have the form of its kind")
	}
	template := object.Spec.Template
	if template == nil {
		template = object.Data.Spec.Template
	}
	if template == nil {
		return nil, fmt.Errorf("it keeps no pod template")
	}
	delete(template, "$patch")
	metadata, _ := template["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	delete(labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return template, nil
}
