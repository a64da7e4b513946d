package workload

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
)

// PodSpec returns at least the parts of the pod spec that can name a source. It reads them once.
// Of a readiness probe it may have nothing but that there is one. A template without a spec (a
// custom resource may have none) names nothing.
func (t *Template) PodSpec() (*corev1.PodSpec, error) {
	if t.read != nil {
		return t.read, nil
	}
	var read podSpec
	if len(t.Spec) > 0 {
		if err := unmarshal(t.Spec, &read); err != nil {
			return nil, plain(err)
		}
	}
	t.read = read.spec()
	return t.read, nil
}

func (read *podSpec) spec() *corev1.PodSpec {
	spec := &corev1.PodSpec{
		Volumes:          read.Volumes,
		ImagePullSecrets: read.ImagePullSecrets,
		InitContainers:   containers(read.InitContainers),
		Containers:       containers(read.Containers),
	}
	for _, c := range containers(read.EphemeralContainers) {
		spec.EphemeralContainers = append(spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c.Name, Env: c.Env, EnvFrom: c.EnvFrom, VolumeMounts: c.VolumeMounts},
		})
	}
	return spec
}

// Unprobed returns whether the template has containers, and none of them has a readiness
// probe. It returns false for a spec that cannot be read.
func (t *Template) Unprobed() bool {
	read, err := t.PodSpec()
	if err != nil || len(read.Containers) == 0 {
		return false
	}
	probed := func(c corev1.Container) bool { return c.ReadinessProbe != nil }
	return !slices.ContainsFunc(read.Containers, probed) && !slices.ContainsFunc(read.InitContainers, probed)
}

func containers(read []container) []corev1.Container {
	all := make([]corev1.Container, 0, len(read))
	for _, c := range read {
		container := corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Env: c.Env, EnvFrom: c.EnvFrom, VolumeMounts: c.VolumeMounts}
		if c.ReadinessProbe != nil {
			container.ReadinessProbe = &corev1.Probe{}
		}
		all = append(all, container)
	}
	return all
}

// podSpec is the part of core/v1 PodSpec in which references can stand;
// reading no more than that is three times as fast.
type podSpec struct {
	Volumes             []corev1.Volume               `json:"volumes"`
	InitContainers      []container                   `json:"initContainers"`
	Containers          []container                   `json:"containers"`
	EphemeralContainers []container                   `json:"ephemeralContainers"`
	ImagePullSecrets    []corev1.LocalObjectReference `json:"imagePullSecrets"`
}

type container struct {
	Name          string                         `json:"name"`
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy"`
	Env           sourcedEnv                     `json:"env"`
	EnvFrom       []corev1.EnvFromSource         `json:"envFrom"`
	VolumeMounts  []corev1.VolumeMount           `json:"volumeMounts"`
	// ReadinessProbe is nil when the container has none.
	ReadinessProbe *struct{} `json:"readinessProbe"`
}

// sourcedEnv is those environment variables that take their value from
// somewhere. Most have it written out, and are passed over as they are.
type sourcedEnv []corev1.EnvVar

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (e *sourcedEnv) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	return readEnv(decoder, (*[]corev1.EnvVar)(e), false)
}

// placedEnv is sourcedEnv with an empty one in the place of each of the others.
type placedEnv []corev1.EnvVar

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (e *placedEnv) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	*e = nil // of a name that comes twice the last counts
	return readEnv(decoder, (*[]corev1.EnvVar)(e), true)
}

func readEnv(decoder *jsontext.Decoder, e *[]corev1.EnvVar, keepPlaces bool) error {
	if decoder.PeekKind() != '[' {
		return json.UnmarshalDecode(decoder, e) // null, or an error that says what is wrong
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.PeekKind() != ']' {
		text, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		if !bytes.Contains(text, []byte("valueFrom")) && bytes.IndexByte(text, '\\') < 0 { // nor is the name escaped
			if keepPlaces {
				*e = append(*e, corev1.EnvVar{})
			}
			continue
		}
		*e = append(*e, corev1.EnvVar{})
		if err := unmarshal(text, &(*e)[len(*e)-1]); err != nil {
			return err
		}
	}
	_, err := decoder.ReadToken()
	return err
}
