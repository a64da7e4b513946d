package rollout_test

import (
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

func builtin(resource string) *workload.Kind {
	kind, _ := workload.Builtin().Find("apps", resource)
	return kind
}

func known(resource string) *workload.Kind {
	for _, kind := range workload.Known() {
		if kind.Resource == resource {
			return kind
		}
	}
	return nil
}

var (
	deploymentKind  = builtin("deployments")
	statefulSetKind = builtin("statefulsets")
	daemonSetKind   = builtin("daemonsets")
	rolloutKind     = known("rollouts")
	knativeKind     = known("services")
	silentKind, _   = workload.ParseKind("example.com/v1/machines=spec.template")
)

func source(name string) checksum.Source {
	return checksum.Source{Kind: checksum.ConfigMap, Name: name}
}

func place(namespace, name string) rollout.SourceRef {
	return rollout.SourceRef{Namespace: namespace, Source: source(name)}
}

func newApp(kind *workload.Kind, namespace, name string, sources ...string) *app {
	a := &app{ref: workload.Ref{Kind: kind, Namespace: namespace, Name: name}, replicas: 3, batch: 1, pace: 4 * time.Second}
	for _, name := range sources {
		a.sources = append(a.sources, source(name))
	}
	return a
}

// deployment has three replicas, and progressDeadlineSeconds as usual.
func deployment(namespace, name string, sources ...string) *app {
	a := newApp(deploymentKind, namespace, name, sources...)
	a.deadline = 10 * time.Minute
	return a
}

// daemonSet has a pod on each of some nodes, a hundredth of them at a time.
func daemonSet(namespace, name string, nodes int, sources ...string) *app {
	a := newApp(daemonSetKind, namespace, name, sources...)
	a.replicas, a.batch = nodes, max(1, nodes/100)
	return a
}

// canary is an Argo Rollout that stands at pause: {} after its first pod.
func canary(namespace, name string, sources ...string) *app {
	a := newApp(rolloutKind, namespace, name, sources...)
	a.deadline, a.canary = 10*time.Minute, true
	return a
}

// knative is a Knative Service, which is Unknown until it is Ready.
func knative(namespace, name string, sources ...string) *app {
	a := newApp(knativeKind, namespace, name, sources...)
	a.replicas, a.deadline = 1, 1000*time.Hour
	return a
}

// silent is of a custom kind whose status says nothing of rollouts; it changes after a
// while, or never.
func silent(namespace, name string, reacts time.Duration, sources ...string) *app {
	a := newApp(silentKind, namespace, name, sources...)
	a.replicas, a.reacts = 1, reacts
	return a
}
