package timeline

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// Touched tells which workloads (namespace/kind/name) are not as they were at a
// moment, or were not meanwhile, and how that shows: another generation,
// template or annotation, a revision, Pod or start of a container that was not
// there.
func (e Events) Touched(since Since) map[string][]string { return e.told(since, changes) }

// Rolled tells which workloads rolled since a moment, or were not left alone by kubelets,
// and how that shows: another spec, a revision, Pod or start of a container that was not
// there. Annotations aside from the template's are nobody's concern here.
func (e Events) Rolled(since Since) map[string][]string {
	return e.told(since, func(was, now *unstructured.Unstructured) []string { return others(was, now, []string{"spec"}) })
}

func (e Events) told(since Since, changes func(was, now *unstructured.Unstructured) []string) map[string][]string {
	touched, last, owner := map[string][]string{}, map[string]*unstructured.Unstructured{}, owners{}
	for _, event := range e {
		object := event.Object
		owner.note(object)
		key := nameOf(object) + string(object.GetUID())
		was := last[key]
		last[key] = object
		if event.Version <= int64(since) {
			continue
		}
		name, what := "", []string(nil)
		switch {
		case isWorkload(object):
			name, what = nameOf(object), changes(was, object)
		case object.GetKind() == "ReplicaSet" || object.GetKind() == "Pod":
			if name = owner.of(object); name == "" {
				continue
			}
			what = lifeOf(was, object)
		}
		if event.Type == watch.Deleted {
			what = append(what, nameless(object)+" was deleted")
		}
		for _, one := range what {
			touched[name] = append(touched[name], fmt.Sprintf("%s at %s (version %d)", one, clock(event.Seen), event.Version))
		}
	}
	return touched
}

// nameless is an object as its workload's own: without the namespace.
func nameless(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}

// changes tells how the wish of a workload has changed, status aside.
func changes(was, now *unstructured.Unstructured) []string {
	if was == nil {
		return []string{nameless(now) + " was made"}
	}
	var found []string
	if was.GetGeneration() != now.GetGeneration() {
		found = append(found, fmt.Sprintf("generation %d, then %d", was.GetGeneration(), now.GetGeneration()))
	}
	return append(found, others(was, now, []string{"spec"}, []string{"metadata", "annotations"}, []string{"metadata", "labels"})...)
}

// others tells what at some paths is not as it was.
func others(was, now *unstructured.Unstructured, paths ...[]string) []string {
	if was == nil {
		return []string{nameless(now) + " was made"}
	}
	var found []string
	for _, path := range paths {
		before, _, _ := unstructured.NestedFieldNoCopy(was.Object, path...)
		after, _, _ := unstructured.NestedFieldNoCopy(now.Object, path...)
		if text(before) != text(after) {
			found = append(found, fmt.Sprintf("another %s", path[len(path)-1]))
		}
	}
	return found
}

// lifeOf tells of a revision or Pod that was made, and of a container that
// started.
func lifeOf(was, now *unstructured.Unstructured) []string {
	if was == nil {
		return []string{nameless(now) + " was made"}
	}
	if now.GetKind() != "Pod" {
		return nil
	}
	if before, after := Restarts(was), Restarts(now); before != after {
		return []string{fmt.Sprintf("%s had %d restarts, then %d", nameless(now), before, after)}
	}
	return nil
}

// Restarts is how often containers of a Pod were started again.
func Restarts(pod *unstructured.Unstructured) int {
	restarts := 0
	for _, container := range read[corev1.Pod](pod).Status.ContainerStatuses {
		restarts += int(container.RestartCount)
	}
	return restarts
}

// Crashed lists the Pods of a workload that were made after a moment and of which
// every one, when it was last seen, had crashed; ok is false when there is none,
// or one that had not.
func (e Events) Crashed(since Since, workload string) (pods []string, ok bool) {
	last, made, owner := map[string]*unstructured.Unstructured{}, map[string]bool{}, owners{}
	for _, event := range e {
		owner.note(event.Object)
		if event.Object.GetKind() != "Pod" || owner.of(event.Object) != workload {
			continue
		}
		id := string(event.Object.GetUID()) // a StatefulSet gives one name again and again
		made[id] = made[id] || last[id] == nil && event.Version > int64(since)
		last[id] = event.Object
		if event.Type == watch.Deleted {
			made[id] = false
		}
	}
	ok = true
	for id, pod := range last {
		if made[id] {
			pods = append(pods, pod.GetName())
			ok = ok && crashing(pod)
		}
	}
	slices.Sort(pods)
	return pods, ok && len(pods) > 0
}

func crashing(pod *unstructured.Unstructured) bool {
	for _, container := range read[corev1.Pod](pod).Status.ContainerStatuses {
		if container.RestartCount > 0 || container.State.Terminated != nil {
			return true
		}
	}
	return false
}

// Lives tells what became of the Pods of a workload since a moment, a line for
// each thing that happened.
func (e Events) Lives(since Since, workload string) []string {
	owner, last, lines := owners{}, map[string]string{}, []string(nil)
	for _, event := range e {
		owner.note(event.Object)
		if event.Object.GetKind() != "Pod" || owner.of(event.Object) != workload {
			continue
		}
		pod := read[corev1.Pod](event.Object)
		now := string(pod.Status.Phase)
		for _, container := range pod.Status.ContainerStatuses {
			now += fmt.Sprintf(", ready: %v, %d restarts", container.Ready, container.RestartCount)
			switch state := container.State; {
			case state.Running != nil:
				now += ", running since " + state.Running.StartedAt.Format("15:04:05")
			case state.Terminated != nil:
				now += ", ended at " + state.Terminated.FinishedAt.Format("15:04:05")
			case state.Waiting != nil:
				now += ", waiting: " + state.Waiting.Reason
			}
		}
		if pod.DeletionTimestamp != nil {
			now += ", to be deleted"
		}
		if event.Type == watch.Deleted {
			now = "gone"
		}
		if last[pod.Name] != now && event.Version > int64(since) {
			lines = append(lines, fmt.Sprintf("%s %s: %s", clock(event.Seen), pod.Name, now))
		}
		last[pod.Name] = now
	}
	return lines
}

func text(value any) string {
	encoded, err := json.Marshal(value) // keys are sorted
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}
