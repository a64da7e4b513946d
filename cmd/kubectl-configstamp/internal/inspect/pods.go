package inspect

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/workload"
)

// Pods reads the pods that a label selector finds in a namespace, oldest first. "" finds
// all.
func (c *Cluster) Pods(ctx context.Context, namespace, selector string) ([]seen.Pod, error) {
	var pods []seen.Pod
	err := c.each(ctx, query{gvr: v1("", "pods"), namespace: namespace, labels: selector}, func(raw []byte) error {
		pod, err := podOf(raw)
		pods = append(pods, pod)
		return err
	})
	slices.SortFunc(pods, func(a, b seen.Pod) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return pods, err
}

// Pod reads one pod; nil when there is none, or when the user may not read it, which is
// noted.
func (c *Cluster) Pod(ctx context.Context, namespace, name string) (*seen.Pod, error) {
	raw, err := c.one(ctx, query{gvr: v1("", "pods"), namespace: namespace, name: name})
	if raw == nil || err != nil {
		return nil, err
	}
	pod, err := podOf(raw)
	return &pod, err
}

func podOf(raw []byte) (seen.Pod, error) {
	list := append(append([]byte(`{"items":[`), raw...), `]}`...)
	read, _, err := workload.Pods(list)
	if err != nil || len(read) != 1 {
		return seen.Pod{}, err
	}
	meta := metadataOf(raw)
	pod := seen.Pod{Pod: read[0], Namespace: meta.Namespace, Revision: cmp.Or(meta.Labels["pod-template-hash"], meta.Labels["controller-revision-hash"], meta.Labels["rollouts-pod-template-hash"])}
	pod.Pinned, _ = checksum.ParseBaseline(meta.Annotations[checksum.PinnedAnnotation]) // what cannot be read is none
	for _, owner := range meta.Owners {
		if owner.Controller {
			pod.Owner, pod.OwnerKind, pod.OwnerName = types.UID(owner.UID), owner.Kind, owner.Name
		}
	}
	var status struct {
		Status struct {
			InitContainers []struct {
				Restarts int `json:"restartCount"`
			} `json:"initContainerStatuses"`
			Containers []struct {
				Restarts int `json:"restartCount"`
			} `json:"containerStatuses"`
		} `json:"status"`
	}
	if err := unmarshal(raw, &status); err == nil {
		for _, container := range append(status.Status.InitContainers, status.Status.Containers...) {
			pod.Restarts += container.Restarts
		}
	}
	return pod, nil
}

// WorkloadOf reads the workload that made a pod, by way of its ReplicaSet or Job where one
// stands between; nil when no workload of the table did.
func (c *Cluster) WorkloadOf(ctx context.Context, settings *seen.Settings, pod *seen.Pod) (*seen.Workload, error) {
	kind, name := pod.OwnerKind, pod.OwnerName
	for range 3 { // a Pod, a Job, a CronJob
		if kind == "" {
			return nil, nil
		}
		row, err := FindKind(settings.Kinds, kind)
		if err != nil {
			return nil, nil //nolint:nilerr // what owns it is not one of our kinds
		}
		w, err := c.Workload(ctx, settings, workload.Ref{Kind: row, Namespace: pod.Namespace, Name: name})
		if w == nil || err != nil {
			return nil, err
		}
		owner := w.Object.Controller()
		if owner == nil || !row.CreateOnly {
			return w, nil
		}
		kind, name = owner.Kind, owner.Name
	}
	return nil, nil
}
