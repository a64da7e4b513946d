package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/harness"
)

// Workloads that were written for Reloader or wave, in namespaces without our
// label: they roll for the same edits as there.

// annotated adds annotations to an object, or to its pod template.
func annotated(manifest string, template bool, annotations map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		pairs = append(pairs, fmt.Sprintf("%q: %q", key, annotations[key]))
	}
	text := "annotations: {" + strings.Join(pairs, ", ") + "}"
	if template {
		return strings.Replace(manifest, "metadata: {labels:", "metadata: {"+text+", labels:", 1)
	}
	return strings.Replace(manifest, "metadata: {name:", "metadata: {"+text+", name:", 1)
}

func TestDialects_ASourceThatReloaderIgnores(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.Patch("configmap/c", `{"metadata":{"annotations":{"reloader.stakater.com/ignore":"true"}}}`)
	s.Create(annotated(deployment("d", "configmap/c"), false, map[string]string{"reloader.stakater.com/auto": "true", "configmap.reloader.stakater.com/reload": "c"}))
	before := s.Settled("deployment/d")
	s.Patch("configmap/c", `{"data":{"k":"2"}}`)
	s.Quiet()
	s.Unchanged(before)
}

// Each kind of workload, the other product's annotations on it.
func TestDialects_OnEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range restamped {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := run.PlainSpace(t)
			name := strings.ToLower(kind) + "/w"
			s.Set("configmap/c", "k", "1")
			s.Create(annotated(workload(kind, "w", envFrom("configmap/c")), false, map[string]string{"reloader.stakater.com/auto": "true"}))
			wantStamp(t, s, name, "configmap/c")
			s.Set("configmap/c", "k", "2")
			s.Eventually("waiting until it carries the new content", func() error {
				if got, want := harness.Stamps(s.Get(name))[harness.StampKey("configmap/c")], s.Digest("configmap/c"); got != want {
					return fmt.Errorf("stamp %q, want %q", got, want)
				}
				return nil
			})
		})
	}
}

// Row 6 and row 17 of the peers' faults, in their own words.
func TestDialects_ABadExpressionHoldsItsOwnWorkloadAlone(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.Create(annotated(deployment("bad", "configmap/c"), false, map[string]string{"configmap.reloader.stakater.com/reload": "c,web-("}))
	if warned := strings.Join(s.Warnings(), "\n"); !strings.Contains(warned, `configmap.reloader.stakater.com/reload: "c,web-(": "web-(" is not a regular expression`) {
		t.Errorf("warned of %q", warned)
	}
	for i := range 5 {
		s.Create(annotated(deployment(fmt.Sprint("good-", i), "configmap/c"), false, map[string]string{"configmap.reloader.stakater.com/reload": "c"}))
	}
	before := s.Settled("deployment/good-0", "deployment/good-1", "deployment/good-2", "deployment/good-3", "deployment/good-4")
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/good-0": 1, "deployment/good-1": 1, "deployment/good-2": 1, "deployment/good-3": 1, "deployment/good-4": 1})
	s.WantNote("deployment/bad", `PolicyUnreadable: configmap.reloader.stakater.com/reload: "c,web-(": "web-(" is not a regular expression`)
	before = s.Counts()
	s.Patch("deployment/bad", `{"metadata":{"annotations":{"configmap.reloader.stakater.com/reload":"c"}}}`)
	s.WantRolls(before, rolls{"deployment/bad": 1})
}

// What somebody had opted out of here stays out.
func TestDialects_OurLabelOverrulesThem(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.Create(labelled(annotated(deployment("d", "configmap/c"), true, map[string]string{"reloader.stakater.com/auto": "true"}), checksum.InjectDisabled))
	before := s.Settled("deployment/d")
	s.Set("configmap/c", "k", "2")
	s.Quiet()
	s.Unchanged(before)
}

// In a namespace of ours, they choose what counts.
func TestDialects_InALabelledNamespace(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Set("configmap/other", "k", "1")
	s.Create(annotated(deployment("d", "configmap/c", "configmap/other"), false, map[string]string{"configmap.reloader.stakater.com/reload": "c"}))
	before := s.Settled("deployment/d")
	s.Set("configmap/other", "k", "2")
	s.Quiet()
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}
