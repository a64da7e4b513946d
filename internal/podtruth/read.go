package podtruth

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
)

// Named is a use that names its container and its source.
type Named struct {
	Container string
	Source    checksum.Source
	How       How
	// Pinned tells that it reads a snapshot of the source.
	Pinned bool
}

// Read lists which containers of a pod use what, sorted by container, as they stand in the pod
// spec, init containers first. Ephemeral containers are not looked at. A Secrets Store's
// classes are left out: what of them a pod has, its own report tells. pinned are the sources
// of the snapshots that the spec names.
func Read(spec *corev1.PodSpec, pinned map[checksum.Source]checksum.Source) []Named {
	var all []Named
	one := corev1.PodSpec{Volumes: spec.Volumes}
	for i := range spec.InitContainers {
		one.InitContainers = spec.InitContainers[i : i+1]
		all = readOne(all, spec.InitContainers[i].Name, &one, pinned)
	}
	one.InitContainers = nil
	for i := range spec.Containers {
		one.Containers = spec.Containers[i : i+1]
		all = readOne(all, spec.Containers[i].Name, &one, pinned)
	}
	return all
}

// readOne adds what the only container of a pod spec uses.
func readOne(all []Named, container string, spec *corev1.PodSpec, pinned map[checksum.Source]checksum.Source) []Named {
	for _, reference := range checksum.References(spec) {
		how := Variable
		switch {
		case reference.Source.Kind == checksum.SecretProviderClass:
			continue
		case reference.Use == checksum.Live:
			how = Live
		case reference.Use != checksum.Startup:
			continue
		case !reference.Env:
			how = File
		}
		source, of := reference.Source, pinned[reference.Source]
		isPinned := of != checksum.Source{}
		if isPinned {
			source = of
		}
		if use := (Named{container, source, how, isPinned}); !slices.Contains(all, use) {
			all = append(all, use)
		}
	}
	return all
}
