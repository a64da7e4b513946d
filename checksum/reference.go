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

// Reference is one place in a pod template that names a source; where that is a
// volume, it is all mounts of it for one use.
type Reference struct {
	Source Source
	Use    Use
	// All selects every key; else Keys are selected.
	All bool
	// Optional reports that containers start without the source and its keys.
	Optional bool
	// Env reports that an environment variable reads it (env, envFrom).
	Env  bool
	Keys []string
	// RequiredKeys must exist unless the reference is optional.
	RequiredKeys []string
	// Where is the place, by the first mount; nil of what Joined has put together.
	Where *Place
	// byPolicy reports that the policy adds it (also), and the template does not name it.
	byPolicy bool
}

// Place is where in a pod template a reference stands. Fields that do not apply
// are empty.
type Place struct {
	// Container is the name of the one that reads the source; Knative's may have none.
	Container string
	// PullSecret reports that it is one of imagePullSecrets.
	PullSecret bool
	// Env is an environment variable's name. What is neither that, nor a volume, nor a
	// PullSecret, is in envFrom.
	Env string
	// Volume is a volume's name; Mount is where the container mounts it.
	Volume, Mount string
}

// String returns a place as users read it: container web, env MESSAGE.
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
	case p.PullSecret:
		parts = append(parts, "imagePullSecrets")
	case p.Volume == "":
		parts = append(parts, "envFrom")
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
		f.node(ref.Name, Place{PullSecret: true})
	}
	return f.found
}

// mount is all mounts of a volume for one use. Were each mount a reference, a
// template of M mounts of M keys would make M×M of what it says.
type mount struct {
	use   Use
	where Place // the first of them
	// whole tells that one of them shows the whole volume. Else paths are what they
	// show of it, each with a slash behind it; names are how those begin, once
	// somebody has asked.
	whole, settled bool
	paths, names   []string
}

type finder struct {
	found  []Reference
	mounts map[string][]*mount // by name of volume, one for each use
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
	where := &Place{Container: name}
	for i := range envFrom {
		if ref := envFrom[i].ConfigMapRef; ref != nil {
			f.add(Reference{Source: Source{ConfigMap, ref.Name}, Use: Startup, All: true, Optional: isTrue(ref.Optional), Env: true, Where: where})
		}
		if ref := envFrom[i].SecretRef; ref != nil {
			f.add(Reference{Source: Source{Secret, ref.Name}, Use: Startup, All: true, Optional: isTrue(ref.Optional), Env: true, Where: where})
		}
	}
	for i := range mounts {
		use, subPath := Startup, ""
		switch {
		case mounts[i].SubPathExpr != "": // known to the kubelet alone: every key
		case mounts[i].SubPath != "":
			subPath = insideVolume(mounts[i].SubPath)
		case keepsRunning:
			use = Live
		}
		f.mount(use, subPath, Place{Container: name, Volume: mounts[i].Name, Mount: mounts[i].MountPath})
	}
}

// mount notes a mount of a volume; an empty subPath shows the whole of it.
func (f *finder) mount(use Use, subPath string, where Place) {
	mounts := f.mounts[where.Volume]
	at := slices.IndexFunc(mounts, func(m *mount) bool { return m.use == use })
	if at < 0 {
		at = len(mounts)
		f.mounts[where.Volume] = append(mounts, &mount{use: use, where: where})
	}
	m := f.mounts[where.Volume][at]
	if m.whole = m.whole || subPath == ""; !m.whole {
		m.paths = append(m.paths, subPath+"/")
	}
}

func (f *finder) key(source Source, key string, optional *bool, where Place) {
	keys := []string{key}
	f.add(Reference{Source: source, Use: Startup, Keys: keys, Optional: isTrue(optional), RequiredKeys: keys, Env: true, Where: &where})
}

func (f *finder) volume(v *corev1.Volume) {
	mounts := f.mountsOf(v.Name)
	if s := v.ConfigMap; s != nil {
		f.files(mounts, Source{ConfigMap, s.Name}, s.Items, s.Optional)
	}
	if s := v.Secret; s != nil {
		f.files(mounts, Source{Secret, s.SecretName}, s.Items, s.Optional)
	}
	if v.Projected != nil {
		for i := range v.Projected.Sources {
			if s := v.Projected.Sources[i].ConfigMap; s != nil {
				f.files(mounts, Source{ConfigMap, s.Name}, s.Items, s.Optional)
			}
			if s := v.Projected.Sources[i].Secret; s != nil {
				f.files(mounts, Source{Secret, s.Name}, s.Items, s.Optional)
			}
		}
	}
	f.provided(mounts, v.CSI)
	f.nodeVolume(v)
}

// mountsOf gives the mounts of a volume; one that is mounted nowhere is unused.
func (f *finder) mountsOf(volume string) []*mount {
	mounts := f.mounts[volume]
	if len(mounts) == 0 {
		return []*mount{{use: Unused, whole: true, where: Place{Volume: volume}}}
	}
	for _, m := range mounts {
		m.settle()
	}
	return mounts
}

// settle brings paths in order once all are known: sorted, and none in another.
func (m *mount) settle() {
	if m.settled {
		return
	}
	m.settled = true
	slices.Sort(m.paths)
	outermost := m.paths[:0]
	for _, p := range m.paths {
		if n := len(outermost); n == 0 || !strings.HasPrefix(p, outermost[n-1]) {
			outermost = append(outermost, p)
		}
	}
	m.paths = outermost
}

// keys are those that are seen where a file's name is its key. They are one list
// for all sources of the volume.
func (m *mount) keys() []string {
	if m.names == nil {
		m.names = make([]string, 0, len(m.paths))
		for _, p := range m.paths {
			first, _, _ := strings.Cut(p, "/")
			m.names = append(m.names, first)
		}
		m.names = slices.Compact(m.names)
	}
	return m.names
}

// shows reports whether a file of the volume is seen. The path that it lies in is
// the last that does not come after it.
func (m *mount) shows(file string) bool {
	file = path.Clean(file) + "/"
	at, is := slices.BinarySearch(m.paths, file)
	return is || at > 0 && strings.HasPrefix(file, m.paths[at-1])
}

// files adds a reference for each use of a volume: the volume says which keys
// there are and must be, its mounts say which of them are seen.
func (f *finder) files(mounts []*mount, source Source, items []corev1.KeyToPath, optional *bool) {
	r := Reference{Source: source, Optional: isTrue(optional), All: len(items) == 0, RequiredKeys: make([]string, 0, len(items))}
	for _, item := range items {
		r.RequiredKeys = append(r.RequiredKeys, item.Key)
	}
	for _, m := range mounts {
		r := r
		r.Use, r.Where = m.use, &m.where
		switch {
		case m.whole:
			r.Keys = r.RequiredKeys
		case len(items) == 0:
			r.All, r.Keys = false, m.keys()
		default:
			for _, item := range items {
				if m.shows(item.Path) {
					r.Keys = append(r.Keys, item.Key)
				}
			}
		}
		f.add(r)
	}
}

// The inline volume of a SecretProviderClass.
const (
	providerDriver    = "secrets-store.csi.k8s.io"
	providerAttribute = "secretProviderClass"
)

// provided adds a reference for each use of a volume of a SecretProviderClass.
// Its files do not bear the names of its objects, so a mount sees them all.
func (f *finder) provided(mounts []*mount, csi *corev1.CSIVolumeSource) {
	if csi == nil || csi.Driver != providerDriver {
		return
	}
	source := Source{SecretProviderClass, csi.VolumeAttributes[providerAttribute]}
	for _, m := range mounts {
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
