package pins

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// each is a workload of each kind, which reads in all ways.
func each() []member {
	return []member{
		{kind: "Deployment", app: "web", ways: ways},
		{kind: "StatefulSet", app: "db", ways: ways},
		{kind: "DaemonSet", app: "agent", ways: ways},
	}
}

// P4: with the webhooks away every pod starts, with what there is; with the controllers away
// every pod starts as its template says. When they are back, so are pins.
func TestEveryPodStartsWhileTheProductIsAway(t *testing.T) {
	product := run.Exclusive(t)
	r := newRoom(t, "old", each()...)
	r.space.SetPolicy("namespace", map[string]string{"pause": "true"})
	time.Sleep(2 * time.Second)
	r.write("new")
	time.Sleep(3 * time.Second)

	stop := func(processes []*harness.Process) {
		for _, process := range processes {
			harness.Must(t, process.Stop())
		}
	}
	stop(product.Controllers)
	r.replace("old", true)
	stop(product.Webhooks)
	r.replace("new", false)
	harness.Must(t, product.Start(t.Context()))
	r.replace("old", true)
	// They accept connections and never answer: the entry's timeout ends that.
	product.Balancer.Hold()
	r.replace("new", false)
	product.Balancer.Release()
	r.replace("old", true)
	// Somebody cleans up.
	r.space.Kubectl("delete", "configmaps", "-l", "configstamp.dev/snapshot=true")
	r.replace("new", false)
}

// replace deletes a pod of each member, and checks what the next ones have read.
func (r *room) replace(word string, pinned bool) {
	r.t.Helper()
	for i := range r.members {
		m := &r.members[i]
		pods, err := r.pods(m)
		harness.Must(r.t, err)
		for at := range pods {
			harness.Must(r.t, r.end(&pods[at], deleted))
		}
		if err := r.wait(func() error {
			next, err := r.running(m, 1)
			if err == nil && slices.ContainsFunc(pods, func(was corev1.Pod) bool { return was.UID == next[0].UID }) {
				err = fmt.Errorf("%s is still there", next[0].Name)
			}
			return err
		}); err != nil {
			r.t.Fatalf("%s: %v\n%s", m.name(), err, r.space.Report())
		}
	}
	for i := range r.members {
		r.want(&r.members[i], word)
		r.wantPinned(&r.members[i], pinned)
	}
}

// P4: where a quota leaves no room for snapshots, or the rights to make them are away, a
// rollout goes on without pins, and every pod starts. The next rollout pins again.
func TestEveryPodStartsWithoutQuotaOrRights(t *testing.T) {
	run.Exclusive(t)
	r := newRoom(t, "one", each()...)
	quotas := run.Client.CoreV1().ResourceQuotas(r.space.Namespace)
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("1")}},
	}, metav1.CreateOptions{})
	harness.Must(t, err)
	r.space.Eventually("waiting for the quota", func() error {
		quota, err := quotas.Get(context.Background(), "full", metav1.GetOptions{})
		if err == nil && len(quota.Status.Used) == 0 {
			err = fmt.Errorf("it counts nothing yet")
		}
		return err
	})
	r.write("two")
	r.wantAll("two")
	r.wantPins(false)
	r.replace("two", false)
	r.space.WantNote("deployment/web", "NotPinned: ")
	harness.Must(t, quotas.Delete(t.Context(), "full", metav1.DeleteOptions{}))

	r.write("three")
	r.wantAll("three")
	r.wantPins(true)

	withoutRight(t, "create", "configmaps", func() {
		r.write("four")
		r.wantAll("four")
		r.wantPins(false)
		r.replace("four", false)
	})
	r.write("five")
	r.wantAll("five")
	r.wantPins(true)
}

// wantPins waits until all templates pin, or checks that none does.
func (r *room) wantPins(pinned bool) {
	r.t.Helper()
	for i := range r.members {
		object := r.space.Get(r.members[i].name())
		text, is := harness.TemplateAnnotations(object)["configstamp.dev/pins"]
		if is != pinned {
			r.t.Errorf("the template of %s has configstamp.dev/pins=%q, want it: %t\n%s", r.members[i].name(), text, pinned, r.space.Report())
		}
	}
}

// withoutRight does something while our cluster roles do not give a right.
func withoutRight(t *testing.T, verb, resource string, do func()) {
	t.Helper()
	roles := run.Client.RbacV1().ClusterRoles()
	list, err := roles.List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=configstamp"})
	harness.Must(t, err)
	taken := 0
	for i := range list.Items {
		was := list.Items[i].DeepCopy()
		is := list.Items[i].DeepCopy()
		for at := range is.Rules {
			rule := &is.Rules[at]
			if slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb) {
				rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == verb })
				taken++
			}
		}
		is.Rules = slices.DeleteFunc(is.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.Verbs) == 0 })
		_, err := roles.Update(t.Context(), is, metav1.UpdateOptions{})
		harness.Must(t, err)
		defer func() {
			now, err := roles.Get(context.Background(), was.Name, metav1.GetOptions{})
			harness.Must(t, err)
			now.Rules = was.Rules
			_, err = roles.Update(context.Background(), now, metav1.UpdateOptions{})
			harness.Must(t, err)
		}()
	}
	if taken == 0 {
		t.Fatalf("no cluster role gives %s on %s", verb, resource)
	}
	time.Sleep(2 * time.Second) // the API server's authorizer has seen it
	do()
}
