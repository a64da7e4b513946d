package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
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

func TestEvents_AnOperatorThatTakesStampsAwayIsNamedOnce(t *testing.T) {
	t.Parallel()
	s, before := one(t, "k", "1")
	manifest := deployment("d", "configmap/c")
	for range 20 {
		s.PutAs("pulp-operator", manifest)
	}
	s.Unchanged(before)
	s.Eventually("waiting for the warning", func() error {
		for _, note := range s.Notes("deployment/d") {
			if strings.Contains(note, `field manager "pulp-operator" removes configstamp's annotations again and again`) &&
				strings.Contains(note, harness.InjectLabel+": disabled") {
				return nil
			}
		}
		return fmt.Errorf("events: %q", s.Notes("deployment/d"))
	})
	// Each replica of the webhook counts what reaches it, and says it once.
	if notes := s.Notes("deployment/d"); len(notes) > 2 {
		t.Errorf("%d events: %q", len(notes), notes)
	}
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

// What waits to be told when the leader ends is told before it is gone.
func TestEvents_WhatWaitsWhenTheLeaderEndsIsTold(t *testing.T) {
	const all = 60
	product := run.Exclusive(t)
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	harness.Must(t, product.Stop())
	for i := range all {
		s.Create(deployment(fmt.Sprint("d", i), "configmap/c"))
	}
	harness.Must(t, product.Start(t.Context()))
	s.Eventually("waiting for the baselines", func() error {
		for i := range all {
			if name := fmt.Sprint("deployment/d", i); s.Record(name, "configmap/c") == "" {
				return fmt.Errorf("%s has none", name)
			}
		}
		return nil
	})
	harness.Must(t, product.Stop())
	told, one := 0, 0
	list, err := s.Run.Client.EventsV1().Events(s.Namespace).List(t.Context(), metav1.ListOptions{})
	harness.Must(t, err)
	for _, event := range list.Items {
		if event.Reason != "ConfigRecorded" {
			continue
		}
		many := 1
		if n, err := fmt.Sscanf(event.Note, "%d events in one", &many); n == 1 && err == nil {
			one++
		}
		told += many
	}
	if told != all || one == 0 {
		t.Errorf("of %d recordings %d are told of, with %d events for many\n%s", all, told, one, s.Report())
	}
	harness.Must(t, product.Start(t.Context()))
}
