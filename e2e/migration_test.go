package e2e

import (
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What docs/migration.md says of those who come from something else, where
// dialects_test.go does not prove it.

// former is a product that was here before, with what it writes into pod templates.
type former struct{ optIn, trace string }

func formers() map[string]former {
	return map[string]former{
		"Reloader": {"reloader.stakater.com/auto", "reloader.stakater.com/last-reloaded-from"},
		"wave":     {"wave.pusher.com/update-on-config-change", "wave.pusher.com/config-hash"},
	}
}

// workload is what it has looked after until today.
func (f former) workload() string {
	manifest := annotated(deployment("d", "configmap/c"), false, map[string]string{f.optIn: "true"})
	return annotated(manifest, true, map[string]string{f.trace: "1"})
}

// Its annotations may go or stay, once the namespace is labelled.
func TestMigration_GivingUpTheAnnotationsOfTheOther(t *testing.T) {
	t.Parallel()
	for name, product := range formers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := run.PlainSpace(t)
			s.Set("configmap/c", "k", "1")
			s.Create(product.workload())
			before := s.Settled("deployment/d")
			s.Label("enabled")
			s.Patch("deployment/d", `{"metadata":{"annotations":{"`+product.optIn+`":null}}}`)
			s.Unchanged(before)
			s.Set("configmap/c", "k", "2")
			s.WantRolls(before, rolls{"deployment/d": 1})
			wantStamp(t, s, "deployment/d", "configmap/c")
			if left := harness.TemplateAnnotations(s.Get("deployment/d"))[product.trace]; left != "1" {
				t.Errorf("%s is %q, and was 1", product.trace, left)
			}
			// What it wrote into the template costs a rollout to take out, as any edit of it does.
			before = s.Counts()
			s.Patch("deployment/d", `{"spec":{"template":{"metadata":{"annotations":{"`+product.trace+`":null}}}}}`)
			s.WantRolls(before, rolls{"deployment/d": 1})
			wantStamp(t, s, "deployment/d", "configmap/c")
		})
	}
}

// Both at work: the other writes to the template at once, and that update is
// stamped. Only when it comes later than our own rollout are there two.
func TestMigration_BothAtOnce(t *testing.T) {
	t.Parallel()
	for name, product := range formers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := run.PlainSpace(t)
			s.Set("configmap/c", "k", "1")
			s.Create(product.workload())
			before := s.Settled("deployment/d")
			other := func(value string) {
				s.Patch("deployment/d", `{"spec":{"template":{"metadata":{"annotations":{"`+product.trace+`":"`+value+`"}}}}}`)
			}
			together(s, func() {
				s.Set("configmap/c", "k", "2")
				other("2")
			})
			s.WantRolls(before, rolls{"deployment/d": 1})
			wantStamp(t, s, "deployment/d", "configmap/c")

			before = s.Counts()
			s.Set("configmap/c", "k", "3")
			s.WantRolls(before, rolls{"deployment/d": 1})
			other("3")
			s.WantRolls(before, rolls{"deployment/d": 2})
		})
	}
}

// Names with a hash of the content, as Kustomize's generators make them.
func TestMigration_KustomizeSuffixes(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c-1", "k", "1")
	s.Apply(deployment("d", "configmap/c-1"))
	before := s.Settled("deployment/d")

	// Another content is another name: one rollout, with the stamp of that name alone.
	s.Set("configmap/c-2", "k", "2")
	wantNoWarnings(t, s.Apply(deployment("d", "configmap/c-2")))
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamps(t, s, "deployment/d", "configmap/c-2")

	// An undo brings the old name back, and with it the old content.
	before = s.Counts()
	if undo := s.Kubectl("rollout", "undo", "deployment/d"); strings.Contains(undo.Stderr, "configstamp") {
		t.Errorf("warned of an undo that does bring the old content back: %s", undo.Stderr)
	}
	s.WantRollsBack(before, rolls{"deployment/d": 1})
	wantStamps(t, s, "deployment/d", "configmap/c-1")

	// The one that is not used any more may go.
	before = s.Counts()
	s.Delete("configmap/c-2")
	s.Unchanged(before)

	// Going off the suffixes is one rollout, as any other name is; from then on
	// edits roll.
	s.Set("configmap/c", "k", "1")
	wantNoWarnings(t, s.Apply(deployment("d", "configmap/c")))
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamps(t, s, "deployment/d", "configmap/c")
	before = s.Counts()
	s.Delete("configmap/c-1")
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

// together has edits be one change, however long they take: nothing rolls meanwhile.
func together(s *harness.Space, edits func()) {
	pause := settings{"pause": "true"}
	s.SetPolicy("namespace", pause)
	edits()
	s.DropPolicy("namespace", pause)
}
