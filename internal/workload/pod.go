package workload

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
)

// Pod is what is read of one pod of a workload.
type Pod struct {
	// Name is the pod's, Node that of the node it is bound to, "" before.
	Name, Node string
	// Owner is its controller, the zero value when it has none. Hash is what its name ends with
	// where it is a ReplicaSet.
	Owner metav1.OwnerReference
	Hash  string
	// Stamps are the stamps among its annotations.
	Stamps map[string]string
	// Trouble says why a container cannot start or crashes, such as "container web:
	// CrashLoopBackOff": the container's name and the kubelet's own word. It is "" when
	// none has trouble; of several, the first counts, init containers before others.
	Trouble string
	// Ended says how that container ended last, else one that has been restarted: the
	// kubelet's own word and the exit code, such as "OOMKilled with exit code 137"; "" when
	// none has ended. Never a message: that may quote what the container was given.
	Ended string
	// Unscheduled is the reason of the condition PodScheduled while that is False, such as
	// Unschedulable; else "".
	Unscheduled string
	// Gate is the condition type of the first readiness gate that is not True while the containers
	// are ready; else "".
	Gate string
	// Reason is status.reason: the word of a node that refuses or evicts the pod, such as OutOfcpu.
	Reason string
	// Created is metadata.creationTimestamp.
	Created time.Time
	// Started is when the last of its containers started, sidecars too (init
	// containers that keep running); zero while one of them does not run.
	Started time.Time
	// Deleting pods have a metadata.deletionTimestamp. Ending is since when they end, and Grace
	// for how long they may.
	Deleting bool
	Ending   time.Time
	Grace    time.Duration
	// Ready is the pod's condition of that name.
	Ready bool
	// Finished pods will not run again: status.phase is Succeeded or Failed.
	Finished bool
	// Restarted reports whether a container of any sort has been restarted.
	Restarted bool
	// Crashed reports that a container of any sort has ended last with an exit code other than 0.
	Crashed bool
}

// Carries reports whether the pod was made from a template with exactly these
// stamps of ours, which every controller copies to its pods with the template's
// other annotations. Without stamps it is false.
func (p *Pod) Carries(stamps map[string]string) bool {
	return len(stamps) > 0 && maps.Equal(p.Stamps, stamps)
}

// podForm is the part of a core/v1 Pod that is read.
type podForm struct {
	Metadata struct {
		Name        string                  `json:"name"`
		Labels      map[string]string       `json:"labels"`
		Annotations map[string]string       `json:"annotations"`
		Owners      []metav1.OwnerReference `json:"ownerReferences"`
		Created     metav1.Time             `json:"creationTimestamp"`
		Deleted     *metav1.Time            `json:"deletionTimestamp"`
		Grace       int64                   `json:"deletionGracePeriodSeconds"`
	} `json:"metadata"`
	Spec struct {
		Node           string          `json:"nodeName"`
		Gates          []gateForm      `json:"readinessGates"`
		InitContainers []containerForm `json:"initContainers"`
		Containers     []containerForm `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase          string            `json:"phase"`
		Reason         string            `json:"reason"`
		Conditions     []podCondition    `json:"conditions"`
		InitContainers []containerStatus `json:"initContainerStatuses"`
		Containers     []containerStatus `json:"containerStatuses"`
	} `json:"status"`
}

type containerForm struct {
	Name          string `json:"name"`
	RestartPolicy string `json:"restartPolicy"`
}

type gateForm struct {
	Condition string `json:"conditionType"`
}

type podCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Reason string `json:"reason"`
}

type containerStatus struct {
	Name     string `json:"name"`
	Restarts int64  `json:"restartCount"`
	State    struct {
		Waiting struct {
			Reason string `json:"reason"`
		} `json:"waiting"`
		Running *struct {
			Since metav1.Time `json:"startedAt"`
		} `json:"running"`
		Terminated *termination `json:"terminated"`
	} `json:"state"`
	LastState struct {
		Terminated *termination `json:"terminated"`
	} `json:"lastState"`
}

type termination struct {
	Reason   string `json:"reason"`
	ExitCode int32  `json:"exitCode"`
}

// crashed reports whether a container ended last with an error.
func (c *containerStatus) crashed() bool {
	last := cmp.Or(c.State.Terminated, c.LastState.Terminated)
	return last != nil && last.ExitCode != 0
}

// ended says how a container ended last.
func (c *containerStatus) ended() string {
	last := c.LastState.Terminated
	if last == nil {
		return ""
	}
	return strings.TrimPrefix(fmt.Sprintf("%s with exit code %d", word(last.Reason), last.ExitCode), " with ")
}

// Pods reads one page of a PodList from JSON, and the token of the next page, ""
// on the last (metadata.continue).
func Pods(list []byte) (pods []Pod, next string, err error) {
	var page struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []podForm `json:"items"`
	}
	if err := unmarshal(list, &page); err != nil {
		return nil, "", fmt.Errorf("reading a list of pods: %w", plain(err))
	}
	if page.Kind != "PodList" && page.Kind != "" {
		return nil, "", errors.New("reading a list of pods: it is not a PodList")
	}
	pods = make([]Pod, 0, len(page.Items))
	for i := range page.Items {
		pods = append(pods, page.Items[i].pod())
	}
	return pods, page.Metadata.Continue, nil
}

func (f *podForm) pod() Pod {
	pod := Pod{
		Name:     f.Metadata.Name,
		Node:     f.Spec.Node,
		Hash:     hashOf(f.Metadata.Labels),
		Stamps:   checksum.Stamps(f.Metadata.Annotations),
		Created:  f.Metadata.Created.UTC(),
		Started:  f.started(),
		Finished: f.Status.Phase == "Succeeded" || f.Status.Phase == "Failed",
		Reason:   qualified(f.Status.Reason),
	}
	if ends := f.Metadata.Deleted; ends != nil {
		pod.Deleting, pod.Grace = true, time.Duration(f.Metadata.Grace)*time.Second
		pod.Ending = ends.Add(-pod.Grace).UTC()
	}
	if owner := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: f.Metadata.Owners}); owner != nil {
		pod.Owner = *owner
	}
	f.readConditions(&pod)
	for _, statuses := range [][]containerStatus{f.Status.InitContainers, f.Status.Containers} {
		for i := range statuses {
			container := &statuses[i]
			pod.Crashed = pod.Crashed || container.crashed()
			if container.Restarts > 0 {
				pod.Restarted, pod.Ended = true, cmp.Or(pod.Ended, container.ended())
			}
			if pod.Trouble == "" && isTrouble(container.State.Waiting.Reason) {
				pod.Trouble, pod.Ended = "container "+container.Name+": "+container.State.Waiting.Reason, container.ended()
			}
		}
	}
	return pod
}

// readConditions reads whether a pod is ready, and what keeps it from a node or from being ready.
func (f *podForm) readConditions(pod *Pod) {
	isTrue := make(map[string]bool, len(f.Status.Conditions))
	for _, condition := range f.Status.Conditions {
		if isTrue[condition.Type] = condition.Status == "True"; condition.Type == "PodScheduled" && condition.Status == "False" {
			pod.Unscheduled = qualified(condition.Reason)
		}
	}
	pod.Ready = isTrue["Ready"]
	if i := slices.IndexFunc(f.Spec.Gates, func(gate gateForm) bool { return !isTrue[gate.Condition] }); i >= 0 && isTrue["ContainersReady"] {
		pod.Gate = qualified(f.Spec.Gates[i].Condition)
	}
}

// qualified returns a text that has the form of a qualified name, such as OutOfcpu or example.com/ready,
// and else "": it may be anything.
func qualified(text string) string {
	const longest = 128
	if len(text) > longest || strings.IndexFunc(text, func(r rune) bool {
		return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("-._/", r)
	}) >= 0 {
		return ""
	}
	return text
}

// started is when the last container of those that shall keep running started,
// zero when one of them does not run.
func (f *podForm) started() time.Time {
	var last time.Time
	all := func(containers []containerForm, statuses []containerStatus, wanted func(*containerForm) bool) bool {
		since := make(map[string]time.Time, len(statuses))
		for i := range statuses {
			if status := &statuses[i]; status.State.Running != nil {
				since[status.Name] = status.State.Running.Since.UTC()
			}
		}
		for i := range containers {
			if !wanted(&containers[i]) {
				continue
			}
			at := since[containers[i].Name]
			if at.IsZero() {
				return false
			}
			last = later(last, at)
		}
		return true
	}
	if !all(f.Spec.Containers, f.Status.Containers, func(*containerForm) bool { return true }) ||
		!all(f.Spec.InitContainers, f.Status.InitContainers, func(c *containerForm) bool { return c.RestartPolicy == "Always" }) {
		return time.Time{}
	}
	return last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// isTrouble reports whether a container that waits for this reason has failed to
// start or crashed. The words are the kubelet's (k8s.io/kubernetes/pkg/kubelet:
// container, kuberuntime, images; k8s.io/cri-api/pkg/errors); any other, such as
// ContainerCreating, is not held against it.
func isTrouble(reason string) bool {
	switch reason {
	case "CrashLoopBackOff", "RunContainerError", "StartError", "PreStartHookError", "PostStartHookError",
		"CreateContainerConfigError", "CreateContainerError", "PreCreateHookError",
		"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
		"RegistryUnavailable", "SignatureValidationFailed":
		return true
	}
	return false
}

// Selector reads from JSON the label selector of an object's pods (spec.selector),
// as a query of the API writes it; "" when the object has none, or an empty one,
// and its pods cannot be distinguished from others. It may be a LabelSelector or, as in a
// DeploymentConfig, a plain map of labels.
func (k *Kind) Selector(raw []byte) (string, error) {
	var object struct {
		Spec struct {
			Selector span `json:"selector"`
		} `json:"spec"`
	}
	if err := unmarshal(raw, &object); err != nil {
		return "", fmt.Errorf("reading the selector of a %s: %w", k.Name, plain(err))
	}
	text := object.Spec.Selector.of(raw)
	if len(text) == 0 {
		return "", nil
	}
	var selector metav1.LabelSelector
	if err := unmarshal(text, &selector.MatchLabels); err != nil { // it is no plain map
		selector = metav1.LabelSelector{}
		if err := unmarshal(text, &selector); err != nil {
			return "", fmt.Errorf("reading the selector of a %s: %w", k.Name, plain(err))
		}
	}
	read, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil { // which quotes it
		return "", fmt.Errorf("reading the selector of a %s: it is neither a LabelSelector nor a map of labels", k.Name)
	}
	return read.String(), nil
}
