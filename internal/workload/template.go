package workload

import (
	"bytes"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/configstamp/configstamp/checksum"
)

// Template is a pod template: its metadata read, its spec kept as it came
// until somebody asks for it.
type Template struct {
	Metadata templateMetadata `json:"metadata"`
	Spec     jsontext.Value   `json:"spec"`
}

// templateMetadata reads annotations and keeps the rest for comparison.
type templateMetadata struct {
	Annotations map[string]string
	// rest is every other field, by name.
	rest map[string]jsontext.Value
	// written tells that the object has a metadata field at all.
	written bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *templateMetadata) UnmarshalJSON(raw []byte) error {
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	m.written = true
	if err := unmarshal(raw, &m.rest); err != nil {
		return err
	}
	annotations, ok := m.rest["annotations"]
	if !ok {
		return nil
	}
	delete(m.rest, "annotations")
	return unmarshal(annotations, &m.Annotations)
}

// HasMetadata reports whether the template has a metadata object, which a
// patch of its annotations needs.
func (t *Template) HasMetadata() bool { return t.Metadata.written }

// PodSpec reads the parts of the pod spec that can name a source. A template
// without a spec (a custom resource may have none) names nothing.
func (t *Template) PodSpec() (*corev1.PodSpec, error) {
	var read podSpec
	if len(t.Spec) > 0 {
		if err := unmarshal(t.Spec, &read); err != nil {
			return nil, plain(err)
		}
	}
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
	return spec, nil
}

func containers(read []container) []corev1.Container {
	all := make([]corev1.Container, 0, len(read))
	for _, c := range read {
		all = append(all, corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Env: c.Env, EnvFrom: c.EnvFrom, VolumeMounts: c.VolumeMounts})
	}
	return all
}

// Same reports whether two templates are equal, our stamps aside. It compares
// the JSON, so fields of a newer API than this library's count too.
func (t *Template) Same(other *Template) bool {
	return sameJSON(t.Spec, other.Spec) &&
		sameForeign(t.Metadata.Annotations, other.Metadata.Annotations) &&
		sameRest(t.Metadata.rest, other.Metadata.rest)
}

func sameForeign(a, b map[string]string) bool {
	foreign := func(annotations map[string]string) (n int) {
		for key := range annotations {
			if !checksum.IsStampKey(key) {
				n++
			}
		}
		return n
	}
	if foreign(a) != foreign(b) {
		return false
	}
	for key, value := range a {
		if checksum.IsStampKey(key) {
			continue
		}
		if other, ok := b[key]; !ok || other != value {
			return false
		}
	}
	return true
}

func sameRest(a, b map[string]jsontext.Value) bool {
	for key, value := range a {
		if !sameJSON(value, b[key]) {
			return false
		}
	}
	for key, value := range b {
		if _, ok := a[key]; !ok && !sameJSON(value, nil) {
			return false
		}
	}
	return true
}

// sameJSON compares two values. An absent one equals null and an empty object,
// as the API server reads them.
func sameJSON(a, b jsontext.Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	left, leftOK := anyJSON(a)
	right, rightOK := anyJSON(b)
	return leftOK && rightOK && reflect.DeepEqual(left, right)
}

// anyJSON keeps whole numbers whole, which is why it reads with another library.
func anyJSON(raw jsontext.Value) (value any, ok bool) {
	if len(raw) == 0 {
		return nil, true
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
		return nil, false
	}
	if object, isObject := value.(map[string]any); isObject && len(object) == 0 {
		return nil, true
	}
	return value, true
}
