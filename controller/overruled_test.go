package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// ordered is a person's order: it leaves no trace but the stamps.
func (h *house) ordered(t *testing.T, user workload.Ref) {
	t.Helper()
	h.cluster.mu.Lock()
	h.cluster.admit(user, checksum.RollingManager)
	h.cluster.mu.Unlock()
	h.see(t, user)
}

// restarted is kubectl rollout restart: the template is stamped, and says who wrote it.
func (h *house) restarted(t *testing.T, user workload.Ref) {
	t.Helper()
	metadata := h.cluster.objects[user]["metadata"].(map[string]any)
	metadata["managedFields"] = append(metadata["managedFields"].([]any), map[string]any{"manager": "kubectl-rollout", "time": h.clock.Now().Format(time.RFC3339),
		"fieldsV1": map[string]any{"f:spec": map[string]any{"f:template": map[string]any{}}}})
	h.ordered(t, user)
}

func TestOverruled_IsTold(t *testing.T) {
	const order, restart = "somebody ordered it (by a patch with the field manager configstamp)", `its template was changed (by the field manager "kubectl-rollout")`
	for sentence, test := range map[string]struct {
		setting []string
		written bool // it is known when the source was
		by      func(h *house, t *testing.T, user workload.Ref)
		says    []string
	}{
		"an order in a closed window": {[]string{"window", "22:00-23:00 UTC"}, true, (*house).ordered, texts("Normal HoldOverruled %s: rolling out, with the new content of configmap/c. "+
			"This overrules the earlier event: configmap/c changed, and this workload rolls out later: configstamp.dev/window holds it until 2026-06-01T22:00:00Z", order)},
		"an order during a pause": {[]string{"pause", "true"}, true, (*house).ordered, texts("Normal HoldOverruled %s: rolling out, with the new content of configmap/c. "+
			"This overrules the earlier event: configmap/c changed, and this workload rolls out later: configstamp.dev/pause", order)},
		"a restart during a pause": {[]string{"pause", "true"}, true, (*house).restarted, texts("Normal HoldOverruled %s: rolling out, with the new content of configmap/c. "+
			"This overrules the earlier event: configmap/c changed, and this workload rolls out later: configstamp.dev/pause", restart)},
		"a restart, of a source that does not tell when it was written": {[]string{"pause", "true"}, false, (*house).restarted, texts("Normal HoldOverruled %s: rolling out, with the new content of configmap/c. "+
			"This overrules the earlier event: configmap/c changed, and this workload rolls out later: configstamp.dev/pause", restart)},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newCluster(t)
			c.write("c", map[string]string{"k": "1"})
			d := c.deploy("d", "c")
			h := adopted(t, c)
			c.annotate(d, test.setting...)
			h.see(t, d)
			c.write("c", map[string]string{"k": "2"})
			if test.written {
				c.times[configMap("c")] = [2]time.Time{h.clock.Now()}
			}
			h.rest()
			h.mustSync(t, d)
			h.happened()
			h.clock.Step(time.Minute)
			test.by(h, t, d)
			for range 3 {
				h.mustSync(t, d)
			}
			if _, said := h.happened(); !slices.Equal(said, test.says) {
				t.Errorf("said %q, want %q", said, test.says)
			}
		})
	}
}

// Nothing is overruled where people were not told that anything is held, and by what we do.
func TestOverruled_IsNotToldOf(t *testing.T) {
	for sentence, act := range map[string]func(t *testing.T, h *house, d workload.Ref){
		"a restart while nothing waits": func(t *testing.T, h *house, d workload.Ref) {
			h.mustSync(t, d)
			h.restarted(t, d)
		},
		"an apply of the source, and of what uses it": func(t *testing.T, h *house, d workload.Ref) {
			h.cluster.write("c", map[string]string{"k": "2"})
			h.Changed("shop", configMap("c"))
			h.mustSync(t, d)
			h.restarted(t, d)
		},
		"our own roll, when the pause ends": func(t *testing.T, h *house, d workload.Ref) {
			h.cluster.write("c", map[string]string{"k": "2"})
			h.rest()
			h.mustSync(t, d)
			h.happened()
			delete(h.cluster.objects[d]["metadata"].(map[string]any)["annotations"].(map[string]any), "configstamp.dev/pause")
			h.cluster.annotate(d)
			h.see(t, d)
			h.mustSync(t, d)
		},
		"our own roll, whose answer was lost": func(t *testing.T, h *house, d workload.Ref) {
			h.cluster.write("c", map[string]string{"k": "2"})
			h.rest()
			h.mustSync(t, d)
			h.happened()
			delete(h.cluster.objects[d]["metadata"].(map[string]any)["annotations"].(map[string]any), "configstamp.dev/pause")
			h.cluster.annotate(d)
			h.see(t, d)
			h.cluster.lose = true
			if _, err := h.sync(t.Context(), d); err == nil {
				t.Error("the answer was not lost: the test shows nothing")
			}
			h.see(t, d)
		},
		"our own patch, which the API server stores late": func(t *testing.T, h *house, d workload.Ref) {
			h.cluster.write("c", map[string]string{"k": "2"})
			delete(h.cluster.objects[d]["metadata"].(map[string]any)["annotations"].(map[string]any), "configstamp.dev/pause")
			h.cluster.annotate(d)
			h.see(t, d)
			h.rest()
			h.cluster.fail["d"] = 1
			if _, err := h.sync(t.Context(), d); err == nil {
				t.Error("the patch did not fail: the test shows nothing")
			}
			h.cluster.annotate(d, "pause", "true")
			h.see(t, d)
			h.mustSync(t, d)
			if _, said := h.happened(); len(said) != 1 || !strings.HasPrefix(said[0], "Normal RolloutHeld") {
				t.Errorf("said %q: the test shows nothing", said)
			}
			h.ordered(t, d)
		},
		"looking again": func(t *testing.T, h *house, d workload.Ref) {
			h.cluster.write("c", map[string]string{"k": "2"})
			h.rest()
			h.mustSync(t, d)
		},
		"content that was put back": func(t *testing.T, h *house, d workload.Ref) {
			h.cluster.write("c", map[string]string{"k": "2"})
			h.rest()
			h.mustSync(t, d)
			h.happened()
			h.cluster.write("c", map[string]string{"k": "1"})
			h.restarted(t, d)
		},
		"a client that drops the stamps while no webhook answers": func(t *testing.T, h *house, d workload.Ref) {
			h.cluster.write("c", map[string]string{"k": "2"})
			h.rest()
			h.mustSync(t, d)
			h.happened()
			h.cluster.store(d, checksum.Records{})
			h.see(t, d)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newCluster(t)
			c.write("c", map[string]string{"k": "0"})
			d := c.deploy("d", "c")
			h := adopted(t, c)
			c.write("c", map[string]string{"k": "1"})
			h.ordered(t, d) // it has stamps
			c.annotate(d, "pause", "true")
			h.see(t, d)
			act(t, h, d)
			h.rest()
			for range 3 {
				h.mustSync(t, d)
			}
			_, said := h.happened()
			if slices.ContainsFunc(said, func(text string) bool { return strings.HasPrefix(text, "Normal HoldOverruled") }) {
				t.Errorf("said %q", said)
			}
		})
	}
}
