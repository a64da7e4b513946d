package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// One deploy, one rollout: a ConfigMap and, milliseconds later, the Deployment
// that uses it.

const deploys = 200

// deploy changes ConfigMap c and Deployment d back to back, and checks that the
// answer to the second already carries the digest of the first. That is checked
// each time, because the next deploy would hide a stamp that was behind.
func deploy(t *testing.T, s *harness.Space, round int) {
	t.Helper()
	s.Set("configmap/c", "k", fmt.Sprint(round))
	object := s.Patch("deployment/d", fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"registry.example/app:%d","envFrom":[{"configMapRef":{"name":"c"}}]}]}}}}`, round))
	if got, want := harness.Stamps(object)[harness.StampKey("configmap/c")], s.Digest("configmap/c"); got != want {
		t.Fatalf("deploy %d is stamped %q, want %q\n%s", round, got, want, s.Report())
	}
}

// wantReplicaSets waits until Deployment d has had so many ReplicaSets.
func wantReplicaSets(s *harness.Space, want int) {
	s.Eventually("waiting for ReplicaSets", func() error {
		if got := s.Counts()["deployment/d"].Revisions; got < want {
			return fmt.Errorf("there were %d, want %d", got, want)
		}
		return nil
	})
}

// oneWithoutPods is Deployment d that runs nothing, so that only the
// Deployment's controller is kept busy.
func oneWithoutPods(t *testing.T) (*harness.Space, harness.Counts) {
	t.Helper()
	s := run.Space(t)
	s.Set("configmap/c", "k", "0")
	s.Create(strings.Replace(deployment("d", "configmap/c"), "replicas: 1", "replicas: 0", 1))
	return s, s.Settled("deployment/d")
}

func TestOneDeployOneRollout_AlsoWhileOneWebhookReplicasWatchesAreHeldBack(t *testing.T) {
	product := run.Exclusive(t)
	// No settle ends within the run, not even the longest (ten times this), so each
	// deploy is the webhook's work alone; what the controllers found wrong would
	// show at the end.
	harness.Must(t, product.Restart(t.Context(), harness.Options{Settle: 20 * time.Second}))
	s, before := oneWithoutPods(t)
	held := &proxy.Gate{}
	product.Webhooks[0].Proxy.Add(proxy.Rule{Match: proxy.Matching("watch", ""), Gate: held})
	held.Close()
	t.Cleanup(held.Open)
	for i := range 5 {
		s.Set(fmt.Sprintf("configmap/new-%d", i), "k", "1")
	}
	s.Eventually("waiting until one replica is behind", func() error {
		behind, other := harness.Sum(product.Webhooks[:1], "configstamp_sources"), harness.Sum(product.Webhooks[1:], "configstamp_sources")
		if behind > other-5 {
			return fmt.Errorf("it knows %v sources, the other %v", behind, other)
		}
		return nil
	})
	for round := range deploys {
		product.Balancer.Only(round % 2) // the one that is behind every other time
		deploy(t, s, round+1)
		wantReplicaSets(s, before["deployment/d"].Revisions+round+1)
	}
	product.Balancer.Release()
	s.WantRolls(before, rolls{"deployment/d": deploys})
	if proven := harness.Sum(product.Webhooks[:1], "configstamp_freshness_checks_total", `proven="true"`); proven < deploys/2 {
		t.Errorf("the replica that was behind proved freshness %v times, want at least %d", proven, deploys/2)
	}
}
