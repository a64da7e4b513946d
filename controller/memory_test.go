package controller

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// What is kept of a workload, in bytes of heap, when many are known: as the API
// server tells of them, stamped, with labels, managedFields and plain variables
// that are not kept.
func BenchmarkMemoryOfWorkloads(b *testing.B) {
	const workloads = 10_000
	one := func(i int) []checksum.Source { return []checksum.Source{configMap(fmt.Sprintf("other-%05d", i))} }
	three := func(i int) []checksum.Source {
		return append(one(i), configMap("common"), checksum.Source{Kind: checksum.Secret, Name: fmt.Sprintf("db-%d", i/40%10)})
	}
	for name, c := range map[string]struct {
		sources  func(i int) []checksum.Source
		dialects []checksum.Dialect
	}{
		"a source each":                     {one, nil},
		"three sources, two of them shared": {three, nil},
		"a source each, named for Reloader": {one, []checksum.Dialect{checksum.Reloader}},
	} {
		b.Run(name, func(b *testing.B) {
			cluster := newCluster(b)
			for b.Loop() {
				x := newController(Options{Dialects: c.dialects, Policy: cluster.policy, Clock: clock.RealClock{}}, cluster, cluster, cluster, cluster, events.NewFakeRecorder(0), prometheus.NewRegistry())
				before := heap()
				receive(b, x, cluster.kind, workloads, c.sources)
				b.ReportMetric(float64(heap()-before)/workloads, "B/workload")
				runtime.KeepAlive(x)
			}
		})
	}
}

// receive has the controller's watch bring workloads at once.
func receive(b *testing.B, c *Controller, kind *workload.Kind, workloads int, sources func(i int) []checksum.Source) {
	b.Helper()
	read := c.condenser(kind, kind)
	list := make([]any, workloads)
	for i := range list {
		object, err := read(stampedDeployment(i, sources(i)))
		if err != nil {
			b.Fatal(err)
		}
		list[i] = object
	}
	if err := c.fills(kind, "").Replace(list, ""); err != nil {
		b.Fatal(err)
	}
}

func heap() int64 {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

// stampedDeployment is one of many: it reads the first source by envFrom, one
// key of each other, and carries a stamp of each.
func stampedDeployment(i int, sources []checksum.Source) []byte {
	stamps, env, envFrom := map[string]string{}, []any{}, []any{}
	for at, source := range sources {
		stamps[checksum.StampKey(source)] = fmt.Sprintf("v1:0123abcd:all:%032x", i)
		kind := map[checksum.Kind]string{checksum.ConfigMap: "configMap", checksum.Secret: "secret"}[source.Kind]
		if at == 0 {
			envFrom = append(envFrom, map[string]any{kind + "Ref": map[string]any{"name": source.Name}})
			continue
		}
		env = append(env, map[string]any{"name": source.Name, "valueFrom": map[string]any{kind + "KeyRef": map[string]any{"name": source.Name, "key": "password"}}})
	}
	for n := range 10 {
		env = append(env, map[string]any{"name": fmt.Sprint("VARIABLE_", n), "value": strings.Repeat("v", 70)})
	}
	name := fmt.Sprintf("other-%05d", i)
	labels := map[string]any{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop"}
	return encoded(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"namespace": fmt.Sprint("team-", i/400), "name": name, "uid": fmt.Sprintf("4f3c2b1a-0000-4000-8000-%012x", i),
			"resourceVersion": fmt.Sprint(1_000_000 + i), "generation": 2, "labels": labels,
			"annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("{}", 500),
				"configmap.reloader.stakater.com/reload":           sources[0].Name,
			},
			"managedFields": []any{map[string]any{"manager": "kubectl", "fieldsV1": map[string]any{"f:spec": strings.Repeat("f:", 500)}}},
		},
		"spec": map[string]any{"replicas": 1, "selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
			"metadata": map[string]any{"labels": labels, "annotations": stamps},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "example.com/web:1", "env": env, "envFrom": envFrom}}},
		}},
	})
}
