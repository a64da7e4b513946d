package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NewPod is what is read of a Pod that is about to be created.
type NewPod struct {
	Metadata
	// Spec has what can name a ConfigMap, everything in its place: an environment variable
	// that takes its value from nowhere is an empty one.
	Spec *corev1.PodSpec
}

// DecodeNewPod reads a Pod from JSON.
func DecodeNewPod(raw []byte) (*NewPod, error) {
	type placed struct {
		Name          string                         `json:"name"`
		RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy"`
		Env           placedEnv                      `json:"env"`
		EnvFrom       []corev1.EnvFromSource         `json:"envFrom"`
		VolumeMounts  []corev1.VolumeMount           `json:"volumeMounts"`
	}
	var read struct {
		Metadata Metadata `json:"metadata"`
		Spec     struct {
			Volumes        []corev1.Volume `json:"volumes"`
			InitContainers []placed        `json:"initContainers"`
			Containers     []placed        `json:"containers"`
		} `json:"spec"`
	}
	if err := unmarshal(raw, &read); err != nil {
		return nil, fmt.Errorf("reading a Pod: %w", plain(err))
	}
	all := func(list []placed) []corev1.Container {
		containers := make([]corev1.Container, len(list))
		for i, c := range list {
			containers[i] = corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Env: c.Env, EnvFrom: c.EnvFrom, VolumeMounts: c.VolumeMounts}
		}
		return containers
	}
	return &NewPod{Metadata: read.Metadata, Spec: &corev1.PodSpec{
		Volumes: read.Spec.Volumes, InitContainers: all(read.Spec.InitContainers), Containers: all(read.Spec.Containers),
	}}, nil
}

// Controller is the owner that controls the Pod, nil when there is none.
func (p *NewPod) Controller() *metav1.OwnerReference {
	object := Object{Metadata: p.Metadata}
	return object.Controller()
}
