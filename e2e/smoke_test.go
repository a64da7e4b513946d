package e2e

import "testing"

func TestAnEditRollsItsUserOnceAndNothingElse(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/web-message", "MESSAGE", "hello world")
	s.Apply(deployment("web-app", "configmap/web-message"))
	s.Apply(deployment("bystander"))
	before := s.Settled("deployment/web-app", "deployment/bystander")
	if got, want := s.Stamp("deployment/web-app", "configmap/web-message"), s.Digest("configmap/web-message"); got != want {
		t.Fatalf("stamp at creation %q, want %q", got, want)
	}
	s.Set("configmap/web-message", "MESSAGE", "hello KodeKloud")
	s.WantRolls(before, map[string]int{"deployment/web-app": 1})
	if got, want := s.Stamp("deployment/web-app", "configmap/web-message"), s.Digest("configmap/web-message"); got != want {
		t.Fatalf("stamp after the edit %q, want %q", got, want)
	}
	s.WantNote("deployment/web-app", "ConfigChanged: configmap/web-message changed: rolling out")
}
