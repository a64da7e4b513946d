package controller

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// scrape gives one metric, by the value of its only label, "" when it has none.
func scrape(t *testing.T, from *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			label := ""
			for _, pair := range metric.GetLabel() {
				label = pair.GetValue()
			}
			found[label] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	if len(found) == 0 {
		t.Fatalf("there is no metric %s", name)
	}
	return found
}

// wantWaiting checks that one workload waits, for one reason and so long, or,
// for NoReason, none.
func (h *house) wantWaiting(t *testing.T, why reason.Reason, seconds float64) {
	t.Helper()
	workloads, ages := scrape(t, h.scraped, "configstamp_waiting_workloads"), scrape(t, h.scraped, "configstamp_waiting_age_seconds")
	if len(workloads) != len(reason.Labels(reason.Waiting)) || len(ages) != len(reason.Labels(reason.Waiting)) {
		t.Errorf("%d and %d series, want one for each of %d reasons", len(workloads), len(ages), len(reason.Labels(reason.Waiting)))
	}
	wantCounts, wantAges := map[string]float64{}, map[string]float64{}
	if why != reason.NoReason {
		wantCounts[why.Label()], wantAges[why.Label()] = 1, seconds
	}
	nothing := func(_ string, value float64) bool { return value == 0 }
	maps.DeleteFunc(workloads, nothing)
	maps.DeleteFunc(ages, nothing)
	maps.DeleteFunc(wantAges, nothing)
	if !maps.Equal(workloads, wantCounts) || !maps.Equal(ages, wantAges) {
		t.Errorf("waiting: %v for %v s, want %v for %v s", workloads, ages, wantCounts, wantAges)
	}
}

func TestWaits_ForWhat(t *testing.T) {
	for want, settings := range map[reason.Reason][]string{
		reason.Paused:            {"pause", "true"},
		reason.OutsideWindow:     {"window", "22:00-23:00 UTC"},
		reason.TooSoon:           {"min-interval", "1h"},
		reason.ObserveMode:       {"mode", "observe"},
		reason.UnreadableSetting: {"window", "some day"},
		reason.MissingSource:     nil,
		reason.Retry:             nil,
		reason.TooLarge:          nil,
		reason.Blocked:           nil,
		reason.NoReason:          nil,
	} {
		t.Run(want.String(), func(t *testing.T) {
			c := newCluster(t)
			c.write("c", map[string]string{"k": "1"})
			c.write("other", map[string]string{"k": "1"})
			d := c.deploy("d", "c", "other")
			c.objects[d]["status"] = map[string]any{"conditions": []any{
				map[string]any{"type": "Progressing", "lastUpdateTime": "2026-05-31T23:40:00Z"},
			}}
			h := adopted(t, c)
			for h.queue.Len() > 0 {
				h.next(t.Context())
			}
			h.happened()
			h.wantWaiting(t, reason.NoReason, 0)
			c.annotate(d, settings...)
			h.see(t, d)
			c.write("c", map[string]string{"k": "2"})
			switch want {
			case reason.MissingSource:
				c.contents[configMap("other")] = nil
			case reason.Retry:
				c.fail["d"] = 2
			case reason.TooLarge:
				c.oversize = tooLarge()
			case reason.Blocked:
				c.rider, c.guarded = "was here", true
			}
			h.rest()
			look := func() {
				t.Helper()
				h.queue.Add(d)
				h.next(t.Context())
			}
			look()
			h.wantWaiting(t, want, 0)
			h.clock.Step(time.Minute)
			look() // looking again does not make it younger
			h.wantWaiting(t, want, 60)
			if h.clock.Step(23 * time.Hour); want == reason.Paused || want == reason.ObserveMode || want == reason.UnreadableSetting {
				c.annotate(d, settings[0], map[reason.Reason]string{reason.Paused: "false", reason.ObserveMode: "restart", reason.UnreadableSetting: "00:00-23:59 UTC"}[want])
				h.see(t, d)
			}
			if want == reason.MissingSource {
				c.write("other", map[string]string{"k": "1"})
			}
			c.oversize, c.rider = "", ""
			if want == reason.OutsideWindow { // 23:01 by now
				h.clock.Step(23*time.Hour + 10*time.Minute)
			}
			look()
			h.wantWaiting(t, reason.NoReason, 0)
			if !c.stampedTrue(d) {
				t.Error("it has not rolled in the end: the test shows nothing")
			}
		})
	}
}

func TestWaits_NobodyWithoutAnythingDue(t *testing.T) {
	for sentence, then := range map[string]func(c *cluster){
		"it is opted out":         func(c *cluster) { c.optedOut = true },
		"the content is put back": func(c *cluster) { c.write("c", map[string]string{"k": "1"}) },
		"the API server does not know it": func(c *cluster) {
			c.settings = map[string]string{"configstamp.dev/pause": "false"} // it is asked for, then
			c.gone = true
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newCluster(t)
			c.settings = map[string]string{"configstamp.dev/pause": "true"}
			c.write("c", map[string]string{"k": "1"})
			d := c.deploy("d", "c")
			h := adopted(t, c)
			c.write("c", map[string]string{"k": "2"})
			h.rest()
			h.mustSync(t, d)
			h.wantWaiting(t, reason.Paused, 0)
			then(c)
			h.mustSync(t, d)
			h.wantWaiting(t, reason.NoReason, 0)
		})
	}
}

func TestWaits_ThoseWhoWaitForOthersAreCounted(t *testing.T) {
	w, at := fleet(t, 20)
	w.edit(at, w.newContent())
	w.pass(4 * time.Second) // one rolls
	if got := w.controller.waits.Tally(); got[reason.Turn.Label()].Count != 19 {
		t.Errorf("waiting: %v, want 19 for their turn", got)
	}
	w.pass(10 * time.Minute)
	if got := w.controller.waits.Tally(); len(got) != 0 {
		t.Errorf("waiting: %v, want none", got)
	}
	w.spoil(at)
	w.pass(10 * time.Minute)
	if got := w.controller.waits.Tally(); got[reason.Halted.Label()].Count != 19 || len(got) != 1 {
		t.Errorf("waiting: %v, want 19 for the halt", got)
	}
}

func TestWaits_ARefusalIsCountedAndWaitsForItsRetry(t *testing.T) {
	w, at := fleet(t, 1, func(_ int, app *simulatedApp) { app.refused = 1 << 30 })
	w.edit(at, w.newContent())
	w.pass(10 * time.Minute)
	if got := w.controller.waits.Tally(); got[reason.Retry.Label()].Count != 1 || len(got) != 1 || w.clock.Since(got[reason.Retry.Label()].Since) < 9*time.Minute {
		t.Errorf("waiting: %v, want one for the next retry, since it was refused first", got)
	}
	if got := testutil.ToFloat64(w.controller.metrics.readmissions.WithLabelValues(rolling, reason.Refused.Label())); got < 5 {
		t.Errorf("%v refusals counted", got)
	}
	for _, said := range w.said {
		if said.reason == reason.Turn.Event() {
			t.Errorf("it had its turn, and is said to wait for it: %s", said.text)
		}
	}
	w.apps[w.names[0]].refused = 0
	w.pass(2 * time.Minute)
	if got := w.controller.waits.Tally(); len(got) != 0 {
		t.Errorf("waiting: %v, want none", got)
	}
}

// Who is tried again now and then, as another webhook would ride along, has waited
// for that since the first try.
func TestWaits_ABlockedRollSinceItsFirstTry(t *testing.T) {
	w, at := fleet(t, 1, func(_ int, app *simulatedApp) { app.refused = 1 << 30 })
	w.refusal = byOurPolicy("configstamp: blocked: spec.paused: x")
	w.edit(at, w.newContent())
	w.pass(25 * time.Minute)
	if w.patches < 3 {
		t.Fatalf("%d patches: it was not tried again, and the test shows nothing", w.patches)
	}
	if got := w.controller.waits.Tally(); got[reason.Blocked.Label()].Count != 1 || len(got) != 1 || w.clock.Since(got[reason.Blocked.Label()].Since) < 24*time.Minute {
		t.Errorf("waiting: %v at %s, want one that is blocked since the first try", got, w.clock.Now())
	}
	w.apps[w.names[0]].refused = 0
	w.pass(10 * time.Minute)
	if got := w.controller.waits.Tally(); len(got) != 0 {
		t.Errorf("waiting: %v, want none", got)
	}
}

// A retry that nobody needs any more is forgotten, whether it is certain that what was
// asked for has not come or not.
func TestWaits_ARetryThatIsNotNeededIsForgotten(t *testing.T) {
	for sentence, then := range map[string]func(w *world, app *simulatedApp, good *checksum.Content){
		"the content is put back": func(w *world, app *simulatedApp, good *checksum.Content) {
			w.edit(rollout.SourceRef{Namespace: "shop", Source: app.sources[0]}, good)
		},
		"a person pauses it": func(w *world, app *simulatedApp, _ *checksum.Content) {
			app.settings = map[string]string{"configstamp.dev/pause": "true"}
			app.version++
			w.see(app.ref)
		},
		"the manifest is mended, and stamped with that": func(w *world, app *simulatedApp, _ *checksum.Content) {
			w.rolled(app)
			w.see(app.ref)
		},
	} {
		for about, refusal := range map[string]error{"refused": errDenied, "nobody knows": errUncertain} {
			t.Run(sentence+", "+about, func(t *testing.T) {
				w, at := fleet(t, 1, func(_ int, app *simulatedApp) { app.refused = 1 << 30 })
				w.refusal = refusal
				app, good := w.apps[w.names[0]], w.contents[at]
				w.edit(at, w.newContent())
				for w.pass(10 * time.Minute); !w.controller.asks(app.ref, (*rollout.Planner).Again); {
					w.pass(time.Second) // until just after a try
				}
				then(w, app, good)
				app.refused = 0
				w.pass(5 * time.Minute)
				if got := w.controller.waits.Tally(); got[reason.Retry.Label()].Count != 0 || w.controller.asks(app.ref, (*rollout.Planner).Again) || w.queue.NumRequeues(app.ref) > 0 {
					t.Errorf("waiting: %v, %d retries, %d tries of its queue; want none", got, map[bool]int{true: 1}[w.controller.asks(app.ref, (*rollout.Planner).Again)], w.queue.NumRequeues(app.ref))
				}
			})
		}
	}
}

func TestMetrics_TheQueueTellsHowLongItsFirstHasWaited(t *testing.T) {
	c := newCluster(t)
	first, second := c.deploy("first"), c.deploy("second")
	h := newHouse(t, c)
	for h.queue.Len() > 0 {
		h.next(t.Context())
	}
	elsewhere := first
	elsewhere.Namespace = "elsewhere"
	for _, ref := range []workload.Ref{first, second, elsewhere} {
		h.queue.Add(ref)
		h.clock.Step(10 * time.Second)
	}
	want := func(seconds float64) {
		t.Helper()
		if got := scrape(t, h.scraped, "configstamp_queue_age_seconds")[""]; got != seconds {
			t.Errorf("the first has waited for %v s, want %v", got, seconds)
		}
	}
	want(0) // it does not lead
	h.metrics.leads.Store(true)
	want(30)
	h.next(t.Context()) // the first
	want(20)
	h.next(t.Context()) // elsewhere, as namespaces take turns
	want(20)
	h.next(t.Context())
	want(0)
}

func TestRun_TheWatchThatHasBeenSilentLongestCounts(t *testing.T) {
	h := newHouse(t, newCluster(t))
	quiet, busy := &workloads{Clock: clock.RealClock{}}, &workloads{Clock: clock.RealClock{}}
	h.watches = []watch{{store: busy}, {store: quiet}}
	for _, store := range []*workloads{quiet, busy} {
		if !h.LastProgress().IsZero() {
			t.Error("one of the watches has told nothing yet")
		}
		_ = store.Bookmark("1")
	}
	if last := h.LastProgress(); !last.Equal(quiet.Progress.Last()) {
		t.Errorf("last progress %s, want that of the first", last)
	}
}
