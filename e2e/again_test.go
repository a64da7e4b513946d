package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Made again restarts nothing: whoever changes an immutable field deletes the workload and leaves its
// pods; a backup brings back pods and ReplicaSets before their Deployment.

const madeAgain = "deployment/web daemonset/agent statefulset/db"

func makeAgain(s *harness.Space) harness.Result {
	result := s.Apply(strings.Join([]string{
		deployment("web", "configmap/conf"), workload("DaemonSet", "agent", envFrom("configmap/conf")), workload("StatefulSet", "db", envFrom("configmap/conf")),
	}, "---\n"))
	s.Settled(strings.Fields(madeAgain)...)
	return result
}

// wantMadeAgain deletes all workloads, leaves what they made, and applies them again. It is false
// where a warning says that the API server did not tell the webhook in time what is left.
func wantMadeAgain(t *testing.T, s *harness.Space) (known bool) {
	t.Helper()
	wantBelongings(s, 5) // two pods, a ReplicaSet, two ControllerRevisions
	before := belongings(s)
	s.Kubectl(append([]string{"delete", "--cascade=orphan"}, strings.Fields(madeAgain)...)...)
	if result := makeAgain(s); strings.Contains(result.Stderr, "configstamp could not check in time whether pods") {
		return false
	}
	s.Quiet()
	if after := belongings(s); after != before {
		t.Errorf("made again, they have\n%s\nand had\n%s\n%s", after, before, s.Report())
	}
	return true
}

// wantBelongings waits until the workloads' own controllers have made so many.
func wantBelongings(s *harness.Space, count int) {
	s.Eventually("waiting for pods and revisions", func() error {
		if got := belongings(s); strings.Count(got, "\n") != count {
			return fmt.Errorf("there are\n%s", got)
		}
		return nil
	})
}

// belongings are the pods and revisions of a namespace.
func belongings(s *harness.Space) string {
	return s.Kubectl("get", "pods,replicasets,controllerrevisions", "--no-headers", "-o", "custom-columns=K:.kind,N:.metadata.name,U:.metadata.uid").Stdout
}

func TestAgain_RestartsNothing(t *testing.T) {
	t.Parallel()
	everybody := rolls{"deployment/web": 1, "daemonset/agent": 1, "statefulset/db": 1}
	space := func(t *testing.T, opted func(testing.TB) *harness.Space) *harness.Space {
		s := opted(t)
		s.Set("configmap/conf", "SETTING_A", "1")
		makeAgain(s)
		return s
	}
	const mostTries = 5
	again := func(name string, scenario func(*testing.T) (known bool)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range mostTries {
				if scenario(t) {
					return
				}
			}
			t.Errorf("%d times the webhook did not know what is left", mostTries)
		})
	}
	wantRolls := func(t *testing.T, s *harness.Space, change func()) {
		t.Helper()
		before := s.Counts()
		change()
		s.WantRolls(before, everybody)
		for workload := range everybody {
			wantStamp(t, s, workload, "configmap/conf")
		}
	}
	again("nobody is opted in", func(t *testing.T) bool {
		return wantMadeAgain(t, space(t, run.PlainSpace))
	})
	again("recorded", func(t *testing.T) bool {
		s := space(t, run.PlainSpace)
		s.Label("enabled")
		recorded := map[string][]string{}
		for workload := range everybody {
			recorded[workload] = []string{"configmap/conf"}
		}
		wantBaselines(t, s, recorded)
		if !wantMadeAgain(t, s) {
			return false
		}
		wantBaselines(t, s, recorded)
		wantRolls(t, s, func() { s.Set("configmap/conf", "SETTING_A", "2") })
		return true
	})
	again("recorded, while a change waits", func(t *testing.T) bool {
		s := space(t, run.PlainSpace)
		s.Label("enabled")
		s.Eventually("waiting for the copy of the baseline", func() error {
			if kept := s.Kubectl("get", "replicasets", "-o", "yaml").Stdout; !strings.Contains(kept, "configstamp.dev/baseline") {
				return errors.New("the ReplicaSet has none")
			}
			return nil
		})
		s.SetPolicy("namespace", map[string]string{"pause": "true"})
		s.Set("configmap/conf", "SETTING_A", "2")
		if !wantMadeAgain(t, s) {
			return false
		}
		before := s.Counts()
		s.DropPolicy("namespace", map[string]string{"pause": ""})
		s.WantRolls(before, rolls{"deployment/web": 1}) // ControllerRevisions have no copy of the baseline: a warning says so
		return true
	})
	again("stamped", func(t *testing.T) bool {
		s := space(t, run.Space)
		if !wantMadeAgain(t, s) {
			return false
		}
		wantRolls(t, s, func() { s.Set("configmap/conf", "SETTING_A", "2") })
		return true
	})
	again("paused while a change waits", func(t *testing.T) bool {
		s := space(t, run.Space)
		s.SetPolicy("namespace", map[string]string{"pause": "true"})
		s.Set("configmap/conf", "SETTING_A", "2")
		if !wantMadeAgain(t, s) {
			return false
		}
		wantRolls(t, s, func() { s.DropPolicy("namespace", map[string]string{"pause": ""}) })
		return true
	})
}

// A backup saves Pod, ReplicaSet and Deployment, and brings them back in this order, without owners.
func TestAgain_ABackupIsBroughtBack(t *testing.T) {
	t.Parallel()
	for about, c := range map[string]struct {
		space func(testing.TB) *harness.Space
		label string
	}{
		"nobody is opted in": {run.PlainSpace, ""}, "opted in": {run.Space, ""}, "opted out": {run.Space, ", configstamp.dev/inject: disabled"},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			s := c.space(t)
			s.Set("configmap/conf", "SETTING_A", "1")
			s.Apply(strings.Replace(deployment("web", "configmap/conf"), "labels: {app: web}", "labels: {app: web"+c.label+"}", 1))
			s.Settled("deployment/web")
			wantBelongings(s, 2)
			made := strings.Fields(s.Kubectl("get", "pods,replicasets", "-o", "name").Stdout)
			saved := make([]string, 0, 3)
			for _, name := range append(made, "deployment/web") {
				saved = append(saved, backup(t, s, name))
			}
			s.Kubectl("delete", "deployment/web", "--cascade=foreground")
			s.Create(saved[0])
			s.Create(saved[1])
			s.Eventually("waiting until the ReplicaSet has adopted its Pod", func() error { // it may have made one more, and deletes that
				if replicas := s.Kubectl("get", "replicasets", "-o", "jsonpath={.items[*].status.replicas}").Stdout; replicas != "1" {
					return fmt.Errorf("it has %q replicas", replicas)
				}
				return nil
			})
			wantBelongings(s, 2)
			restored := belongings(s)
			s.Create(saved[2])
			s.Settled("deployment/web")
			s.Quiet()
			if now := belongings(s); now != restored {
				t.Errorf("there are\n%s\nand were brought back\n%s\n%s", now, restored, s.Report())
			}
		})
	}
}

// backup is an object as a backup saves it.
func backup(t *testing.T, s *harness.Space, name string) string {
	t.Helper()
	name = strings.Replace(name, "replicaset.apps/", "replicaset/", 1)
	object := s.Get(name)
	object.SetOwnerReferences(nil)
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	delete(object.Object, "status")
	text, err := json.Marshal(object)
	harness.Must(t, err)
	return string(text)
}
