package neighbours

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/configstamp/configstamp/e2e/harness"
)

// A halted change makes the Application red by the workload that failed, and by no other, when Argo CD
// has the check of deploy/gitops: Argo CD itself says Progressing. Git's revert makes it green.
func argoHealth(t *testing.T, a *argo) {
	for kind, spec := range map[string]string{
		"Deployment":  "replicas: 2",
		"StatefulSet": "replicas: 2\n  podManagementPolicy: Parallel\n  serviceName: none",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			namespace := "health-" + rand.String(5)
			s := run.Existing(t, namespace)
			files := map[string]string{"namespace.yaml": argoNamespace(namespace, ""), "setting.yaml": argoSetting("good-" + namespace)}
			for i, name := range []string{"first", "second", "third"} {
				files[name+".yaml"] = argoWorkload(kind, name, "strict", fmt.Sprint(i), spec, argoEnvFrom, "")
			}
			git := newRepository(t, files)
			application := a.keep(t, namespace, git.URL, argoOptions{})
			argoGoes(t, namespace)
			application.wantSynced(git.head(t))
			application.wantHealth("Healthy", 5*time.Minute)
			since, first := len(application.moments(0)), strings.ToLower(kind)+"/first"

			before := s.Counts()
			git.push(t, "bad", map[string]string{"setting.yaml": argoSetting("bad-" + namespace)})
			application.refresh()
			s.WantNote("configmap/setting", "ChangeHalted")
			halted := time.Now()
			application.wantHealth("Degraded", 4*time.Minute)
			t.Logf("the change was halted %s before the Application was Degraded", time.Since(halted).Round(time.Second))
			now := application.now()
			if len(now.Ill) != 1 || !strings.Contains(now.Ill[first], "kubectl configstamp status -n "+namespace) {
				t.Errorf("ill is %v, want %s alone, with what to ask", now.Ill, first)
			}
			s.WantRolls(before, harness.Rolls{first: 1})
			if now.Sync != "Synced" {
				t.Errorf("it is %s: %v", now.Sync, now.OutOfSync)
			}

			git.push(t, "good again", map[string]string{"setting.yaml": argoSetting("good-" + namespace)})
			application.refresh()
			s.EventuallyIn(2*time.Minute, "waiting for the way back", func() error {
				if got, want := s.Stamp(first, "configmap/setting"), s.Digest("configmap/setting"); got != want {
					return fmt.Errorf("the stamp is %q, want %q", got, want)
				}
				return nil
			})
			if kind == "StatefulSet" { // it waits for its broken Pods, as always in Kubernetes
				s.Kubectl("delete", "pod", "-l", "app=first", "--wait=false")
			}
			application.wantHealth("Healthy", 3*time.Minute)
			s.WantRollsBack(before, harness.Rolls{first: 2})
			for _, m := range application.moments(since) {
				for object := range m.Ill {
					if object != first {
						t.Errorf("%s is ill, which nothing has touched: %v", object, m.Ill)
					}
				}
			}
		})
	}
}
