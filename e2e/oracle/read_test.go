package oracle

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

func compareRead(t *testing.T, whole *corev1.PodSpec) {
	t.Helper()
	raw, err := json.Marshal(whole)
	if err != nil {
		return // some quantity or time that cannot be written
	}
	read, err := (&workload.Template{Spec: raw}).PodSpec()
	if err != nil {
		t.Fatalf("what the API's own types write is not read: %v\n%s", err, raw)
	}
	compare(t, read)
	if want, got := visited(whole), referenced(read); len(want) != len(got) {
		t.Fatalf("Kubernetes finds %v in the whole, we find %v in what is read of it", want.sorted(), got.sorted())
	}
	// What containers see of it is the same too, line for line.
	all, some := checksum.References(whole), checksum.References(read)
	if len(all) != len(some) {
		t.Fatalf("%d references in the whole, %d in what is read of it", len(all), len(some))
	}
	for i := range all {
		if all[i].Source != some[i].Source || all[i].Use != some[i].Use || *all[i].Where != *some[i].Where {
			t.Fatalf("%+v in the whole is read as %+v", all[i], some[i])
		}
	}
}

// The filler reaches every field, so it holds the narrow reading too.
func TestFilledPodSpecsAreReadWhole(t *testing.T) {
	seed := seeded(t)
	fill := filler(seed)
	for i := range 300 {
		var spec corev1.PodSpec
		fill.Fill(&spec)
		oneSourceEach(&spec, func(n int) int { return i % n })
		compareRead(t, &spec)
	}
}
