package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Adoption restarts nothing.

// wantBaselines waits until workloads have exactly these baselines and no stamps.
func wantBaselines(t *testing.T, s *harness.Space, want map[string][]string) {
	t.Helper()
	s.Eventually("waiting for baselines", func() error {
		for workload, sources := range want {
			object := s.Get(workload)
			baseline := harness.Baseline(object)
			for _, source := range sources {
				if got, want := baseline[source], s.Digest(source); got != want {
					return fmt.Errorf("baseline of %s for %s is %q, want %q", workload, source, got, want)
				}
			}
			if len(baseline) != len(sources) || len(harness.Stamps(object)) != 0 {
				return fmt.Errorf("%s: %s", workload, state(object))
			}
		}
		return nil
	})
}

func TestAdoption_FiftyWorkloadsWithoutOneRestart(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	const deployments = 44
	want := map[string][]string{}
	for i := range 5 {
		s.Set(fmt.Sprintf("configmap/c%d", i), "k", "1")
	}
	s.Set("secret/all", "k", "1")
	for i := range deployments {
		own := fmt.Sprintf("configmap/c%d", i%5)
		name := fmt.Sprintf("d%02d", i)
		s.Create(strings.Replace(deployment(name, own, "secret/all"), "replicas: 1", "replicas: 0", 1))
		want["deployment/"+name] = []string{own, "secret/all"}
	}
	for _, kind := range []string{"StatefulSet", "DaemonSet", "CronJob"} {
		for _, name := range []string{"a", "b"} {
			s.Create(workload(kind, name, envFrom("configmap/c0")))
			want[strings.ToLower(kind)+"/"+name] = []string{"configmap/c0"}
		}
	}
	workloads := make([]string, 0, len(want))
	for workload := range want {
		workloads = append(workloads, workload)
	}
	before := s.Settled(workloads...)

	s.Label("enabled")
	wantBaselines(t, s, want)
	s.Unchanged(before)

	s.Set("configmap/c0", "k", "2")
	users := rolls{"statefulset/a": 1, "statefulset/b": 1, "daemonset/a": 1, "daemonset/b": 1, "cronjob/a": 1, "cronjob/b": 1}
	for i := 0; i < deployments; i += 5 {
		users[fmt.Sprintf("deployment/d%02d", i)] = 1
	}
	s.WantRolls(before, users)
	wantStamp(t, s, "deployment/d00", "configmap/c0")
	wantStamp(t, s, "deployment/d00", "secret/all")
	wantStamp(t, s, "cronjob/a", "configmap/c0")
}

func TestAdoption_AChangeBeforeTheRecordIsSaidToBeMaybeStale(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/edited", "k", "1")
	s.Set("configmap/calm", "k", "1")
	s.Create(deployment("d", "configmap/edited", "configmap/calm"))
	before := s.Settled("deployment/d")
	progressing(s)                      // its controller may be a moment late in saying that the revision is current
	time.Sleep(2100 * time.Millisecond) // managedFields and conditions have whole seconds
	s.Set("configmap/edited", "k", "2")
	s.Label("enabled")
	wantBaselines(t, s, map[string][]string{"deployment/d": {"configmap/edited", "configmap/calm"}})
	s.WantNote("deployment/d", "ConfigMaybeStale: configmap/edited was edited after the newest revision")
	s.WantNote("deployment/d", "ConfigRecorded: configmap/calm and configmap/edited are recorded as they are now")
	s.Unchanged(before)
}

func TestAdoption_OfAWorkloadWhoseOptionalSourceIsMissingThenAppears(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Create(deployment("d", "configmap/later?"))
	before := s.Settled("deployment/d")
	s.Label("enabled")
	wantBaselines(t, s, map[string][]string{"deployment/d": {"configmap/later"}})
	s.Unchanged(before)
	s.Set("configmap/later", "k", "1")
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/later")
}

func TestAdoption_NothingIsSentWhenAnotherWebhookWouldRideAlong(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.Create(deployment("d", "configmap/c"))
	before := s.Settled("deployment/d")
	run.OtherWebhook(t, s.Namespace, "a-rider")
	s.Label("enabled")
	s.WantNote("deployment/d", "RecordingBlocked: checksums are not recorded: configstamp's patch would let another webhook change spec.template.metadata")
	s.Unchanged(before)
	object := s.Get("deployment/d")
	if len(harness.Baseline(object)) > 0 || object.GetGeneration() != 1 {
		t.Errorf("something was sent: %s", state(object))
	}
	// The user takes the other's change by an order of their own, and is served.
	s.Kubectl("rollout", "restart", "deployment/d")
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
	if harness.TemplateAnnotations(s.Get("deployment/d"))["a-rider/was"] != "here" {
		t.Error("the other webhook's annotation is missing: it did not ride at all")
	}
}

// Our service account is held to our annotations by a policy: what another
// webhook would change in a workload waits for somebody who may.
func TestAdoption_NothingRollsWhenAnotherWebhookWouldRideAlong(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Create(deployment("d", "configmap/c"))
	before := s.Settled("deployment/d")
	run.OtherWebhook(t, s.Namespace, "a-rider")
	s.Set("configmap/c", "k", "2")
	s.WantNote("deployment/d", "RolloutBlocked: configmap/c changed, but this workload does not roll out: configstamp's patch would let another webhook change spec.template.metadata.annotations.a-rider/was")
	s.Unchanged(before)
	s.Kubectl("rollout", "restart", "deployment/d")
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
}

func TestAdoption_BesideAWebhookThatLeavesRecordingsAloneIsUsual(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	run.OtherWebhook(t, s.Namespace, "a-rider")
	s.Set("configmap/c", "k", "1")
	s.Create(deployment("d", "configmap/c")) // the rider was here from the start
	before := s.Settled("deployment/d")
	s.Label("enabled")
	wantBaselines(t, s, map[string][]string{"deployment/d": {"configmap/c"}})
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	s.WantNoNote("deployment/d", "RecordingBlocked")
}
