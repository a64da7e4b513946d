package oracle

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	visit "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/configstamp/configstamp/checksum"
)

type names map[checksum.Source]bool

func (n names) sorted() []string {
	var sorted []string
	for source := range n {
		sorted = append(sorted, source.String())
	}
	slices.Sort(sorted)
	return sorted
}

// visited is what Kubernetes finds.
func visited(spec *corev1.PodSpec) names {
	found := names{}
	pod := &corev1.Pod{Spec: *spec}
	add := func(kind checksum.Kind) visit.Visitor {
		return func(name string) bool {
			found[checksum.Source{Kind: kind, Name: name}] = true
			return true
		}
	}
	visit.VisitPodSecretNames(pod, add(checksum.Secret))
	visit.VisitPodConfigmapNames(pod, add(checksum.ConfigMap))
	return found
}

// referenced is what the rules find, of any use.
func referenced(spec *corev1.PodSpec) names {
	found := names{}
	for _, r := range checksum.References(spec) {
		found[r.Source] = true
	}
	return found
}

// compare tells whether both found any name.
//
// Both pass over empty names. There is no difference to allow for but one,
// which no API server lets in: a volume of several sources at once, of which
// the visitors take the first that they know; see oneSourceEach.
func compare(t *testing.T, spec *corev1.PodSpec) bool {
	t.Helper()
	want, got := visited(spec), referenced(spec)
	if !maps.Equal(want, got) {
		t.Fatalf("Kubernetes finds %v, we find %v, in\n%+v", want.sorted(), got.sorted(), spec)
	}
	return len(want) > 0
}

// oneSourceEach leaves every volume one of its sources, as validation wants
// it; pick chooses among n.
func oneSourceEach(spec *corev1.PodSpec, pick func(n int) int) {
	for i := range spec.Volumes {
		sources := reflect.ValueOf(&spec.Volumes[i].VolumeSource).Elem()
		var set []int
		for field := range sources.NumField() {
			if !sources.Field(field).IsNil() {
				set = append(set, field)
			}
		}
		if len(set) == 0 {
			continue
		}
		keep := set[pick(len(set))]
		for _, field := range set {
			if field != keep {
				sources.Field(field).SetZero()
			}
		}
	}
}
