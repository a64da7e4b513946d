package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
	kinds "github.com/configstamp/configstamp/internal/workload"
)

// What a new leader reads of a workload that was scaled to nothing or paused, as the API
// server and the Deployment controller write it. There are no nodes: nothing is ever
// available.
func TestMuted_WhatTheClusterTells(t *testing.T) {
	t.Parallel()
	kind, _ := kinds.Builtin().Find("apps", "deployments")
	for sentence, mute := range map[string][]string{
		"kubectl scale":         {"scale", "deployment/d", "--replicas=0"},
		"kubectl patch":         {"patch", "deployment/d", "-p", `{"spec":{"replicas":0}}`},
		"kubectl rollout pause": {"rollout", "pause", "deployment/d"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			s := run.Space(t)
			s.Set("configmap/c", "k", "1")
			s.Apply(deployment("d", "configmap/c"))
			s.Settled("deployment/d")
			muted := func() kinds.Muted {
				raw, err := s.Get("deployment/d").MarshalJSON()
				harness.Must(t, err)
				return kind.Muted(raw)
			}
			if got := muted(); !got.Since.IsZero() || !got.RolledOut.IsZero() {
				t.Errorf("before that: %+v, want nothing", got)
			}
			time.Sleep(2 * time.Second) // times are whole seconds
			began := time.Now().Truncate(time.Second)
			s.Kubectl(mute...)
			if sentence == "kubectl scale" {
				if got := muted(); !got.Since.IsZero() {
					t.Errorf("%+v: the API server notes a time by now, and docs/rollouts.md is to say so", got)
				}
				return
			}
			if got := muted(); got.Since.Before(began) || time.Since(got.Since) > time.Minute {
				t.Errorf("it was done at %s, and %+v is told", began, got)
			}
			if sentence == "kubectl rollout pause" {
				return
			}
			s.Eventually("waiting for its controller to call it rolled out", func() error {
				if got := muted(); got.RolledOut.Before(got.Since) {
					return fmt.Errorf("%+v", got)
				}
				return nil
			})
		})
	}
}
