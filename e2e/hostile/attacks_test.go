package hostile

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/e2e/harness"
)

// attack is one thing that the hostile tenant does again and again, beside the others.
type attack struct {
	name  string
	every time.Duration
	do    func(*raid)
}

// attacks are all of them. Together they write less than 3 MiB a second: more is an
// attack on etcd.
func attacks() []attack {
	return []attack{
		{"wide", time.Second, (*raid).wide},
		{"many", 50 * time.Millisecond, (*raid).many},
		{"hot", 100 * time.Millisecond, (*raid).hot},
		{"templates", time.Second, (*raid).template},
		{"settings", 100 * time.Millisecond, (*raid).settings},
		{"churn", 30 * time.Millisecond, (*raid).churn},
		{"orders", 100 * time.Millisecond, (*raid).order},
		{"pins", 500 * time.Millisecond, (*raid).pins},
		{"copies", 200 * time.Millisecond, (*raid).copy},
		{"pods", 200 * time.Millisecond, (*raid).pod},
		{"ports", 20 * time.Millisecond, (*raid).port},
	}
}

// tenant has the ClusterRole edit in one namespace, as a program and as a person: what
// a program writes, no warning is made for.
type tenant struct {
	namespace       string
	program, person dynamic.Interface
	other           *neighbour
	raids           []*raid
	running         sync.WaitGroup
}

// raid is one attack under way.
type raid struct {
	attack
	*tenant
	*rand.Rand
	ctx     context.Context
	answers map[string]int // how often the API server said what
}

const rights = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: mallory}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: mallory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: mallory, namespace: %s}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
`

// invade has the attacks begin; they go on until ctx ends.
func invade(ctx context.Context, t *testing.T, other *neighbour) *tenant {
	t.Helper()
	s := run.Space(t)
	s.Create(fmt.Sprintf(rights, s.Namespace))
	person := rest.CopyConfig(run.Config)
	person.Impersonate.UserName = "mallory"
	h := &tenant{namespace: s.Namespace, other: other}
	var err error
	h.person, err = dynamic.NewForConfig(person)
	harness.Must(t, err)
	h.program, err = dynamic.NewForConfig(run.ConfigOf(t, s.Namespace, "mallory", "mallory"))
	harness.Must(t, err)
	for i, one := range attacks() {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), one.name) {
			continue
		}
		r := &raid{attack: one, tenant: h, Rand: rand.New(rand.NewPCG(*seed, uint64(i))), ctx: ctx, answers: map[string]int{}}
		h.raids = append(h.raids, r)
		h.running.Go(r.run)
	}
	return h
}

func (r *raid) run() {
	turns := time.NewTicker(r.every)
	defer turns.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-turns.C:
			r.do(r)
		}
	}
}

// wait waits until all have ended.
func (h *tenant) wait() { h.running.Wait() }

const accepted = "accepted"

// idle are attacks of which nothing was accepted.
func (h *tenant) idle() (names []string) {
	for _, r := range h.raids {
		if r.answers[accepted] == 0 {
			names = append(names, r.name)
		}
	}
	return names
}

// table is what was asked, and answered.
func (h *tenant) table() string {
	var text strings.Builder
	for _, r := range h.raids {
		fmt.Fprintf(&text, "\n%s:", r.name)
		for _, answer := range slices.Sorted(maps.Keys(r.answers)) {
			fmt.Fprintf(&text, " %d %s", r.answers[answer], answer)
		}
	}
	return text.String()
}

// heard notes what the API server answered.
func (r *raid) heard(err error) {
	switch reason := apierrors.ReasonForError(err); {
	case r.ctx.Err() != nil:
	case err == nil:
		r.answers[accepted]++
	case reason == metav1.StatusReasonUnknown:
		r.answers["without an answer"]++
	default:
		r.answers[string(reason)]++
	}
}

// resources are the kinds that the tenant writes.
func resources() map[string]schema.GroupVersionResource {
	apps := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: name}
	}
	core := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: name}
	}
	batch := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: name}
	}
	return map[string]schema.GroupVersionResource{
		"ConfigMap": core("configmaps"), "Secret": core("secrets"), "Pod": core("pods"),
		"Deployment": apps("deployments"), "StatefulSet": apps("statefulsets"), "DaemonSet": apps("daemonsets"),
		"CronJob": batch("cronjobs"), "Job": batch("jobs"),
	}
}

// to is where objects of a kind are written: sources by the person, all else by the program.
func (r *raid) to(kind string) dynamic.ResourceInterface {
	client := r.program
	if kind == "ConfigMap" || kind == "Secret" {
		client = r.person
	}
	return client.Resource(resources()[kind]).Namespace(r.namespace)
}

// fields are the content of a JSON object.
type fields = map[string]any

// put creates an object, or overwrites the one that is there.
func (r *raid) put(kind, name string, more fields) {
	object := &unstructured.Unstructured{Object: maps.Clone(more)}
	object.SetGroupVersionKind(resources()[kind].GroupVersion().WithKind(kind))
	metadata, _ := more["metadata"].(fields)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = fields{}
	}
	metadata["name"] = name
	object.Object["metadata"] = metadata
	_, err := r.to(kind).Create(r.ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = r.to(kind).Update(r.ctx, object, metav1.UpdateOptions{})
	}
	r.heard(err)
}

// remove deletes an object, if it is there.
func (r *raid) remove(kind, name string) {
	policy := metav1.DeletePropagationBackground
	r.heard(r.to(kind).Delete(r.ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy}))
}

// one is the name of one of so many objects.
func (r *raid) one(of string, count int) string { return fmt.Sprintf("%s-%d", of, r.IntN(count)) }

// pick is one of some.
func pick[T any](r *raid, of ...T) T { return of[r.IntN(len(of))] }
