package gates

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/harness"
)

// shape is a kind of workload, and what of its spec decides how it rolls.
type shape struct{ kind, spec string }

var shapes = []shape{
	{"Deployment", "replicas: 2, minReadySeconds: 1"},
	{"Deployment", "replicas: 1"},
	{"Deployment", "replicas: 0"},
	{"Deployment", "replicas: 2, paused: true"},
	{"Deployment", "replicas: 1, minReadySeconds: 1, strategy: {type: Recreate}"},
	{"Deployment", "replicas: 3, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}"},
	{"StatefulSet", "serviceName: none, replicas: 2, minReadySeconds: 1"},
	{"StatefulSet", "serviceName: none, replicas: 1, updateStrategy: {type: OnDelete}"},
	{"DaemonSet", "minReadySeconds: 1"},
	{"DaemonSet", "updateStrategy: {type: OnDelete}"},
	{"CronJob", "suspend: true"},
}

// gate is what holds a workload, by a setting of its own.
type gate struct{ setting, value string }

const (
	interval = 5 * time.Second

	pause   = "pause"
	mode    = "mode"
	order   = "order"
	observe = "observe"
)

// gates are those of workloads, in turn. opens is when a window opens.
func gates(opens time.Time) []gate {
	window := opens.UTC().Format("15:04") + "-" + opens.UTC().Add(20*time.Minute).Format("15:04") + " UTC"
	return []gate{{}, {}, {pause, "true"}, {"window", window}, {"min-interval", interval.String()}, {mode, observe}, {order, "%d"}}
}

// reads are the sources of workloads, in turn.
var reads = [][]string{{"configmap/a"}, {"configmap/a", "configmap/b"}, {"secret/s"}}

// sources are all of a namespace.
var sources = []string{"configmap/a", "configmap/b", "secret/s"}

// one is a workload of the fleet.
type one struct {
	shape
	gate
	name  string
	reads []string
}

// object is how kubectl names it.
func (w one) object() string { return strings.ToLower(w.kind) + "/" + w.name }

// workloads makes so many, of every shape with every gate and every use of
// sources; first tells those of several namespaces apart.
func workloads(count, first int, opens time.Time) []one {
	all := make([]one, count)
	for i := range all {
		n := first + i
		all[i] = one{name: fmt.Sprintf("w-%03d", n), shape: shapes[n%len(shapes)], gate: gates(opens)[n%7], reads: reads[n%len(reads)]}
		if all[i].setting == order {
			all[i].value = fmt.Sprint(count - n) // not in the order of names
		}
	}
	return all
}

func (w one) manifest(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	annotations, from := "", ""
	if w.setting != "" {
		annotations = fmt.Sprintf("configstamp.dev/%s: %q", w.setting, w.value)
	}
	for _, source := range w.reads {
		kind, name, _ := strings.Cut(source, "/")
		ref := map[string]string{"configmap": "configMapRef", "secret": "secretRef"}[kind]
		from += fmt.Sprintf("{%s: {name: %s}}, ", ref, name)
	}
	pod := fmt.Sprintf("{metadata: {labels: {app: %s}}, spec: {terminationGracePeriodSeconds: 0, %%scontainers: [{name: app, image: example.com/app, envFrom: [%s]}]}}", w.name, from)
	spec := fmt.Sprintf("{%s, selector: {matchLabels: {app: %s}}, template: %s}", w.spec, w.name, fmt.Sprintf(pod, ""))
	version := "apps/v1"
	if w.kind == "CronJob" {
		version = "batch/v1"
		spec = fmt.Sprintf("{%s, schedule: '0 0 1 1 *', jobTemplate: {spec: {template: %s}}}", w.spec, fmt.Sprintf(pod, "restartPolicy: Never, "))
	}
	text, err := yaml.YAMLToJSON([]byte(fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, annotations: {%s}}, spec: %s}", version, w.kind, w.name, annotations, spec)))
	harness.Must(t, err)
	object := &unstructured.Unstructured{}
	harness.Must(t, object.UnmarshalJSON(text))
	return object
}
