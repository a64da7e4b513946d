package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/e2e/cost"
)

// maker makes an object of a shape.
type maker struct {
	cost.Shape
	n, left int // left bounds the whole: lists may lie within lists
	names   int // of sources that were named
}

// many is how many there are of a dimension.
func (m *maker) many(dimension int) int {
	some := 1
	for some*some < m.n {
		some++
	}
	count := min([]int{0, 1, 2, some, m.n}[m.Shape[dimension]%5], m.left)
	m.left -= count
	return count
}

// one is what a dimension chooses of so many.
func (m *maker) one(dimension, of int) int { return int(m.Shape[dimension]) % of }

// name is that of the next source.
func (m *maker) name() string {
	m.names++
	switch m.one(cost.Naming, 3) {
	case 0:
		return "s-0"
	case 1:
		return fmt.Sprint("s-", m.names%16)
	}
	return fmt.Sprint("s-", m.names)
}

func key(i int) string { return fmt.Sprint("k-", i) }

func (m *maker) isOptional() *bool {
	is := m.one(cost.Optional, 2) == 1
	return &is
}

func (m *maker) template() corev1.PodTemplateSpec {
	var t corev1.PodTemplateSpec
	t.Labels, t.Annotations = map[string]string{"app": "web"}, map[string]string{}
	for i := range m.many(cost.Foreign) {
		t.Annotations[fmt.Sprint("team/a-", i)], t.Labels[fmt.Sprint("team/l-", i)] = "x", "x"
	}
	for i := range m.many(cost.Containers) {
		t.Spec.Containers = append(t.Spec.Containers, m.container(i, fmt.Sprint("c-", i)))
	}
	for i := range m.many(cost.InitContainers) {
		t.Spec.InitContainers = append(t.Spec.InitContainers, m.container(i, fmt.Sprint("i-", i)))
	}
	for i := range m.many(cost.Volumes) {
		t.Spec.Volumes = append(t.Spec.Volumes, m.volume(i))
	}
	for range m.many(cost.PullSecrets) {
		t.Spec.ImagePullSecrets = append(t.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: m.name()})
	}
	return t
}

func (m *maker) container(i int, name string) corev1.Container {
	c := corev1.Container{Name: name, Image: "web"}
	for j := range m.many(cost.Env) {
		ref := &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: m.name()}, Key: key(j), Optional: m.isOptional()}
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("E", j), ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: ref}})
	}
	for range m.many(cost.EnvFrom) {
		ref := &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: m.name()}, Optional: m.isOptional()}
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: ref})
	}
	for j := range m.many(cost.Mounts) {
		mount := corev1.VolumeMount{MountPath: fmt.Sprint("/m-", j), Name: "v-0"}
		switch m.one(cost.Mounting, 5) {
		case 1:
			mount.Name = fmt.Sprint("v-", i+j)
		case 2:
			mount.Name = fmt.Sprint("v-", i+j%2)
		case 3:
			mount.Name = fmt.Sprint("v-", max(m.n-i-j%2, 0))
		}
		switch m.one(cost.Paths, 5) {
		case 1:
			mount.SubPath = key(0)
		case 2:
			mount.SubPath = key(i + j)
		case 3:
			mount.SubPathExpr = "$(E0)"
		case 4:
			if i == m.n-1 {
				mount.SubPath = "lost"
			}
		}
		c.VolumeMounts = append(c.VolumeMounts, mount)
	}
	return c
}

func (m *maker) volume(i int) corev1.Volume {
	v := corev1.Volume{Name: fmt.Sprint("v-", i)}
	if m.one(cost.Mounting, 5) == 4 {
		v.Name = "v-0"
	}
	files := func() (all []corev1.KeyToPath) {
		for j := range m.many(cost.Items) {
			all = append(all, corev1.KeyToPath{Key: key(j), Path: key(j)})
		}
		return all
	}
	sources := m.many(cost.Projected)
	if sources == 0 {
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: m.name()}, Items: files(), Optional: m.isOptional()}
		return v
	}
	v.Projected = &corev1.ProjectedVolumeSource{}
	for range sources {
		of := &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: m.name()}, Items: files(), Optional: m.isOptional()}
		v.Projected.Sources = append(v.Projected.Sources, corev1.VolumeProjection{ConfigMap: of})
	}
	return v
}

// said are the settings of the workload.
func (m *maker) said() map[string]string {
	said := map[string]string{"configstamp.dev/pin": "true"}
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprint("configmap/s-", i))
	}
	list := strings.Join(names, ",")
	switch m.one(cost.Settings, 6) {
	case 1:
		said["configstamp.dev/restart-on"] = "everything"
	case 2:
		said["configstamp.dev/restart-on"] = "startup"
	case 3:
		said["configstamp.dev/only"] = list
	case 4:
		said["configstamp.dev/also"] = list
	case 5:
		said["configstamp.dev/ignore"] = "configmap/" + strings.Repeat("*-", 40) + "x," + "configmap/" + strings.Repeat("?*", 40)
	}
	switch m.one(cost.Dialect, 4) {
	case 1:
		said["reloader.stakater.com/auto"] = "true"
	case 2:
		said["configmap.reloader.stakater.com/reload"] = "s-(0|1|2|3|4|5)+,(s?-?[0-9]?){20}"
	case 3:
		said["reloader.stakater.com/search"] = "true"
		said["configmaps.exclude.reloader.stakater.com/reload"] = strings.ReplaceAll(list, "configmap/", "")
	}
	return said
}

// saidBySource are the annotations of sources.
func (m *maker) saidBySource() map[string]string {
	switch m.one(cost.Says, 4) {
	case 1:
		return map[string]string{"configstamp.dev/ignore-keys": "k-1*,k-2"}
	case 2:
		return map[string]string{"configstamp.dev/ignore-keys": strings.Repeat("*-", 60) + "x," + strings.Repeat("*?", 60) + "y"}
	case 3:
		return map[string]string{"configstamp.dev/pin": "false"}
	}
	return nil
}
