package neighbours

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Nobody writes while it compares, again and again, and it finds no drift.
func helmQuiet(t *testing.T, h *helmed) {
	before, since, log := h.Counts(), time.Now(), h.log(t)
	time.Sleep(6 * helmInterval)
	h.Unchanged(before)
	asked := map[string]int{}
	for _, q := range h.asked(t, since) {
		if q.dry() && q.Agent == filepath.Base(*helmProgram) {
			asked[q.object()]++
		} else if q.writes() {
			t.Errorf("while nobody changed anything: %s %s by %s (%s)", q.Verb, q.object(), q.Agent, q.URI)
		}
	}
	t.Logf("dry runs in %s: %v", time.Since(since).Round(time.Second), asked)
	if now := h.log(t)[len(log):]; strings.Count(now, helmUndrifted) < 5 || strings.Contains(now, helmDrifted) || len(asked) != 3 {
		t.Errorf("want at least five comparisons of three objects, and no drift:\n%s", now)
	}
}

// An upgrade of the ConfigMap alone, one that changes nothing, and one of ConfigMap and templates.
func helmUpgrades(t *testing.T, h *helmed) {
	before := h.Counts()
	h.upgrade(t, map[string]any{"setting": "good-1"})
	h.WantRolls(before, helmBoth)
	before = h.Counts()
	h.upgrade(t, map[string]any{"unused": "1"})
	h.Unchanged(before)
	h.upgrade(t, map[string]any{"setting": "good-2", "version": "2"})
	h.WantRolls(before, helmBoth)
}

// What has rolled to the content of an edit by hand rolls back, and the rest never rolls.
func helmDrift(t *testing.T, h *helmed) {
	h.actions["correction"]++
	before, since := h.Counts(), time.Now()
	h.Edit("configmap/setting", "SETTING", "good-by-hand")
	h.wantSetting(t, "good-2")
	drifted := time.Since(since)
	h.wantTruth(t, helmUses...)
	h.Quiet()
	for workload, after := range h.Counts() {
		times := after.Rolls - before[workload].Rolls
		t.Logf("the ConfigMap was otherwise for %s: %s rolled %d times", drifted.Round(time.Second/10), workload, times)
		if times != 0 && times != 2 {
			t.Errorf("%s rolled %d times for an edit that was taken back", workload, times)
		}
	}
}

// wantSetting waits until the ConfigMap says so.
func (h *helmed) wantSetting(t *testing.T, want string) {
	t.Helper()
	eventually(t, "the setting is "+want, time.Minute, func() error {
		if has, _, _ := unstructured.NestedString(h.Get("configmap/setting").Object, "data", "SETTING"); has != want {
			return fmt.Errorf("it is %s", has)
		}
		return nil
	}, h.helm.tail)
}

func helmDriftTemplate(t *testing.T, h *helmed) {
	h.actions["correction"]++
	before := h.Counts()
	kubectl(t, "--namespace="+h.Namespace, "set", "env", "deployment/web", "VERSION=by-hand")
	h.WantRollsBack(before, harness.Rolls{"deployment/web": 2})
}

// Neither a comparison nor an upgrade takes a pause back.
func helmPause(t *testing.T, h *helmed) {
	before := h.Counts()
	h.configstamp("pause", "deployment/web", "-n", h.Namespace)
	time.Sleep(2 * helmInterval)
	h.upgrade(t, map[string]any{"setting": "good-3"})
	h.WantRolls(before, harness.Rolls{"deployment/worker": 1})
	h.configstamp("unpause", "deployment/web", "-n", h.Namespace)
	h.WantRolls(before, helmBoth)
}

// The release is ready before a workload rolls, and stays so: only the halt helps.
func helmHalt(t *testing.T, h *helmed) {
	before := h.Counts()
	h.upgrade(t, map[string]any{"setting": "bad"})
	failed := ""
	h.Eventually("one workload fails", func() error {
		for workload := range helmBoth {
			if strings.Contains(strings.Join(h.Notes(workload), "\n"), "RolloutFailed") {
				failed = workload
				return nil
			}
		}
		return errors.New("no event RolloutFailed")
	})
	time.Sleep(helmTimeout + 2*helmInterval)
	h.WantRolls(before, harness.Rolls{failed: 1})
	t.Logf("%s has failed, and the release says: %s", failed, h.release(t, `{.status.conditions[?(@.type=="Ready")].message}`))
	h.upgrade(t, map[string]any{"setting": "good-3"})
	h.WantRollsBack(before, harness.Rolls{failed: 2})
}

// An upgrade of ConfigMap and templates does not become healthy, so it is rolled back.
func helmRollback(t *testing.T, h *helmed) {
	before := h.Counts()
	h.actions["upgrade"]++
	h.actions["rollback"]++
	h.set(t, map[string]any{"setting": "bad", "version": "3"}, "Remediated")
	h.wantSetting(t, "good-3")
	h.WantRollsBack(before, harness.Rolls{"deployment/web": 2, "deployment/worker": 2})
	h.wantTruth(t, helmUses...)
	before = h.Counts()
	h.upgrade(t, map[string]any{"setting": "good-4"})
	h.WantRolls(before, helmBoth)
}
