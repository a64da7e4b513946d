package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Workloads that do not roll by themselves get their stamp, once, and nobody waits
// for a rollout that does not come.
func TestStandstill_AStampIsSetAndNothingWaits(t *testing.T) {
	t.Parallel()
	for about, c := range map[string]struct{ kind, from, to string }{
		"a paused Deployment":             {"Deployment", "replicas: 1", "replicas: 1\n  paused: true"},
		"a Deployment without replicas":   {"Deployment", "replicas: 1", "replicas: 0"},
		"a StatefulSet with a partition":  {"StatefulSet", "replicas: 1", "replicas: 1\n  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}"},
		"a StatefulSet with OnDelete":     {"StatefulSet", "replicas: 1", "replicas: 1\n  updateStrategy: {type: OnDelete}"},
		"a DaemonSet with OnDelete":       {"DaemonSet", "revisionHistoryLimit: 1000", "revisionHistoryLimit: 1000\n  updateStrategy: {type: OnDelete}"},
		"a suspended CronJob":             {"CronJob", "suspend: true", "suspend: true"},
		"a CronJob that is not suspended": {"CronJob", "suspend: true", "suspend: false"},
		"a CronJob with a deadline":       {"CronJob", "suspend: true", "suspend: false\n  startingDeadlineSeconds: 60"},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			s := run.Space(t)
			name := strings.ToLower(c.kind) + "/w"
			s.Set("configmap/c", "k", "1")
			manifest := workload(c.kind, "w", envFrom("configmap/c"))
			if !strings.Contains(manifest, c.from) {
				t.Fatalf("%q is not in\n%s", c.from, manifest)
			}
			created := s.Create(strings.Replace(manifest, c.from, c.to, 1))[0]
			wantStamp(t, s, name, "configmap/c")
			for i := range 3 {
				s.Set("configmap/c", "k", fmt.Sprint("edit ", i))
				s.Eventually("waiting until it carries the new content", func() error {
					if got, want := harness.Stamps(s.Get(name))[harness.StampKey("configmap/c")], s.Digest("configmap/c"); got != want {
						return fmt.Errorf("stamp %q, want %q", got, want)
					}
					return nil
				})
			}
			s.Quiet()
			now := s.Get(name)
			if now.GetGeneration() > created.GetGeneration()+3 {
				t.Errorf("generation went from %d to %d in three edits", created.GetGeneration(), now.GetGeneration())
			}
			if c.kind == "CronJob" {
				if jobs := s.Kubectl("get", "jobs", "-o", "name").Stdout; jobs != "" {
					t.Errorf("Jobs were made: %s", jobs)
				}
			}
		})
	}
}
