package records

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/harness"
)

// rolloutDefinition is a minimal one of Argo Rollouts.
const rolloutDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rollouts.argoproj.io}
spec:
  group: argoproj.io
  scope: Namespaced
  names: {kind: Rollout, plural: rollouts, singular: rollout, listKind: RolloutList}
  versions:
  - {name: v1alpha1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// An Argo Rollout is pinned to what it is stamped with, when it is created and when it rolls, and an update that brings
// old pins back does not take it there.
func TestAnArgoRolloutIsPinned(t *testing.T) {
	run.Exclusive(t)
	s := space(t)
	run.Install(t, rolloutDefinition)
	s.Eventually("waiting until Rollouts are served", func() error {
		_, err := s.TryGet("rollout/none")
		if err != nil && strings.Contains(err.Error(), "could not find the requested resource") {
			return err
		}
		return nil
	})
	s.Set(source, "MESSAGE", "hello world")
	s.Create(strings.Replace(manifest("Rollout", "web", ""), "apiVersion: apps/v1", "apiVersion: argoproj.io/v1alpha1", 1))
	s.Patch("rollout/web", `{"metadata":{"labels":{"x":"y"}}}`)
	s.Set(source, "MESSAGE", "another world")
	first := wantPin(t, s, "rollout/web")
	old := s.Get("rollout/web")
	s.Edit(source, "MESSAGE", "a third one")
	second := wantPin(t, s, "rollout/web")
	if first == second {
		t.Errorf("it is pinned to %s still", first)
	}
	if found := snapshots(t, s); found[second].Name == "" {
		t.Errorf("there is no snapshot %s among %d", second, len(found))
	}

	template := old.Object["spec"].(map[string]any)["template"]
	now := s.Get("rollout/web")
	now.Object["spec"].(map[string]any)["template"] = template
	text, err := yaml.Marshal(now.Object)
	harness.Must(t, err)
	s.PutAs("", string(text))
	if name, _ := pinOf(s, "rollout/web"); name != second {
		t.Errorf("after an undo it is pinned to %s, want %s", name, second)
	}
}
