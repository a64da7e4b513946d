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
	keys []string
	// named tells that a file's name is its key: the place is a volume without items.
	named bool
	*audience
}

// audience is who reads a place. The places of one volume have the same.
type audience struct {
	readers []reader
	uses    []checksum.Use // for which they read it
}

func (a *audience) add(r reader) {
	a.readers = append(a.readers, r)
	if !slices.Contains(a.uses, r.use) {
		a.uses = append(a.uses, r.use)
	}
}

// reader is a container that reads a place.
type reader struct {
	container string
	use       checksum.Use
	// file is the first part of a subPath; "" for none.
	file string
}

// served reports whether a place is read for one of some uses.
func (p *place) served(uses []checksum.Use) bool {
	return slices.ContainsFunc(p.uses, func(use checksum.Use) bool { return slices.Contains(uses, use) })
}

// lacks is the first key that a place names and a snapshot lacks; "" for none. An optional
// variable may lack its key: it is unset, as when the snapshot was made. An optional volume may
// not, because a pinned volume is made required.
func (p *place) lacks(content *checksum.Content) string {
	for _, key := range p.keys {
		if entry, ok := content.Entry(key); p.volume == "" && !isTrue(p.optional) && (!ok || entry.Binary) || p.volume != "" && !ok {
			return key
		}
	}
	return ""
}

// lacksFor is the key that a reader names by the subPath of its mount and a snapshot lacks; ""
// for none.
func (p *place) lacksFor(r *reader, content *checksum.Content) string {
	if _, ok := content.Entry(r.file); p.named && r.file != "" && !ok {
		return r.file
	}
	return ""
}

// placesIn lists the places of a Pod that name a ConfigMap, in the order of the spec.
func placesIn(spec *corev1.PodSpec) []place {
	var found []place
	mounts := map[string]*audience{}
	mounted := func(volume string) *audience {
		if mounts[volume] == nil {
			mounts[volume] = &audience{}
		}
		return mounts[volume]
	}
	each := func(list string, containers []corev1.Container, init bool) {
		for i := range containers {
			c := &containers[i]
			at := "/spec/" + list + "/" + strconv.Itoa(i)
			found = append(found, variables(c, at)...)
			keepsRunning := !init || c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
			for _, mount := range c.VolumeMounts {
				mounted(mount.Name).add(readerOf(c.Name, &mount, keepsRunning))
			}
		}
	}
	each("initContainers", spec.InitContainers, true)
	each("containers", spec.Containers, false)
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		at := "/spec/volumes/" + strconv.Itoa(i)
		if s := v.ConfigMap; s != nil {
			found = append(found, files(at+"/configMap", v.Name, s.Name, s.Optional, s.Items, mounted(v.Name)))
		}
		if v.Projected == nil {
			continue
		}
		for j := range v.Projected.Sources {
			if s := v.Projected.Sources[j].ConfigMap; s != nil {
				found = append(found, files(at+"/projected/sources/"+strconv.Itoa(j)+"/configMap", v.Name, s.Name, s.Optional, s.Items, mounted(v.Name)))
			}
		}
	}
	return found
}

// variables are the places of a container's env and envFrom.
func variables(c *corev1.Container, at string) []place {
	var found []place
	alone := &audience{}
	alone.add(reader{container: c.Name, use: checksum.Startup})
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
			ref := from.ConfigMapKeyRef
			found = append(found, place{
				path: at + "/env/" + strconv.Itoa(i) + "/valueFrom/configMapKeyRef", name: ref.Name, optional: ref.Optional,
				keys: []string{ref.Key}, audience: alone,
			})
		}
	}
	for i := range c.EnvFrom {
		if ref := c.EnvFrom[i].ConfigMapRef; ref != nil {
			found = append(found, place{path: at + "/envFrom/" + strconv.Itoa(i) + "/configMapRef", name: ref.Name, optional: ref.Optional, audience: alone})
		}
	}
	return found
}

// files is the place of a volume, or of one source of a projected volume.
func files(at, volume, name string, optional *bool, items []corev1.KeyToPath, readers *audience) place {
	p := place{path: at, name: name, optional: optional, volume: volume, named: len(items) == 0, audience: readers}
	for _, item := range items {
		p.keys = append(p.keys, item.Key)
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
