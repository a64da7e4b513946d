package e2e

import (
	"errors"
	"strings"
	"testing"
)

// A Deployment whose strategy is Recreate loses its pods when a quota refuses new ones. The content is
// not at fault, and the old content does not bring them back: doctor and why say what does.
func TestPlugin_PodsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	want := commands(t, s)
	s.Set("configmap/c", "k", "1")
	s.Create(strings.Replace(deployment("d", "configmap/c"), "replicas: 1", "replicas: 1\n  progressDeadlineSeconds: 5\n  strategy: {type: Recreate}", 1))
	before := s.Settled("deployment/d")
	s.Kubectl("create", "quota", "none", "--hard=pods=0")
	refused := func() {
		t.Helper()
		s.Eventually("waiting until its pods are refused", func() error {
			status := s.TryKubectl("get", "deployment", "d", "-o", `jsonpath={.status.conditions[?(@.type=="ReplicaFailure")].reason} {.status.conditions[?(@.type=="Progressing")].reason}`)
			if status.Stdout != "FailedCreate ProgressDeadlineExceeded" {
				return errors.New(status.Stdout)
			}
			return nil
		})
		want(1, "doctor", "deployment/d in namespace "+s.Namespace+": the API server refuses its pods (ReplicaFailure: FailedCreate)", "kubectl get deployment/d -n "+s.Namespace)
		want(0, "why deployment/d", "The API server refuses its pods (ReplicaFailure: FailedCreate)", "Next: The content is at fault only if it asks for more")
	}
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	refused()
	before = s.Counts()
	s.Set("configmap/c", "k", "1") // which helps nothing
	s.WantRollsBack(before, rolls{"deployment/d": 1})
	refused()
	if message := s.Kubectl("get", "deployment/d", "-o", `jsonpath={.status.conditions[?(@.type=="ReplicaFailure")].message}`).Stdout; !strings.Contains(message, "exceeded quota: none") {
		t.Errorf("the command that is advised shows %q", message)
	}
}
