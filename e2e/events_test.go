package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// What people are told, and how often.

func TestEvents_SayWhatChangedAndWhatIsDone(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/web-message", "k", "1")
	s.Create(deployment("web-app", "configmap/web-message"))
	s.Create(workload("CronJob", "nightly", envFrom("configmap/web-message")))
	s.Create(deployment("bystander"))
	before := s.Settled("deployment/web-app", "cronjob/nightly", "deployment/bystander")
	s.Set("configmap/web-message", "k", "2")
	s.WantRolls(before, rolls{"deployment/web-app": 1, "cronjob/nightly": 1})
	s.WantNote("deployment/web-app", "ConfigChanged: configmap/web-message changed: rolling out")
	s.WantNote("cronjob/nightly", "ConfigChanged: configmap/web-message changed: later runs start with it")
	for _, workload := range []string{"deployment/web-app", "cronjob/nightly"} {
		if notes := s.Notes(workload); len(notes) != 1 {
			t.Errorf("about %s: %q, want one event", workload, notes)
		}
	}
	if notes := s.Notes("deployment/bystander"); len(notes) > 0 {
		t.Errorf("about a bystander: %q", notes)
	}
	if described := s.Kubectl("describe", "deployment/web-app").Stdout; !strings.Contains(described, "configmap/web-message changed: rolling out") {
		t.Errorf("kubectl describe does not show it:\n%s", described)
	}
}

func TestEvents_EachChangeIsToldByItsOwnName(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Set("secret/s", "k", "1")
	s.Create(deployment("d", "configmap/c", "secret/s"))
	before := s.Settled("deployment/d")
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	s.Set("secret/s", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 2})
	s.WantNote("deployment/d", "ConfigChanged: configmap/c changed: rolling out")
	s.WantNote("deployment/d", "ConfigChanged: secret/s changed: rolling out")
}

func TestEvents_NoStormOfThem(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "0")
	s.Set("secret/s", "k", "1")
	s.Create(deployment("d", "configmap/c"))
	s.Create(deployment("held", "configmap/c", "secret/s"))
	before := s.Settled("deployment/d", "deployment/held")
	s.Delete("secret/s")
	const changes = 4
	for i := range changes {
		s.Set("configmap/c", "k", fmt.Sprint(i+1))
		s.WantRolls(before, rolls{"deployment/d": i + 1})
	}
	told := 0
	for _, event := range s.Events("deployment/d") {
		told++
		if event.Series != nil {
			told += int(event.Series.Count) - 1
		}
	}
	if told > changes+1 { // the fourth within ten minutes is slowed down, and that is told
		t.Errorf("%d changes were told %d times: %q", changes, told, s.Notes("deployment/d"))
	}
	s.WantNote("deployment/held", "RolloutHeld") // once, however often the source changes
}

func TestEvents_WhoeverRequiresADeletedSourceIsTold(t *testing.T) {
	t.Parallel()
	const gone = "SourceMissing: configmap/c does not exist any more: running pods keep running, but no new pod of this Deployment can start"
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Create(deployment("d", "configmap/c"))
	s.Create(deployment("choosy", "configmap/c?"))
	before := s.Settled("deployment/d", "deployment/choosy")
	s.Delete("configmap/c")
	s.WantRolls(before, rolls{"deployment/choosy": 1}) // it does without
	s.WantNote("deployment/d", gone)
	s.WantNoNote("deployment/choosy", "SourceMissing")
	s.Set("configmap/c", "k", "1")
	s.WantRollsBack(before, rolls{"deployment/choosy": 2}) // and d restarts for nothing
	before = s.Counts()
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1, "deployment/choosy": 1})
	s.WantNote("deployment/d", gone)
}
