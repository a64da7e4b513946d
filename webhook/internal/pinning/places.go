package pinning

import (
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
)

// place is one field of a Pod that names a ConfigMap, and who reads it.
type place struct {
	// path is where the name and its optional stand, as a JSON pointer (RFC 6901).
	path string
	name string
	// optional is as the API has it: containers start without it; nil is false.
	optional *bool
	// volume is the name of the volume; "" for environment variables.
	volume string
	// keys are those that the place names itself; none if it shows all.
	keys    []string
	readers []reader
}

// reader is a container that reads a place.
type reader struct {
	container string
	use       checksum.Use
	// file is the key that a subPath names in a volume without items; "" for none.
	file string
}

// served reports whether a place is read for one of some uses.
func (p *place) served(uses []checksum.Use) bool {
	return slices.ContainsFunc(p.readers, func(r reader) bool { return slices.Contains(uses, r.use) })
}

// lacks is the first key that a place names for a container and a snapshot lacks; "" for
// none. An optional variable may lack its key: it is unset, as when the snapshot was made.
// An optional volume may not, because a pinned volume is made required.
func (p *place) lacks(content *checksum.Content, container string) string {
	for _, key := range p.keys {
		if entry, ok := content.Entry(key); p.volume == "" && !isTrue(p.optional) && (!ok || entry.Binary) || p.volume != "" && !ok {
			return key
		}
	}
	for _, reader := range p.readers {
		if reader.container == container && reader.file != "" {
			if _, ok := content.Entry(reader.file); !ok {
				return reader.file
			}
		}
	}
	return ""
}

// placesIn lists the places of a Pod that name a ConfigMap, in the order of the spec.
func placesIn(spec *corev1.PodSpec) []place {
	var found []place
	mounts := map[string][]reader{}
	each := func(list string, containers []corev1.Container, init bool) {
		for i := range containers {
			c := &containers[i]
			at := "/spec/" + list + "/" + strconv.Itoa(i)
			found = append(found, variables(c, at)...)
			keepsRunning := !init || c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
			for _, mount := range c.VolumeMounts {
				mounts[mount.Name] = append(mounts[mount.Name], readerOf(c.Name, &mount, keepsRunning))
			}
		}
	}
	each("initContainers", spec.InitContainers, true)
	each("containers", spec.Containers, false)
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		at := "/spec/volumes/" + strconv.Itoa(i)
		if s := v.ConfigMap; s != nil {
			found = append(found, files(at+"/configMap", v.Name, s.Name, s.Optional, s.Items, mounts[v.Name]))
		}
		if v.Projected == nil {
			continue
		}
		for j := range v.Projected.Sources {
			if s := v.Projected.Sources[j].ConfigMap; s != nil {
				found = append(found, files(at+"/projected/sources/"+strconv.Itoa(j)+"/configMap", v.Name, s.Name, s.Optional, s.Items, mounts[v.Name]))
			}
		}
	}
	return found
}

// variables are the places of a container's env and envFrom.
func variables(c *corev1.Container, at string) []place {
	var found []place
	readers := []reader{{container: c.Name, use: checksum.Startup}}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
			ref := from.ConfigMapKeyRef
			found = append(found, place{
				path: at + "/env/" + strconv.Itoa(i) + "/valueFrom/configMapKeyRef", name: ref.Name, optional: ref.Optional,
				keys: []string{ref.Key}, readers: readers,
			})
		}
	}
	for i := range c.EnvFrom {
		if ref := c.EnvFrom[i].ConfigMapRef; ref != nil {
			found = append(found, place{path: at + "/envFrom/" + strconv.Itoa(i) + "/configMapRef", name: ref.Name, optional: ref.Optional, readers: readers})
		}
	}
	return found
}

// files is the place of a volume, or of one source of a projected volume.
func files(at, volume, name string, optional *bool, items []corev1.KeyToPath, readers []reader) place {
	p := place{path: at, name: name, optional: optional, volume: volume, readers: readers}
	for _, item := range items {
		p.keys = append(p.keys, item.Key)
	}
	if len(items) > 0 { // a file's name is not its key
		p.readers = slices.Clone(readers)
		for i := range p.readers {
			p.readers[i].file = ""
		}
	}
	return p
}

// readerOf is a container as the reader of one mount.
func readerOf(container string, mount *corev1.VolumeMount, keepsRunning bool) reader {
	r := reader{container: container, use: checksum.Startup}
	switch {
	case mount.SubPathExpr != "":
	case mount.SubPath != "":
		// The kubelet writes files behind the link ..data, which a subPath may name.
		inside := strings.TrimPrefix(path.Clean(mount.SubPath)+"/", "..data/")
		if r.file, _, _ = strings.Cut(inside, "/"); r.file == "." {
			r.file = ""
		}
	case keepsRunning:
		r.use = checksum.Live
	}
	return r
}

func isTrue(b *bool) bool { return b != nil && *b }
