package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Who is served and who is not.

var restamped = []string{"Deployment", "StatefulSet", "DaemonSet", "CronJob"}

var createdOnly = []string{"Job", "ReplicaSet", "ReplicationController", "Pod"}

// labelled adds a label to the object itself, not to its pods.
func labelled(manifest, value string) string {
	return strings.Replace(manifest, "labels: {app:", "labels: {configstamp.dev/inject: "+value+", app:", 1)
}

func TestOptIn_KindsThatAreStampedAtCreation(t *testing.T) {
	t.Parallel()
	for _, kind := range createdOnly {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := run.Space(t)
			s.Set("configmap/c", "k", "1")
			s.Set("secret/s", "k", "1")
			s.WaitServiceAccount()
			object := s.Create(workload(kind, "w", envFrom("configmap/c", "secret/s", "configmap/later?")))[0]
			stamps := harness.Stamps(object)
			for _, source := range []string{"configmap/c", "secret/s", "configmap/later"} {
				if got, want := stamps[harness.StampKey(source)], s.Digest(source); got != want {
					t.Errorf("stamp of %s is %q, want %q", source, got, want)
				}
			}
			// Never again: neither by a change of content nor by an update.
			version := s.Get(strings.ToLower(kind) + "/w").GetGeneration()
			s.Set("configmap/c", "k", "2")
			s.Patch(strings.ToLower(kind)+"/w", `{"metadata":{"labels":{"x":"y"}}}`)
			s.Quiet()
			now := s.Get(strings.ToLower(kind) + "/w")
			if got := harness.Stamps(now); got[harness.StampKey("configmap/c")] != stamps[harness.StampKey("configmap/c")] {
				t.Errorf("stamps went from %v to %v", stamps, got)
			}
			if len(harness.Baseline(now)) > 0 || now.GetGeneration() > version+1 {
				t.Errorf("it was written to: %s", state(now))
			}
		})
	}
}

// The API server refuses an update of a Job that drops a stamp: "field is immutable". So the webhook puts it back,
// also while the content is another one.
func TestOptIn_AnUnchangedJobCanBePutAgain(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running %t", running), func(t *testing.T) {
			t.Parallel()
			s := run.Space(t)
			s.Set("configmap/c", "k", "1")
			s.WaitServiceAccount()
			manifest := strings.Replace(workload("Job", "w", envFrom("configmap/c")), "suspend: true", fmt.Sprintf(
				"suspend: %t\n  manualSelector: true\n  selector: {matchLabels: {app: w}}", !running), 1)
			before := harness.Stamps(s.Create(manifest)[0])
			s.Set("configmap/c", "k", "2")
			put := s.Put(strings.Replace(manifest, "labels: {app:", "labels: {team: a, app:", 1))
			if stamps := harness.Stamps(put); len(before) != 1 || !maps.Equal(stamps, before) {
				t.Errorf("stamps went from %v to %v", before, stamps)
			}
			if put.GetLabels()["team"] != "a" {
				t.Errorf("labels: %v", put.GetLabels())
			}
		})
	}
}

func TestOptIn_ObjectsThatAControllerOwnsAreLeftAlone(t *testing.T) {
	t.Parallel()
	for _, kind := range createdOnly {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := run.Space(t)
			s.Set("configmap/c", "k", "1")
			s.WaitServiceAccount()
			owner := s.Create("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owner}\n")[0]
			manifest := strings.Replace(workload(kind, "w", envFrom("configmap/c")), "metadata: {name: w,", fmt.Sprintf(
				"metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: %q, controller: true}], name: w,", owner.GetUID()), 1)
			if stamps := harness.Stamps(s.Create(manifest)[0]); len(stamps) > 0 {
				t.Errorf("an owned %s is stamped: %v", kind, stamps)
			}
			// An owner that is no controller does not roll it.
			manifest = strings.Replace(strings.Replace(manifest, "controller: true", "controller: false", 1), "name: w,", "name: v,", 1)
			if stamps := harness.Stamps(s.Create(manifest)[0]); len(stamps) != 1 {
				t.Errorf("a %s that belongs to an object, but to no controller, is not stamped", kind)
			}
		})
	}
}

func TestOptIn_WhatADeploymentMakesCarriesItsStampsAndNoMore(t *testing.T) {
	t.Parallel()
	s, _ := one(t, "k", "1")
	s.Eventually("waiting for the Pod", func() error {
		list, err := run.Client.CoreV1().Pods(s.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return fmt.Errorf("%d Pods: %w", len(list.Items), err)
		}
		if got, want := list.Items[0].Annotations[harness.StampKey("configmap/c")], s.Digest("configmap/c"); got != want {
			return fmt.Errorf("the Pod's stamp is %q, want %q", got, want)
		}
		return nil
	})
}

func TestOptIn_OneWorkloadByItsLabel(t *testing.T) {
	t.Parallel()
	for _, kind := range append(restamped, createdOnly...) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := run.PlainSpace(t)
			s.Set("configmap/c", "k", "1")
			s.WaitServiceAccount()
			in := s.Create(labelled(workload(kind, "in", envFrom("configmap/c")), "enabled"))[0]
			if got, want := harness.Stamps(in)[harness.StampKey("configmap/c")], s.Digest("configmap/c"); got != want {
				t.Errorf("stamp %q, want %q", got, want)
			}
			if stamps := harness.Stamps(s.Create(workload(kind, "other", envFrom("configmap/c")))[0]); len(stamps) > 0 {
				t.Errorf("its neighbour is stamped: %v", stamps)
			}
			if kind == "Deployment" || kind == "StatefulSet" || kind == "DaemonSet" {
				name := strings.ToLower(kind)
				before := s.Settled(name+"/in", name+"/other")
				s.Set("configmap/c", "k", "2")
				s.WantRolls(before, rolls{name + "/in": 1})
			}
		})
	}
}

func TestOptIn_OneWorkloadOptsOut(t *testing.T) {
	t.Parallel()
	for _, kind := range append(restamped, createdOnly...) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := run.Space(t)
			s.Set("configmap/c", "k", "1")
			s.WaitServiceAccount()
			out := s.Create(labelled(workload(kind, "out", envFrom("configmap/c")), "disabled"))[0]
			in := s.Create(workload(kind, "in", envFrom("configmap/c")))[0]
			if stamps := harness.Stamps(out); len(stamps) > 0 {
				t.Errorf("opted out, and stamped: %v", stamps)
			}
			if len(harness.Stamps(in)) != 1 {
				t.Error("its neighbour is not stamped")
			}
			if kind == "Deployment" || kind == "StatefulSet" || kind == "DaemonSet" {
				name := strings.ToLower(kind)
				before := s.Settled(name+"/in", name+"/out")
				s.Set("configmap/c", "k", "2")
				s.WantRolls(before, rolls{name + "/in": 1})
				if baseline := harness.Baseline(s.Get(name + "/out")); len(baseline) > 0 {
					t.Errorf("opted out, and recorded: %v", baseline)
				}
			}
		})
	}
}

func TestOptIn_NamespacesThatDidNotOptInAreNeverTouched(t *testing.T) {
	t.Parallel()
	plain, in := run.PlainSpace(t), run.Space(t)
	for _, s := range []*harness.Space{plain, in} {
		s.Set("configmap/c", "k", "1")
		s.Create(deployment("d", "configmap/c"))
	}
	outside, inside := plain.Settled("deployment/d"), in.Settled("deployment/d")
	plain.Set("configmap/c", "k", "2")
	in.Set("configmap/c", "k", "2")
	in.WantRolls(inside, rolls{"deployment/d": 1})
	plain.Unchanged(outside)
	object := plain.Get("deployment/d")
	if len(harness.Stamps(object)) > 0 || len(harness.Baseline(object)) > 0 {
		t.Errorf("%s", state(object))
	}
}

func TestOptIn_KubeSystemAndOurOwnNamespaceAreNeverTouched(t *testing.T) {
	for _, namespace := range []string{"kube-system", harness.OwnNamespace} {
		t.Run(namespace, func(t *testing.T) {
			s := run.Existing(t, namespace)
			before := s.GetNamespaceLabel()
			s.Label("enabled") // somebody's mistake
			t.Cleanup(func() { s.Label(before) })
			s.Set("configmap/e2e", "k", "1")
			t.Cleanup(func() { s.Delete("configmap/e2e") })
			manifest := labelled(deployment("e2e", "configmap/e2e"), "enabled")
			manifest = strings.Replace(manifest, "replicas: 1", "replicas: 0", 1)
			s.Create(manifest)
			t.Cleanup(func() { s.Delete("deployment/e2e") })
			counts := s.Settled("deployment/e2e")
			s.Set("configmap/e2e", "k", "2")
			s.Unchanged(counts)
			if object := s.Get("deployment/e2e"); len(harness.Stamps(object)) > 0 || len(harness.Baseline(object)) > 0 {
				t.Errorf("%s", state(object))
			}
			// And that the same would be served elsewhere is no accident.
			other := run.Space(t)
			other.Set("configmap/e2e", "k", "1")
			if len(harness.Stamps(other.Create(manifest)[0])) != 1 {
				t.Error("the same Deployment is not stamped in a namespace of its own")
			}
		})
	}
}

func TestOptIn_ALabelThatIsTakenAwayLeavesStampsAndRollsNothing(t *testing.T) {
	t.Parallel()
	s, before := one(t, "k", "1")
	stamp := s.Stamp("deployment/d", "configmap/c")
	s.Label("")
	s.Quiet() // the API server and the controllers learn of it
	s.Set("configmap/c", "k", "2")
	s.Unchanged(before)
	if now := s.Stamp("deployment/d", "configmap/c"); now != stamp {
		t.Errorf("the stamp went from %q to %q", stamp, now)
	}
	s.Label("enabled") // what changed meanwhile is released
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
}
