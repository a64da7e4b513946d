package workload

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
)

// RunningPod is what has to be known of a pod to tell what content its containers started
// with.
type RunningPod struct {
	Metadata
	Created time.Time
	// Owner is its controller, the zero value when it has none. Hash is what its name ends with
	// where it is a ReplicaSet.
	Owner metav1.OwnerReference
	Hash  string
	// Stamps are the stamps among its annotations.
	Stamps map[string]string
	// Pinned are the sources that its spec names by snapshots, by these: see
	// checksum.PinnedAnnotation.
	Pinned map[checksum.Source]checksum.Source
	// Finished pods will not run again.
	Finished bool
	// Lost tells that the pod's node does not answer.
	Lost bool
	// Spec has what names sources, and nothing else.
	Spec *corev1.PodSpec
	// Containers are as in Spec: init containers first.
	Containers []RunningContainer
}

// RunningContainer is a container of a pod. Started is when it last started: of one that runs,
// or of an init container that has ended; else zero. Restarted tells that it was not its first
// start.
type RunningContainer struct {
	Name      string
	Started   time.Time
	Restarted bool
}

// runningPod is the part of a core/v1 Pod that is read.
type runningPod struct {
	Metadata struct {
		Name            string                  `json:"name"`
		Namespace       string                  `json:"namespace"`
		UID             string                  `json:"uid"`
		ResourceVersion string                  `json:"resourceVersion"`
		Labels          map[string]string       `json:"labels"`
		Annotations     map[string]string       `json:"annotations"`
		Owners          []metav1.OwnerReference `json:"ownerReferences"`
		Created         metav1.Time             `json:"creationTimestamp"`
		Deleted         *metav1.Time            `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec   podSpec `json:"spec"`
	Status struct {
		Phase          string             `json:"phase"`
		Reason         string             `json:"reason"`
		Conditions     []reasonedForm     `json:"conditions"`
		InitContainers []runningContainer `json:"initContainerStatuses"`
		Containers     []runningContainer `json:"containerStatuses"`
	} `json:"status"`
}

type reasonedForm struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Reason string `json:"reason"`
}

type runningContainer struct {
	Name     string `json:"name"`
	Restarts int64  `json:"restartCount"`
	State    struct {
		Running *struct {
			Since metav1.Time `json:"startedAt"`
		} `json:"running"`
		Terminated *struct {
			Since metav1.Time `json:"startedAt"`
		} `json:"terminated"`
	} `json:"state"`
}

// ReadRunningPod reads one pod from JSON.
func ReadRunningPod(raw []byte) (*RunningPod, error) {
	var read runningPod
	if err := unmarshal(raw, &read); err != nil {
		return nil, fmt.Errorf("reading a pod: %w", plain(err))
	}
	return read.pod()
}

// PodMessages reads pods from protobuf messages.
type PodMessages struct{ all fields }

// NewPodMessages makes the reader of pods.
func NewPodMessages() *PodMessages {
	return &PodMessages{fieldsOf(reflect.TypeFor[runningPod](), reflect.TypeFor[corev1.Pod]())}
}

// Read reads one pod.
func (m *PodMessages) Read(message []byte) (*RunningPod, error) {
	var read runningPod
	if err := m.all.read(reflect.ValueOf(&read).Elem(), message); err != nil {
		return nil, fmt.Errorf("reading a pod: %w", plain(err))
	}
	return read.pod()
}

func (f *runningPod) pod() (*RunningPod, error) {
	meta := &f.Metadata
	pod := &RunningPod{
		Metadata: Metadata{Name: meta.Name, Namespace: meta.Namespace, ResourceVersion: meta.ResourceVersion, DeletionTimestamp: meta.Deleted},
		Created:  meta.Created.UTC(),
		Hash:     hashOf(meta.Labels),
		Stamps:   checksum.Stamps(meta.Annotations),
		Pinned:   pinnedIn(meta.Annotations),
		Finished: f.Status.Phase == "Succeeded" || f.Status.Phase == "Failed",
		Lost:     f.lost(),
	}
	pod.UID = types.UID(meta.UID)
	for i := range meta.Owners {
		if owner := meta.Owners[i]; owner.Controller != nil && *owner.Controller {
			pod.Owner = owner
		}
	}
	spec, err := (&Template{read: &f.Spec}).PodSpec()
	if err != nil {
		return nil, err
	}
	pod.Spec = spec
	for i := range spec.InitContainers {
		pod.Containers = append(pod.Containers, startOf(f.Status.InitContainers, spec.InitContainers[i].Name, spec.InitContainers[i].RestartPolicy == nil))
	}
	for i := range spec.Containers {
		pod.Containers = append(pod.Containers, startOf(f.Status.Containers, spec.Containers[i].Name, false))
	}
	return pod, nil
}

// pinnedIn reads PinnedAnnotation; what cannot be read is none.
func pinnedIn(annotations map[string]string) map[checksum.Source]checksum.Source {
	names, err := checksum.ParseBaseline(annotations[checksum.PinnedAnnotation])
	if err != nil || len(names) == 0 {
		return nil
	}
	pinned := make(map[checksum.Source]checksum.Source, len(names))
	for source, name := range names {
		if checksum.SnapshotFits(source, name) {
			pinned[checksum.Source{Kind: source.Kind, Name: name}] = source
		}
	}
	return pinned
}

// startOf is when a container last started. ends tells that it is an init container, which
// counts after its end too.
func startOf(statuses []runningContainer, name string, ends bool) RunningContainer {
	c := RunningContainer{Name: name}
	for i := range statuses {
		if statuses[i].Name != name {
			continue
		}
		c.Restarted = statuses[i].Restarts > 0
		switch state := &statuses[i].State; {
		case state.Running != nil:
			c.Started = state.Running.Since.UTC()
		case ends && state.Terminated != nil:
			c.Started = state.Terminated.Since.UTC()
		}
	}
	return c
}

// lost reports whether the pod's node does not answer, as far as the pod says: somebody else
// than its kubelet, which always gives a reason, has called it not ready.
// (k8s.io/kubernetes/pkg/controller/util/node, MarkPodsNotReady and SetPodTerminationReason.)
func (f *runningPod) lost() bool {
	for _, condition := range f.Status.Conditions {
		if condition.Type == "Ready" && (condition.Status == "Unknown" || condition.Status == "False" && condition.Reason == "") {
			return true
		}
	}
	return f.Status.Reason == "NodeLost"
}

// hashOf is what the name of a pod's ReplicaSet ends with, by the pod's labels.
func hashOf(labels map[string]string) string {
	return cmp.Or(labels["pod-template-hash"], labels["rollouts-pod-template-hash"])
}

// MadeBy reports whether a pod that a workload's selector finds is the workload's, as far as its
// controller tells: pods of others may have the same labels. One without a controller is about
// to get one. What is of no kind of the table may stand between, and between a custom resource
// and its pods anything.
func (t Table) MadeBy(ref Ref, uid types.UID, pod *Pod) bool {
	if pod.Owner.UID == "" || pod.Owner.UID == uid {
		return true
	}
	makers := t.Makers(pod.Owner, pod.Hash)
	unknown := len(makers) == 0 || ref.Kind.Custom
	for _, maker := range makers {
		if maker.Kind.String() != ref.Kind.String() {
			continue
		}
		if maker.Name == ref.Name {
			return true
		}
		unknown = false
	}
	return unknown
}

// Makers are the workloads of the table that may have made what an owner owns, by the owner's
// name: a Deployment by its ReplicaSet's. hash is RunningPod.Hash. They have no namespace.
func (t Table) Makers(owner metav1.OwnerReference, hash string) (all []Ref) {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	if group == owner.APIVersion {
		group = "" // v1
	}
	between := owner.Name // an object whose name ends with something of its own
	switch {
	case owner.Kind == "ReplicaSet" && hash != "":
		between = strings.TrimSuffix(owner.Name, "-"+hash)
	case owner.Kind == "Job" || owner.Kind == "ReplicationController":
		if at := strings.LastIndexByte(owner.Name, '-'); at > 0 {
			between = owner.Name[:at]
		}
	}
	for _, kind := range t {
		switch {
		case kind.Group == group && kind.Name == owner.Kind:
			all = append(all, Ref{Kind: kind, Name: owner.Name})
		case between == owner.Name:
		case owner.Kind == "ReplicaSet" && (kind.Name == "Deployment" || kind.Resource == "rollouts"),
			owner.Kind == "Job" && kind.Name == "CronJob",
			owner.Kind == "ReplicationController" && kind.Resource == "deploymentconfigs":
			all = append(all, Ref{Kind: kind, Name: between})
		}
	}
	return all
}
