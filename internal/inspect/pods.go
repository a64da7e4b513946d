package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/workload"
)

// Pods reads the pods that a label selector finds in a namespace, oldest first. "" finds
// all.
func (c *Cluster) Pods(ctx context.Context, namespace, selector string) ([]seen.Pod, error) {
	var pods []seen.Pod
	err := c.each(ctx, query{gvr: gvr("", "v1", "pods"), namespace: namespace, labels: selector}, func(raw []byte) error {
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
	raw, err := c.one(ctx, query{gvr: gvr("", "v1", "pods"), namespace: namespace, name: name})
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

// Events reads the events of one object, newest first. kind is its own word, such as
// Deployment. Kubernetes keeps events for an hour.
func (c *Cluster) Events(ctx context.Context, namespace, kind, name string) ([]seen.Event, error) {
	return c.events(ctx, namespace, "involvedObject.kind="+kind+",involvedObject.name="+name)
}

func (c *Cluster) events(ctx context.Context, namespace, selector string) ([]seen.Event, error) {
	var events []seen.Event
	err := c.each(ctx, query{gvr: gvr("", "v1", "events"), namespace: namespace, fields: selector}, func(raw []byte) error {
		events = append(events, eventOf(raw))
		return nil
	})
	slices.SortStableFunc(events, func(a, b seen.Event) int { return b.Last.Compare(a.Last) })
	return events, err
}

// eventOf reads an event in the form of core/v1, which may have been written in that of
// events.k8s.io/v1.
func eventOf(raw []byte) seen.Event {
	var event struct {
		Metadata struct {
			Created time.Time `json:"creationTimestamp"`
		} `json:"metadata"`
		Involved struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"involvedObject"`
		Type      string    `json:"type"`
		Reason    string    `json:"reason"`
		Message   string    `json:"message"`
		Count     int32     `json:"count"`
		First     time.Time `json:"firstTimestamp"`
		Last      time.Time `json:"lastTimestamp"`
		EventTime time.Time `json:"eventTime"`
		Series    struct {
			Count int32     `json:"count"`
			Last  time.Time `json:"lastObservedTime"`
		} `json:"series"`
		Source struct {
			Component string `json:"component"`
		} `json:"source"`
		Reporter string `json:"reportingComponent"`
	}
	_ = unmarshal(raw, &event) // what cannot be read is not told
	first := firstTime(event.First, event.EventTime, event.Metadata.Created)
	return seen.Event{
		Kind: event.Involved.Kind, Name: event.Involved.Name,
		Reason: event.Reason, Message: event.Message, Warning: event.Type == "Warning",
		First: first, Last: firstTime(event.Series.Last, event.Last, first),
		Count: max(event.Count, event.Series.Count, 1), By: cmp.Or(event.Reporter, event.Source.Component),
	}
}

func firstTime(times ...time.Time) time.Time {
	for _, one := range times {
		if !one.IsZero() {
			return one.UTC()
		}
	}
	return time.Time{}
}
