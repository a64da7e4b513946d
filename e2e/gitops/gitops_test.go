package gitops

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

type rolls = harness.Rolls

// manifest is what Git holds.
const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
spec:
  replicas: 1
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: app
        image: registry.example/app:1
        envFrom: [{configMapRef: {name: c}}]
`

// each runs a test for each tool, in a namespace of its own.
func each(t *testing.T, space func(t testing.TB) *harness.Space, test func(t *testing.T, s *harness.Space, by tool)) {
	for _, name := range slices.Sorted(maps.Keys(tools())) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := space(t)
			s.Set("configmap/c", "k", "1")
			test(t, s, tools()[name](s))
		})
	}
}

func wantNoDrift(t *testing.T, by tool, when string) {
	t.Helper()
	if drift := by.drift(t, manifest); drift != "" {
		t.Errorf("%s: out of sync in %s", when, drift)
	}
}

func wantStamp(t *testing.T, s *harness.Space) {
	t.Helper()
	if got, want := s.Stamp("deployment/d", "configmap/c"), s.Digest("configmap/c"); got != want {
		t.Errorf("the stamp is %q, want %q", got, want)
	}
}

// The usual life: nothing of ours is ever out of sync, and a tool that heals by
// itself takes nothing back.
func TestStampsAreNoDrift(t *testing.T) {
	t.Parallel()
	each(t, run.Space, func(t *testing.T, s *harness.Space, by tool) {
		by.sync(t, manifest)
		before := s.Settled("deployment/d")
		wantStamp(t, s)
		wantNoDrift(t, by, "after the first sync")

		s.Set("configmap/c", "k", "2")
		s.WantRolls(before, rolls{"deployment/d": 1})
		wantNoDrift(t, by, "after a rollout")
		before = s.Counts()
		for range 3 {
			by.sync(t, manifest)
		}
		s.Unchanged(before)
		wantStamp(t, s)
		wantNoDrift(t, by, "after more syncs")
	})
}

// A workload that was there before its namespace was labelled.
func TestBaselinesAreNoDrift(t *testing.T) {
	t.Parallel()
	each(t, run.PlainSpace, func(t *testing.T, s *harness.Space, by tool) {
		by.sync(t, manifest)
		before := s.Settled("deployment/d")
		s.Label("enabled")
		s.Eventually("waiting for the baseline", func() error {
			if got, want := harness.Baseline(s.Get("deployment/d"))["configmap/c"], s.Digest("configmap/c"); got != want {
				return fmt.Errorf("the baseline is %q, want %q", got, want)
			}
			return nil
		})
		wantNoDrift(t, by, "with a baseline")
		by.sync(t, manifest)
		s.Unchanged(before)
		wantNoDrift(t, by, "after another sync")
		s.Set("configmap/c", "k", "2")
		s.WantRolls(before, rolls{"deployment/d": 1})
		wantNoDrift(t, by, "after a rollout")
	})
}

// While a change waits, neither a comparison nor a sync rolls it early or loses it.
func TestSyncsWhileAChangeWaits(t *testing.T) {
	t.Parallel()
	each(t, run.Space, func(t *testing.T, s *harness.Space, by tool) {
		by.sync(t, manifest)
		before := s.Settled("deployment/d")
		s.SetPolicy("namespace", map[string]string{"pause": "true"})
		s.Quiet() // every process has learnt of it
		s.Set("configmap/c", "k", "2")
		s.WantNote("deployment/d", "RolloutHeld")
		wantNoDrift(t, by, "while the change waits")
		by.sync(t, manifest)
		s.Unchanged(before)
		wantNoDrift(t, by, "after another sync")
		s.DropPolicy("namespace", map[string]string{"pause": "true"})
		s.WantRolls(before, rolls{"deployment/d": 1})
		wantStamp(t, s)
	})
}

// What somebody changes by hand is seen, and healed by one rollout, with true
// stamps.
func TestDriftIsSeenAndHealed(t *testing.T) {
	t.Parallel()
	each(t, run.Space, func(t *testing.T, s *harness.Space, by tool) {
		by.sync(t, manifest)
		before := s.Settled("deployment/d")
		s.Kubectl("set", "image", "deployment/d", "app=registry.example/app:by-hand")
		s.WantRolls(before, rolls{"deployment/d": 1})
		before = s.Counts()
		wantOnlyTheImage(t, by, manifest)
		by.sync(t, manifest)
		s.WantRollsBack(before, rolls{"deployment/d": 1})
		wantNoDrift(t, by, "after it was healed")
		wantStamp(t, s)

		// A new version in Git is seen the same way, and rolls once.
		newer := strings.Replace(manifest, "app:1", "app:2", 1)
		before = s.Counts()
		wantOnlyTheImage(t, by, newer)
		by.sync(t, newer)
		s.WantRolls(before, rolls{"deployment/d": 1})
		if drift := by.drift(t, newer); drift != "" {
			t.Errorf("after the new version: out of sync in %s", drift)
		}
	})
}

func wantOnlyTheImage(t *testing.T, by tool, manifest string) {
	t.Helper()
	drift := by.drift(t, manifest)
	if !strings.Contains(drift, "image") {
		t.Errorf("another image is not seen: %q", drift)
	}
	if strings.Contains(drift, "configstamp") {
		t.Errorf("ours is seen beside the image: %s", drift)
	}
}

// An undo carries stamps of its own, so that kubectl owns them in managedFields from
// then on. Nobody makes anything of that.
func TestStampsThatAnUndoCarries(t *testing.T) {
	t.Parallel()
	each(t, run.Space, func(t *testing.T, s *harness.Space, by tool) {
		by.sync(t, manifest)
		before := s.Settled("deployment/d")
		s.Set("configmap/c", "k", "2")
		s.WantRolls(before, rolls{"deployment/d": 1})
		before = s.Counts()
		s.Kubectl("rollout", "undo", "deployment/d")
		if owned := fmt.Sprint(s.Get("deployment/d").Object["metadata"]); !strings.Contains(owned, "f:configmap.configstamp.dev/c") {
			t.Error("nobody owns the stamp: this proves nothing")
		}
		wantNoDrift(t, by, "after an undo")
		by.sync(t, manifest)
		by.sync(t, manifest)
		s.Unchanged(before)
		wantNoDrift(t, by, "after more syncs")
		wantStamp(t, s)
		s.Set("configmap/c", "k", "3")
		s.WantRolls(before, rolls{"deployment/d": 1})
		wantStamp(t, s)
	})
}

// Our annotations in Git, as in a manifest that was exported from a cluster, are not
// believed, and Git keeps saying them: whoever compares without asking the server
// is out of sync for ever. No sync restarts anything by it.
func TestStampsInGitAreNotBelieved(t *testing.T) {
	t.Parallel()
	exported := strings.Replace(manifest, "    metadata: {labels: {app: d}}",
		"    metadata: {labels: {app: d}, annotations: {configmap.configstamp.dev/c: \"v1:00000000:all:00000000000000000000000000000000\"}}", 1)
	each(t, run.Space, func(t *testing.T, s *harness.Space, by tool) {
		by.sync(t, exported)
		before := s.Settled("deployment/d")
		wantStamp(t, s)
		if drift := by.drift(t, exported); (drift == "") != by.asks() {
			t.Errorf("out of sync in %q, and it asks the server: %t", drift, by.asks())
		}
		for range 3 {
			by.sync(t, exported)
		}
		s.Unchanged(before)
		wantStamp(t, s)
		// Taken out of Git, they are left alone.
		by.sync(t, manifest)
		s.Unchanged(before)
		wantStamp(t, s)
		wantNoDrift(t, by, "without them")
	})
}
