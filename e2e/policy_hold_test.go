package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What holds rollouts, and when that ends.

func TestPolicy_WhatIsHeldRollsOnceWhenThatEnds(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	held := map[string]settings{
		"observed": {"mode": "observe"}, "paused": {"pause": "true"}, "recent": {"min-interval": "1h"},
		"closed": {"window": time.Now().UTC().AddDate(0, 0, 3).Weekday().String()[:3] + " 00:00-01:00 UTC"},
	}
	all, ends := []string{"deployment/free"}, rolls{}
	s.Create(deployment("free", "configmap/c"))
	for name, by := range held {
		s.Create(withPolicy(deployment(name, "configmap/c"), by))
		all, ends["deployment/"+name] = append(all, "deployment/"+name), 1
	}
	before := s.Settled(all...)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/free": 1})
	before = s.Counts()
	for name, by := range held {
		s.DropPolicy("deployment/"+name, by)
	}
	s.WantRolls(before, ends)
	for workload := range ends {
		wantStamps(t, s, workload, "configmap/c")
	}
}

func TestPolicy_AnEditTakenBackDuringAPauseRollsNothing(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.SetPolicy("namespace", settings{"pause": "true"})
	s.Quiet()
	s.Create(deployment("d", "configmap/c"))
	before := s.Settled("deployment/d")
	s.Set("configmap/c", "k", "2")
	s.WantNote("deployment/d", "RolloutHeld")
	s.Set("configmap/c", "k", "1")
	s.Unchanged(before)
	s.DropPolicy("namespace", settings{"pause": ""})
	s.Unchanged(before)
	s.Set("configmap/c", "k", "3")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

func TestPolicy_RecordingsWaitForNoHold(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.SetPolicy("namespace", settings{"pause": "true"})
	s.Create(deployment("d", "configmap/c"))
	before := s.Settled("deployment/d")
	s.Label("enabled")
	wantBaselines(t, s, map[string][]string{"deployment/d": {"configmap/c"}})
	s.Set("configmap/c", "k", "2")
	s.Unchanged(before)
	s.DropPolicy("namespace", settings{"pause": ""})
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamps(t, s, "deployment/d", "configmap/c")
}

// progressing is when the newest revision of Deployment d became current, as its
// status tells once all its replicas are new: until then that time moves.
func progressing(s *harness.Space) (updated time.Time) {
	s.Eventually("waiting for the Deployment's conditions", func() error {
		deployment, err := run.Client.AppsV1().Deployments(s.Namespace).Get(context.Background(), "d", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status := &deployment.Status
		done := status.ObservedGeneration == deployment.Generation && status.UpdatedReplicas == 1
		for _, condition := range status.Conditions {
			if condition.Type == "Progressing" && done {
				updated = condition.LastUpdateTime.Time
				return nil
			}
		}
		return fmt.Errorf("%+v", deployment.Status)
	})
	return updated
}
