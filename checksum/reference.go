package checksum

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Use says how a pod uses what it references, and so whether a running
// container ever sees a new content.
type Use string

// The uses.
const (
	// Startup is read once, when a container starts.
	Startup Use = "startup"
	// Live is a mount whose files the kubelet refreshes.
	Live Use = "live"
	// Node is read by the node, not by a container.
	Node Use = "node"
	// Unused is a volume that no container mounts; the kubelet skips it.
	Unused Use = "unused"
)

// Reference is one place in a pod template that names a source.
type Reference struct {
	Source Source
	Use    Use
	// All selects every key; else Keys are selected.
	All bool
	// Optional tells that containers start without the source and its keys.
	Optional bool
	// Env tells that the reader is an environment variable (env, envFrom).
	Env  bool
	Keys []string
	// RequiredKeys must exist unless the reference is optional.
	RequiredKeys []string
	// Where is the place; nil of what Joined has put together.
	Where *Place
	// byPolicy tells that no template names it: the policy adds it (also).
	byPolicy bool
}

// Place is where in a pod template a reference stands. Fields that do not apply
// are empty.
type Place struct {
	// Container is the name of the one that reads the source.
	Container string
	// Env is an environment variable's name. A container that neither it nor a
	// mount goes with has the source in envFrom.
	Env string
	// Volume is a volume's name; Mount is where the container mounts it.
	Volume, Mount string
}

// String writes a place for people: container web, env MESSAGE.
func (p Place) String() string {
	var parts []string
	if p.Volume != "" {
		parts = append(parts, "volume "+p.Volume)
	}
	if p.Container != "" {
		parts = append(parts, "container "+p.Container)
	}
	switch {
	case p.Env != "":
		parts = append(parts, "env "+p.Env)
	case p.Mount != "":
		parts = append(parts, "mount "+p.Mount)
	case p.Container != "":
		parts = append(parts, "envFrom")
	}
	if len(parts) == 0 {
		return "imagePullSecrets"
	}
	return strings.Join(parts, ", ")
}

// usualReferences is how many there is room for at once.
const usualReferences = 16

// References lists every place in a pod spec that names a source, in the order
// in which they stand there (core/v1 PodSpec). Empty names, which the API server
// accepts in some places, name nothing.
func References(spec *corev1.PodSpec) []Reference {
	f := finder{found: make([]Reference, 0, usualReferences), mounts: map[string][]*mount{}}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		f.container(c.Name, c.Env, c.EnvFrom, c.VolumeMounts, sidecar)
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		f.container(c.Name, c.Env, c.EnvFrom, c.VolumeMounts, true)
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i]
		f.container(c.Name, c.Env, c.EnvFrom, c.VolumeMounts, true)
	}
	for i := range spec.Volumes {
		f.volume(&spec.Volumes[i])
	}
	for _, ref := range spec.ImagePullSecrets {
		f.node(ref.Name, Place{})
	}
	return f.found
}

type mount struct {
	use     Use
	subPath string // cleaned; "" selects the whole volume
	where   Place
}

type finder struct {
	found  []Reference
	mounts map[string][]*mount // by name of volume
}

func (f *finder) add(r Reference) {
	if r.Source.Name != "" {
		f.found = append(f.found, r)
	}
}

func (f *finder) container(name string, env []corev1.EnvVar, envFrom []corev1.EnvFromSource, mounts []corev1.VolumeMount, keepsRunning bool) {
	for i := range env {
		from := env[i].ValueFrom
		if from == nil {
			continue
		}
		if ref := from.ConfigMapKeyRef; ref != nil {
			f.key(Source{ConfigMap, ref.Name}, ref.Key, ref.Optional, Place{Container: name, Env: env[i].Name})
		}
		if ref := from.SecretKeyRef; ref != nil {
			f.key(Source{Secret, ref.Name}, ref.Key, ref.Optional, Place{Container: name, Env: env[i].Name})
		}
	}
	for i := range envFrom {
		if ref := envFrom[i].ConfigMapRef; ref != nil {
			f.add(Reference{Source: Source{ConfigMap, ref.Name}, Use: Startup, All: true, Optional: isTrue(ref.Optional), Env: true, Where: &Place{Container: name}})
		}
		if ref := envFrom[i].SecretRef; ref != nil {
			f.add(Reference{Source: Source{Secret, ref.Name}, Use: Startup, All: true, Optional: isTrue(ref.Optional), Env: true, Where: &Place{Container: name}})
		}
	}
	for i := range mounts {
		m := &mount{use: Startup, where: Place{Container: name, Volume: mounts[i].Name, Mount: mounts[i].MountPath}}
		switch {
		case mounts[i].SubPathExpr != "": // known to the kubelet alone: every key
		case mounts[i].SubPath != "":
			m.subPath = insideVolume(mounts[i].SubPath)
		case keepsRunning:
			m.use = Live
		}
		f.mounts[mounts[i].Name] = append(f.mounts[mounts[i].Name], m)
	}
}

func (f *finder) key(source Source, key string, optional *bool, where Place) {
	keys := []string{key}
	f.add(Reference{Source: source, Use: Startup, Keys: keys, Optional: isTrue(optional), RequiredKeys: keys, Env: true, Where: &where})
}

func (f *finder) volume(v *corev1.Volume) {
	if s := v.ConfigMap; s != nil {
		f.files(v.Name, Source{ConfigMap, s.Name}, s.Items, s.Optional)
	}
	if s := v.Secret; s != nil {
		f.files(v.Name, Source{Secret, s.SecretName}, s.Items, s.Optional)
	}
	if v.Projected != nil {
		for i := range v.Projected.Sources {
			if s := v.Projected.Sources[i].ConfigMap; s != nil {
				f.files(v.Name, Source{ConfigMap, s.Name}, s.Items, s.Optional)
			}
			if s := v.Projected.Sources[i].Secret; s != nil {
				f.files(v.Name, Source{Secret, s.Name}, s.Items, s.Optional)
			}
		}
	}
	f.provided(v.Name, v.CSI)
	f.nodeVolume(v)
}

// files adds a reference for each mount of a volume: the volume says which
// keys there are and must be, the mount says which of them are seen.
func (f *finder) files(volume string, source Source, items []corev1.KeyToPath, optional *bool) {
	r := Reference{Source: source, Optional: isTrue(optional), All: len(items) == 0}
	for _, item := range items {
		r.RequiredKeys = append(r.RequiredKeys, item.Key)
	}
	for _, m := range f.mountsOf(volume) {
		r := r
		r.Use, r.Where = m.use, &m.where
		switch {
		case m.subPath == "":
			r.Keys = r.RequiredKeys
		case len(items) == 0: // a file's name is its key
			first, _, _ := strings.Cut(m.subPath, "/")
			r.All, r.Keys = false, []string{first}
		default:
			for _, item := range items {
				file := path.Clean(item.Path)
				if file == m.subPath || strings.HasPrefix(file, m.subPath+"/") {
					r.Keys = append(r.Keys, item.Key)
				}
			}
		}
		f.add(r)
	}
}

// mountsOf lists where a volume is mounted; one that is mounted nowhere is unused.
func (f *finder) mountsOf(volume string) []*mount {
	if mounts := f.mounts[volume]; len(mounts) > 0 {
		return mounts
	}
	return []*mount{{use: Unused, where: Place{Volume: volume}}}
}

// The inline volume of a SecretProviderClass.
const (
	providerDriver    = "secrets-store.csi.k8s.io"
	providerAttribute = "secretProviderClass"
)

// provided adds a reference for each mount of a volume of a SecretProviderClass.
// Its files do not bear the names of its objects, so a mount sees them all.
func (f *finder) provided(volume string, csi *corev1.CSIVolumeSource) {
	if csi == nil || csi.Driver != providerDriver {
		return
	}
	source := Source{SecretProviderClass, csi.VolumeAttributes[providerAttribute]}
	for _, m := range f.mountsOf(volume) {
		f.add(Reference{Source: source, Use: m.use, All: true, Optional: true, Where: &m.where})
	}
}

// nodeVolume adds the Secrets that the node itself reads, the same ones that
// the node authorizer lets a kubelet read.
func (f *finder) nodeVolume(v *corev1.Volume) {
	where := Place{Volume: v.Name}
	local := func(ref *corev1.LocalObjectReference) {
		if ref != nil {
			f.node(ref.Name, where)
		}
	}
	switch {
	case v.AzureFile != nil:
		f.node(v.AzureFile.SecretName, where)
	case v.CephFS != nil:
		local(v.CephFS.SecretRef)
	case v.Cinder != nil:
		local(v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		local(v.FlexVolume.SecretRef)
	case v.RBD != nil:
		local(v.RBD.SecretRef)
	case v.ScaleIO != nil:
		local(v.ScaleIO.SecretRef)
	case v.ISCSI != nil:
		local(v.ISCSI.SecretRef)
	case v.StorageOS != nil:
		local(v.StorageOS.SecretRef)
	case v.CSI != nil:
		local(v.CSI.NodePublishSecretRef)
	}
}

func (f *finder) node(name string, where Place) {
	f.add(Reference{Source: Source{Secret, name}, Use: Node, All: true, Optional: true, Where: &where})
}

// insideVolume cleans a subPath to the form of an item's path. The kubelet
// writes files behind the link ..data, which a subPath may name.
func insideVolume(subPath string) string {
	cleaned := path.Clean(subPath)
	if cleaned == "..data" || cleaned == "." {
		return ""
	}
	return strings.TrimPrefix(cleaned, "..data/")
}

func isTrue(b *bool) bool { return b != nil && *b }

// Joined puts references together that differ in their place alone: what is
// kept of a workload to make its selections of, under whatever policy.
func Joined(references []Reference) []Reference {
	var joined []Reference
	for i := range references {
		r := &references[i]
		if r.Use == Unused || !r.Source.Nameable() || isHelmRelease(r.Source) {
			continue // it selects nothing, under any policy
		}
		at := slices.IndexFunc(joined, func(j Reference) bool {
			return j.Source == r.Source && j.Use == r.Use && j.Optional == r.Optional && j.Env == r.Env
		})
		if at < 0 {
			at = len(joined)
			joined = append(joined, Reference{Source: r.Source, Use: r.Use, Optional: r.Optional, Env: r.Env})
		}
		j := &joined[at]
		j.All = j.All || r.All
		j.Keys = append(j.Keys, r.Keys...)
		j.RequiredKeys = append(j.RequiredKeys, r.RequiredKeys...)
	}
	for i := range joined {
		j := &joined[i]
		j.Keys = slices.Clone(sortedUnique(j.Keys))
		if j.RequiredKeys = sortedUnique(j.RequiredKeys); slices.Equal(j.Keys, j.RequiredKeys) {
			j.RequiredKeys = j.Keys
		}
	}
	return slices.Clone(joined) // what append left room for would be kept as well
}
