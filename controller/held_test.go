package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/configstamp/configstamp/internal/workload"
)

// The house's clock stands at 2026-06-01 00:00 UTC, a Monday, and rests for 22 s.
func TestHeld_BySettings(t *testing.T) {
	const rolled = "Normal ConfigChanged configmap/c changed: rolling out"
	for sentence, c := range map[string]struct {
		workload, namespace []string
		wait                time.Duration
		says                string
		then                time.Duration // after which it rolls; 0: it has rolled
		lift                bool          // the settings go then
	}{
		"nothing holds it":                            {says: rolled},
		"paused":                                      {workload: []string{"pause", "true"}, says: "Normal RolloutHeld configmap/c changed, and this workload rolls out later: configstamp.dev/pause", then: time.Hour, lift: true},
		"paused with its namespace":                   {namespace: []string{"pause", "true"}, says: "Normal RolloutHeld configmap/c changed, and this workload rolls out later: configstamp.dev/pause on the Namespace", then: time.Hour, lift: true},
		"not paused with its namespace":               {workload: []string{"pause", "false"}, namespace: []string{"pause", "true"}, says: rolled},
		"paused until later":                          {workload: []string{"pause", "2026-06-01T01:00:00Z"}, wait: time.Hour - 22*time.Second, says: "Normal RolloutHeld configmap/c changed, and this workload rolls out later: configstamp.dev/pause holds it until 2026-06-01T01:00:00Z", then: time.Hour},
		"outside its window":                          {workload: []string{"window", "22:00-23:00 Europe/Berlin"}, wait: 20*time.Hour - 22*time.Second, says: "Normal RolloutHeld configmap/c changed, and this workload rolls out later: configstamp.dev/window holds it until 2026-06-01T20:00:00Z", then: 20 * time.Hour},
		"in its window":                               {workload: []string{"window", "Mon 00:00-01:00 UTC"}, says: rolled},
		"too soon after the newest revision":          {workload: []string{"min-interval", "1h"}, wait: 40*time.Minute - 22*time.Second, says: "Normal RolloutHeld configmap/c changed, and this workload rolls out later: configstamp.dev/min-interval holds it until 2026-06-01T00:40:00Z", then: 40 * time.Minute},
		"observed":                                    {workload: []string{"mode", "observe"}, says: "Normal WouldRollOut configmap/c changed: this workload would roll out, but its mode is observe", then: time.Hour, lift: true},
		"a setting that nobody can read":              {workload: []string{"window", "Mon-Fry 22:00-04:00 Europe/Berlin"}, says: `Warning PolicyUnreadable configstamp.dev/window: "Mon-Fry 22:00-04:00 Europe/Berlin": "Fry" is not a day: want Mon, Tue, Wed, Thu, Fri, Sat or Sun; nothing restarts until it is fixed`, then: time.Hour, lift: true},
		"one of the namespace that nobody can read":   {namespace: []string{"mode", "?"}, says: `Warning PolicyUnreadable configstamp.dev/mode on the Namespace: "?": want restart or observe; nothing restarts until it is fixed`, then: time.Hour, lift: true},
		"the workload overrules what nobody can read": {workload: []string{"mode", "restart"}, namespace: []string{"mode", "?"}, says: rolled},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := newCluster(t)
			cluster.write("c", map[string]string{"k": "1"})
			d := cluster.deploy("d", "c")
			cluster.objects[d]["status"] = map[string]any{"conditions": []any{
				map[string]any{"type": "Available", "lastUpdateTime": "2026-05-31T23:59:00Z"},
				map[string]any{"type": "Progressing", "lastUpdateTime": "2026-05-31T23:40:00Z"},
			}}
			h := adopted(t, cluster)
			cluster.annotate(d, c.workload...)
			cluster.settings = map[string]string{}
			for i := 0; i < len(c.namespace); i += 2 {
				cluster.settings["configstamp.dev/"+c.namespace[i]] = c.namespace[i+1]
			}
			h.see(t, d)
			h.index.Reconsider("shop")
			cluster.write("c", map[string]string{"k": "2"})
			h.rest()
			for range 3 { // people are told once
				if wait := h.mustSync(t, d); wait != c.wait {
					t.Errorf("looks again after %s, want %s", wait, c.wait)
				}
			}
			calls, said := h.happened()
			if rolls := slices.Contains(calls, "configstamp d"); rolls != (c.then == 0) {
				t.Errorf("calls %v", calls)
			}
			if !slices.Equal(said, []string{c.says}) {
				t.Errorf("said %q, want %q", said, c.says)
			}
			if c.then == 0 {
				return
			}
			h.clock.Step(c.then)
			if c.lift {
				for i := 0; i < len(c.workload); i += 2 {
					delete(cluster.objects[d]["metadata"].(map[string]any)["annotations"].(map[string]any), "configstamp.dev/"+c.workload[i])
				}
				cluster.settings = nil
				cluster.annotate(d)
				h.see(t, d)
			}
			h.mustSync(t, d)
			if calls, said := h.happened(); !slices.Contains(calls, "configstamp d") || !slices.Contains(said, rolled) {
				t.Errorf("afterwards it was not rolled: %v %v", calls, said)
			}
			h.mustSync(t, d)
			if calls, _ := h.happened(); len(calls) > 0 {
				t.Errorf("more than once: %v", calls)
			}
		})
	}
}

// observing is a Deployment that uses c, and only tells what it would roll for.
func observing(t *testing.T) (*cluster, *house, workload.Ref) {
	t.Helper()
	c := newCluster(t)
	c.write("c", map[string]string{"k": "1"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	c.annotate(d, "mode", "observe")
	h.see(t, d)
	return c, h, d
}

func TestObserve_TellsOfEachChange(t *testing.T) {
	c, h, d := observing(t)
	for i := range 3 {
		c.write("c", map[string]string{"k": fmt.Sprint("new ", i)})
		h.rest()
		h.mustSync(t, d)
		h.mustSync(t, d)
		if _, said := h.happened(); len(said) != 1 {
			t.Errorf("change %d: said %q", i, said)
		}
	}
}

// What is the same content is told of once, though the store has read it anew, as
// after a gap of its watch, or the source has another setting.
func TestObserve_TellsOnceOfWhatIsReadAgain(t *testing.T) {
	c, h, d := observing(t)
	for range 3 {
		c.write("c", map[string]string{"k": "2"})
		h.rest()
		h.mustSync(t, d)
	}
	if _, said := h.happened(); len(said) != 1 || testutil.ToFloat64(h.metrics.observed) != 1 {
		t.Errorf("said %q and counted %v, want one of each", said, testutil.ToFloat64(h.metrics.observed))
	}
}

// A roll counts for the pace of its workload, though the answer to it was lost.
func TestHeld_ARollWhoseAnswerWasLostBeginsAnInterval(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "1"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	c.write("c", map[string]string{"k": "2"})
	c.lose = true
	h.rest()
	if _, err := h.sync(t.Context(), d); err == nil {
		t.Fatal("the answer was not lost: the test shows nothing")
	}
	c.annotate(d, "min-interval", "1h")
	h.see(t, d)
	h.mustSync(t, d)
	c.write("c", map[string]string{"k": "3"})
	h.rest()
	h.happened()
	if wait := h.mustSync(t, d); wait != time.Hour-11*settle {
		t.Errorf("looks again after %s", wait)
	}
	if calls, _ := h.happened(); len(calls) > 0 {
		t.Errorf("calls: %v, want none within the interval", calls)
	}
}

// A source that somebody writes all the time rolls what uses it ever more slowly.
func TestPace_FrequentEditsAreSlowedDown(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "0"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	start, told := h.clock.Now(), 0
	var rolls []time.Duration
	for i := 0; h.clock.Since(start) < 6*time.Hour; i++ {
		c.write("c", map[string]string{"k": fmt.Sprint(i)})
		h.Changed("shop", configMap("c"))
		h.rest()
		h.mustSync(t, d)
		calls, said := h.happened()
		if slices.Contains(calls, "configstamp d") {
			rolls = append(rolls, h.clock.Since(start))
		}
		for _, text := range said {
			if strings.HasPrefix(text, "Warning RolloutsSlowedDown configmap/c changed again and again: ") {
				told++
			}
		}
	}
	if len(rolls) < 8 || len(rolls) > 18 {
		t.Fatalf("%d rolls in six hours: %v", len(rolls), rolls)
	}
	for i := 3; i < len(rolls); i++ {
		least := min(2*10*settle<<(i-3), time.Hour)
		if gap := rolls[i] - rolls[i-1]; gap < least || gap > least+12*settle {
			t.Errorf("roll %d came after %s, want about %s", i+1, gap, least)
		}
	}
	if told == 0 {
		t.Error("nobody was told")
	}
	// Once it is calm for long, it starts afresh.
	h.clock.Step(3 * time.Hour)
	for i := range 3 {
		c.write("c", map[string]string{"k": fmt.Sprint("calm ", i)})
		h.rest()
		h.mustSync(t, d)
		if calls, _ := h.happened(); !slices.Contains(calls, "configstamp d") {
			t.Errorf("change %d after the calm did not roll: %v", i+1, calls)
		}
	}
}

// rollOften has a workload roll for some sources, one after another, each at once.
func (h *house) rollOften(t *testing.T, ref workload.Ref, sources ...string) {
	t.Helper()
	for i, name := range sources {
		h.cluster.write(name, map[string]string{"k": fmt.Sprint("new ", i)})
		h.rest()
		h.mustSync(t, ref)
		if calls, _ := h.happened(); !slices.Contains(calls, "configstamp "+ref.Name) {
			t.Fatalf("change %d did not roll: %v", i+1, calls)
		}
	}
}

// Who slows a workload down is who has changed again and again, and not who changes
// next.
func TestPace_BlamesTheSourceThatChangesAgainAndAgain(t *testing.T) {
	for sentence, test := range map[string]struct {
		rolls []string // what each roll is for
		next  string   // what changes then
		blame string   // who is to blame, as the workload's event names them
		hot   []string // which sources are told of
	}{
		"one changes all the time, another once":     {[]string{"c1", "c1", "c1"}, "c2", "configmap/c1", []string{"c1"}},
		"one changes all the time, and goes on":      {[]string{"c1", "c1", "c1"}, "c1", "configmap/c1", []string{"c1"}},
		"one changes most of the time":               {[]string{"c1", "c2", "c1"}, "c2", "configmap/c1", []string{"c1"}},
		"each has changed once":                      {[]string{"c1", "c2", "c3"}, "c1", "its sources", nil},
		"each has changed once, and another follows": {[]string{"c1", "c2", "c3"}, "c4", "its sources", nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newCluster(t)
			all := []string{"c1", "c2", "c3", "c4"}
			for _, name := range all {
				c.write(name, map[string]string{"k": "old"})
			}
			d := c.deploy("d", all...)
			h := adopted(t, c)
			h.rollOften(t, d, test.rolls...)
			c.write(test.next, map[string]string{"k": "newest"})
			h.rest()
			h.mustSync(t, d)
			calls, said := h.happened()
			if len(calls) > 0 {
				t.Errorf("calls %q, want none", calls)
			}
			var hot []string
			blamed := false
			for _, text := range said {
				blamed = blamed || strings.HasPrefix(text, "Warning RolloutsSlowedDown "+test.blame+" changed again and again: ")
				if strings.HasPrefix(text, "Warning SourceChangesOften ") {
					hot = append(hot, text)
				}
			}
			if !blamed || len(hot) != len(test.hot) {
				t.Errorf("events %q, want %s blamed, and told of %v", said, test.blame, test.hot)
			}
		})
	}
}

// A workload that is made again under its name has not rolled yet.
func TestPace_AWorkloadMadeAgainInheritsNoPause(t *testing.T) {
	for sentence, notice := range map[string]func(h *house, d workload.Ref){
		"its deletion was seen": func(h *house, d workload.Ref) {
			h.index.Told(d, nil)
			h.mustSync(t, d)
		},
		"its deletion was missed": func(*house, workload.Ref) {},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newCluster(t)
			c.write("c", map[string]string{"k": "old"})
			d := c.deploy("d", "c")
			h := adopted(t, c)
			h.rollOften(t, d, "c", "c", "c")
			if h.plan.LastRoll(d, "uid-d").IsZero() {
				t.Fatal("it has not rolled, and the test shows nothing")
			}
			notice(h, d)
			metadata := c.objects[d]["metadata"].(map[string]any)
			metadata["uid"], metadata["resourceVersion"] = "uid-again", "100"
			h.see(t, d)
			if last := h.plan.LastRoll(d, "uid-again"); !last.IsZero() {
				t.Errorf("its newest revision is said to be of %s, when its predecessor rolled", last)
			}
			c.write("c", map[string]string{"k": "newest"})
			h.rest()
			h.mustSync(t, d)
			if calls, said := h.happened(); !slices.Contains(calls, "configstamp d") {
				t.Errorf("calls %q, events %q: want a roll", calls, said)
			}
		})
	}
}

func TestPace_AnIntervalOfOnesOwnIsNotSlowedDown(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "0"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	c.annotate(d, "min-interval", "1s")
	h.see(t, d)
	for i := range 10 {
		c.write("c", map[string]string{"k": fmt.Sprint("new ", i)})
		h.rest()
		h.mustSync(t, d)
		if calls, _ := h.happened(); !slices.Contains(calls, "configstamp d") {
			t.Fatalf("change %d did not roll: %v", i+1, calls)
		}
	}
}
