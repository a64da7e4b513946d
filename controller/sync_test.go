package controller

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

func TestSync_WhatIsDone(t *testing.T) {
	const recordedEvent = "Normal ConfigRecorded configmap/c is recorded as it is now: this workload rolls out when it changes"
	tests := map[string]struct {
		prepare func(t *testing.T, c *cluster) *house // by default: Deployment d, which uses c, adopted
		act     func(t *testing.T, h *house, d workload.Ref)
		wait    time.Duration
		fails   bool
		calls   []string
		events  []string
	}{
		"if everything on record is true, nothing is asked": {},
		"if nothing is on record, it is recorded after a dry run, at once": {
			prepare: func(t *testing.T, c *cluster) *house { return newHouse(t, c) },
			calls:   []string{"get d", "dry configstamp-record d", "configstamp-record d"},
			events:  texts(recordedEvent),
		},
		"if another webhook would ride along, a recording is not sent and the field is named": {
			prepare: func(t *testing.T, c *cluster) *house { c.rider = "was here"; return newHouse(t, c) },
			wait:    noHurry,
			calls:   []string{"get d", "dry configstamp-record d"},
			events: texts("Warning RecordingBlocked checksums are not recorded: configstamp's patch would let another webhook change metadata.labels as well; " +
				"to accept that and get the checksums, apply the manifest again or restart the workload"),
		},
		"if our own policy lets no other webhook ride along, a recording is not sent and the fields are named": {
			prepare: func(t *testing.T, c *cluster) *house { c.rider, c.guarded = "was here", true; return newHouse(t, c) },
			wait:    noHurry,
			calls:   []string{"get d", "dry configstamp-record d"},
			events: texts("Warning RecordingBlocked checksums are not recorded: configstamp's patch would let another webhook change metadata.labels and spec.paused as well; " +
				"to accept that and get the checksums, apply the manifest again or restart the workload"),
		},
		"if our own policy lets no other webhook ride along, nothing rolls and the fields are named": {
			act: func(_ *testing.T, h *house, _ workload.Ref) {
				h.cluster.rider, h.cluster.guarded = "was here", true
				h.cluster.write("c", map[string]string{"k": "new"})
				h.rest()
			},
			wait:  noHurry,
			calls: []string{"configstamp d"},
			events: texts("Warning RolloutBlocked configmap/c changed, but this workload does not roll out: configstamp's patch would let another webhook change metadata.labels and spec.paused as well; " +
				"to accept that and roll out, apply the manifest again or restart the workload"),
		},
		"if content changed and has settled, the workload rolls": {
			act: func(_ *testing.T, h *house, _ workload.Ref) {
				h.cluster.write("c", map[string]string{"k": "new"})
				h.rest()
			},
			calls:  []string{"configstamp d"},
			events: texts("Normal ConfigChanged configmap/c changed: rolling out"),
		},
		"if content changed a moment ago, it has to settle": {
			act: func(_ *testing.T, h *house, _ workload.Ref) {
				h.cluster.write("c", map[string]string{"k": "new"})
				h.Changed("shop", configMap("c"))
				h.clock.Step(settle / 2)
			},
			wait: settle / 2,
		},
		"if content was changed back, nothing is asked": {
			act: func(_ *testing.T, h *house, _ workload.Ref) {
				h.cluster.write("c", map[string]string{"k": "new"})
				h.Changed("shop", configMap("c"))
				h.cluster.write("c", map[string]string{"k": "old"})
				h.rest()
			},
		},
		"if a required source was deleted, nothing is asked, and people are told": {
			act:    func(_ *testing.T, h *house, _ workload.Ref) { delete(h.cluster.contents, configMap("c")); h.rest() },
			events: texts("Warning SourceMissing " + gone),
		},
		"if content changed while another required source is missing, the roll is held": {
			act: func(_ *testing.T, h *house, _ workload.Ref) {
				h.cluster.write("c", map[string]string{"k": "new"})
				delete(h.cluster.contents, configMap("c2"))
				h.rest()
			},
			prepare: func(t *testing.T, c *cluster) *house {
				c.write("c2", nil)
				c.deploy("d", "c", "c2")
				return adopted(t, c)
			},
			events: []string{"Warning SourceMissing " + strings.Replace(gone, "/c ", "/c2 ", 1),
				"Warning RolloutHeld configmap/c changed, but nothing rolls while configmap/c2 does not exist: pods cannot start without it; it will be stamped once it exists"},
		},
		"if the webhook was away, it is an error, to be tried again": {
			act: func(_ *testing.T, h *house, _ workload.Ref) {
				h.cluster.write("c", map[string]string{"k": "new"})
				h.cluster.away = true
				h.rest()
			},
			fails: true,
			calls: []string{"configstamp d"},
		},
		"if the annotations do not fit, people are told and there is no hurry": {
			act: func(_ *testing.T, h *house, _ workload.Ref) {
				h.cluster.write("c", map[string]string{"k": "new"})
				h.cluster.oversize = tooLarge()
				h.rest()
			},
			wait:   noHurry,
			calls:  []string{"configstamp d"},
			events: texts("Warning AnnotationsTooLarge checksums left out: with them the annotations would exceed 240 KiB, and the API server takes 256 KiB; remove large annotations"),
		},
		"if a webhook of a release without codes says so, it is an error, to be tried again": {
			act: func(_ *testing.T, h *house, _ workload.Ref) {
				h.cluster.write("c", map[string]string{"k": "new"})
				h.cluster.oversize = "configstamp: " + reason.TooLarge.Sentence(reason.Values{})
				h.rest()
			},
			fails: true,
			calls: []string{"configstamp d"},
		},
		"if the namespace is opted out, nothing is asked": {
			act: func(_ *testing.T, h *house, _ workload.Ref) {
				h.cluster.optedOut = true
				h.cluster.write("c", map[string]string{"k": "new"})
				h.rest()
			},
		},
		"if the namespace is being deleted, nothing is asked": {
			act: func(_ *testing.T, h *house, _ workload.Ref) {
				h.cluster.ending = true
				h.cluster.write("c", map[string]string{"k": "new"})
				h.rest()
			},
		},
		"if the workload is opted out, nothing is asked": {
			act: func(t *testing.T, h *house, d workload.Ref) {
				labels(h.cluster.objects[d])[checksum.InjectLabel] = checksum.InjectDisabled
				h.see(t, d)
				h.cluster.write("c", map[string]string{"k": "new"})
				h.rest()
			},
		},
		"if the workload alone is opted in, it rolls": {
			act: func(t *testing.T, h *house, d workload.Ref) {
				h.cluster.optedOut = true
				labels(h.cluster.objects[d])[checksum.InjectLabel] = checksum.InjectEnabled
				h.see(t, d)
				h.cluster.write("c", map[string]string{"k": "new"})
				h.rest()
			},
			calls:  []string{"configstamp d"},
			events: texts("Normal ConfigChanged configmap/c changed: rolling out"),
		},
		"if the API server refuses, it is an error, to be tried again": {
			act: func(_ *testing.T, h *house, _ workload.Ref) {
				h.cluster.write("c", map[string]string{"k": "new"})
				h.cluster.fail["d"] = 1
				h.rest()
			},
			fails: true,
			calls: []string{"configstamp d"},
		},
		"if the source was edited after the template was written, pods may be stale": {
			prepare: func(t *testing.T, c *cluster) *house {
				c.times[configMap("c")] = [2]time.Time{time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}
				return newHouse(t, c)
			},
			calls: []string{"get d", "dry configstamp-record d", "configstamp-record d"},
			events: []string{recordedEvent, "Warning ConfigMaybeStale configmap/c was edited after the newest revision of this Deployment: its pods may run older content; " +
				"kubectl rollout restart makes them read the new content"},
		},
		"if the source came after the template and was never edited, no pod is stale": {
			prepare: func(t *testing.T, c *cluster) *house {
				created := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
				c.times[configMap("c")] = [2]time.Time{created, created}
				return newHouse(t, c)
			},
			calls:  []string{"get d", "dry configstamp-record d", "configstamp-record d"},
			events: texts(recordedEvent),
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			c := newCluster(t)
			c.write("c", map[string]string{"k": "old"})
			d := c.deploy("d", "c")
			prepare := test.prepare
			if prepare == nil {
				prepare = adopted
			}
			h := prepare(t, c)
			if test.act != nil {
				test.act(t, h, d)
			}
			wait, err := h.sync(t.Context(), d)
			if (err != nil) != test.fails {
				t.Errorf("error: %v", err)
			}
			if wait != test.wait {
				t.Errorf("wait %s, want %s", wait, test.wait)
			}
			calls, said := h.happened()
			if diff := cmp.Diff(test.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.events, said); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRoll_IsNotRepeatedBeforeTheWatchCatchesUp(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	before := h.arrived(t, d.Kind, c.body(d))
	c.write("c", map[string]string{"k": "new"})
	h.rest()
	h.mustSync(t, d)
	// A watch event from before the roll comes late.
	if err := h.fills(d.Kind, "").Update(before); err != nil {
		t.Fatal(err)
	}
	h.mustSync(t, d)
	if calls, _ := h.happened(); len(calls) != 1 {
		t.Errorf("calls: %v, want a single one", calls)
	}
}

func TestTell_Once(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	c.write("c2", nil)
	d := c.deploy("d", "c", "c2")
	h := adopted(t, c)
	c.write("c", map[string]string{"k": "new"})
	delete(c.contents, configMap("c2"))
	h.rest()
	for range 3 {
		h.mustSync(t, d)
	}
	if _, said := h.happened(); len(said) != 2 { // what is missing, and what is held by that
		t.Errorf("events: %v, want two", said)
	}
	// It is well again, and then ill again: that is news.
	c.write("c", map[string]string{"k": "old"})
	h.mustSync(t, d)
	c.write("c", map[string]string{"k": "newer"})
	h.mustSync(t, d)
	if _, said := h.happened(); len(said) != 1 {
		t.Errorf("events after it was well: %v, want a single one", said)
	}
}

// A recording mends no setting: who was told of one is not told again.
func TestTell_ASettingThatCannotBeReadOnce(t *testing.T) {
	c := newCluster(t)
	c.write("c", nil)
	d := c.deploy("d", "c")
	c.annotate(d, "adopt", "yes")
	h := newHouse(t, c)
	for range 3 {
		h.mustSync(t, d)
	}
	if !c.stampedTrue(d) {
		t.Fatal("nothing was recorded: the test shows nothing")
	}
	_, said := h.happened()
	said = slices.DeleteFunc(said, func(text string) bool { return !strings.Contains(text, reason.UnreadableSetting.Event()) })
	if len(said) != 1 {
		t.Errorf("events: %q, want a single one", said)
	}
}

func TestRecord_ASourceThatWasMissingLeavesNoPodStale(t *testing.T) {
	c := newCluster(t)
	d := c.deploy("d", "c")
	h := newHouse(t, c)
	h.mustSync(t, d)
	c.write("c", map[string]string{"k": "v"})
	c.times[configMap("c")] = [2]time.Time{time.Date(2026, 2, 2, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)}
	h.mustSync(t, d)
	_, said := h.happened()
	for _, event := range said {
		if strings.Contains(event, reason.ConfigMaybeStale.Event()) {
			t.Errorf("event: %s", event)
		}
	}
}

func TestRecord_ContentThatChangedBeforeMayBeStale(t *testing.T) {
	c := newCluster(t)
	d := c.deploy("d", "c")
	h := newHouse(t, c)
	h.mustSync(t, d)
	c.write("c", map[string]string{"k": "first"})
	c.fail["d"] = 1
	if _, err := h.sync(t.Context(), d); err == nil {
		t.Fatal("the recording did not fail: the test shows nothing")
	}
	c.write("c", map[string]string{"k": "second"})
	h.mustSync(t, d)
	_, said := h.happened()
	if !strings.Contains(strings.Join(said, "\n"), reason.ConfigMaybeStale.Event()) {
		t.Errorf("events: %q, want a warning that pods may have started with the first content", said)
	}
}

func TestRecord_AStatusWriteDoesNotDelayIt(t *testing.T) {
	c := newCluster(t)
	c.write("c", nil)
	d := c.deploy("d", "c")
	h := newHouse(t, c)
	c.meanwhile = func() {
		c.objects[d]["status"] = map[string]any{"replicas": 1.0}
		c.objects[d]["metadata"].(map[string]any)["resourceVersion"] = "7"
	}
	h.mustSync(t, d)
	if !c.stampedTrue(d) {
		t.Error("not on record")
	}
}

func TestTell_ARollWhoseAnswerWasLostOnce(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	c.write("c", map[string]string{"k": "new"})
	c.lose = true
	h.rest()
	if _, err := h.sync(t.Context(), d); err == nil {
		t.Fatal("the answer was not lost: the test shows nothing")
	}
	h.see(t, d) // the watch brings it
	h.mustSync(t, d)
	h.mustSync(t, d)
	calls, said := h.happened()
	if len(calls) != 1 || !slices.Equal(said, texts("Normal ConfigChanged configmap/c changed: rolling out")) {
		t.Errorf("calls %q, events %q, want one of each", calls, said)
	}
}

func TestTell_ARecordingWhoseAnswerWasLostOnce(t *testing.T) {
	c := newCluster(t)
	c.write("c", nil)
	c.times[configMap("c")] = [2]time.Time{time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}
	d := c.deploy("d", "c")
	h := newHouse(t, c)
	c.lose = true
	if _, err := h.sync(t.Context(), d); err == nil {
		t.Fatal("the answer was not lost: the test shows nothing")
	}
	h.see(t, d) // the watch brings it
	h.mustSync(t, d)
	h.mustSync(t, d)
	calls, said := h.happened()
	if len(calls) != 3 || len(said) != 2 || !strings.Contains(said[0], reason.Recorded.Event()) || !strings.Contains(said[1], reason.ConfigMaybeStale.Event()) {
		t.Errorf("calls %q, events %q, want one recording, and that pods may be stale", calls, said)
	}
}

// What was known of a workload is not known of another of its name, whose deletion
// and creation were seen as one.
func TestSync_AnotherOfThatNameIsAnother(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	remake := func(version string) {
		t.Helper()
		metadata := c.objects[d]["metadata"].(map[string]any)
		metadata["uid"], metadata["resourceVersion"] = "uid-"+version, version
		c.admit(d, checksum.RollingManager) // as at creation
		h.see(t, d)
		h.mustSync(t, d)
	}
	c.write("c", map[string]string{"k": "new"})
	c.fail["d"] = 1
	h.rest()
	if _, err := h.sync(t.Context(), d); err == nil {
		t.Fatal("the roll was not refused: the test shows nothing")
	}
	remake("100")
	if _, said := h.happened(); len(said) > 0 {
		t.Errorf("events %q of a workload that was created", said)
	}
	c.annotate(d, "window", "some day")
	for _, version := range []string{"200", "300"} {
		remake(version)
		if _, said := h.happened(); len(said) != 1 {
			t.Errorf("events %q of the one with version %s, want one of its setting", said, version)
		}
	}
}

func TestSync_AWorkloadThatIsGoneIsForgotten(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	c.write("c", map[string]string{"k": "new"})
	c.gone = true
	h.rest()
	h.mustSync(t, d)
	if s := h.index.Get(d); s != nil {
		t.Error("it is still known")
	}
}

// Somebody's webhook that denies our patch with the code 404 is tried again for ever,
// and told of, like any that denies.
func TestSync_ADenialByTheCodeOfWhatIsGone(t *testing.T) {
	for manner, content := range map[string]string{rolling: "new", recording: ""} {
		t.Run(manner, func(t *testing.T) {
			c := newCluster(t)
			c.write("c", map[string]string{"k": "old"})
			d := c.deploy("d", "c")
			h := newHouse(t, c)
			if content != "" {
				h.mustSync(t, d)
				c.write("c", map[string]string{"k": content})
			}
			h.rest()
			c.denies = true
			for range patience {
				h.queue.Add(d)
				h.next(t.Context())
			}
			if h.index.Get(d) == nil {
				t.Fatal("it is forgotten")
			}
			h.wantWaiting(t, reason.Retry, 0)
			if got := testutil.ToFloat64(h.metrics.readmissions.WithLabelValues(manner, reason.Refused.Label())); got != patience {
				t.Errorf("%v refusals counted, want %d", got, patience)
			}
			if _, said := h.happened(); !strings.Contains(strings.Join(said, "\n"), "Warning ReadmissionFailing re-admission keeps failing, and configstamp keeps trying: admission webhook \"teams.example.com\" refused: Forbidden (403). The whole answer: kubectl --namespace shop patch deployments.apps d ") {
				t.Errorf("events: %q", said)
			}
			c.denies = false
			h.mustSync(t, d)
			if !c.stampedTrue(d) {
				t.Error("it does not carry what is true in the end")
			}
		})
	}
}

// Somebody opts out, and the API server knows before we do.
func TestTell_ADenialAfterSomebodyOptedOutIsNoFailure(t *testing.T) {
	for manner, prepare := range map[string]func(t *testing.T, c *cluster) *house{
		rolling: func(t *testing.T, c *cluster) *house {
			h := adopted(t, c)
			c.write("c", map[string]string{"k": "new"})
			h.rest()
			return h
		},
		recording: newHouse,
	} {
		t.Run(manner, func(t *testing.T) {
			c := newCluster(t)
			c.write("c", map[string]string{"k": "old"})
			d := c.deploy("d", "c")
			h := prepare(t, c)
			c.unserved = true
			for range 2 * patience {
				_, err := h.sync(t.Context(), d)
				if err == nil {
					t.Fatal("it is not tried again: somebody may have opted in a moment ago")
				}
				h.reportFailure(d, err)
				h.queue.AddRateLimited(d)
			}
			if _, said := h.happened(); len(said) > 0 {
				t.Errorf("events: %q, want none", said)
			}
			for result, want := range map[reason.Reason]float64{reason.OptedOut: 2 * patience, reason.Refused: 0} {
				if got := testutil.ToFloat64(h.metrics.readmissions.WithLabelValues(manner, result.Label())); got != want {
					t.Errorf("%v patches are %s, want %v", got, result, want)
				}
			}
			c.optedOut = true // the watch tells
			h.mustSync(t, d)
			if waits := h.waits.Tally(); len(waits) > 0 {
				t.Errorf("opted out, it waits for %v", waits)
			}
			c.optedOut, c.unserved = false, false
			h.mustSync(t, d)
			if !c.stampedTrue(d) {
				t.Error("opted in again, it does not carry what is true")
			}
		})
	}
}

func TestTell_WhatKeepsFailing(t *testing.T) {
	c := newCluster(t)
	c.write("c", nil)
	d := c.deploy("d", "c")
	h := newHouse(t, c)
	fail := func(times int, err error) (said []string) {
		for range times {
			h.reportFailure(d, err)
			h.queue.AddRateLimited(d)
		}
		_, said = h.happened()
		return said
	}
	if said := fail(patience-1, errAway); len(said) != 0 {
		t.Errorf("events after %d tries: %q, want none", patience-1, said)
	}
	if said := fail(3, errAway); len(said) != 1 {
		t.Errorf("events: %q, want one of the webhook", said)
	}
	for stream := range 3 { // whatever number a lost connection has
		said := fail(1, fmt.Errorf("rolling: %w", &url.Error{Op: "Patch", URL: "https://10.0.0.1", Err: fmt.Errorf("stream error: stream ID %d", stream)}))
		if want := map[int]int{0: 1}[stream]; len(said) != want {
			t.Errorf("events: %q, want %d", said, want)
		}
	}
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "d", errRefused)
	if said := fail(3, fmt.Errorf("rolling: %w", denied)); len(said) != 1 || !strings.Contains(said[0], "Forbidden (403)") || strings.Contains(said[0], errRefused.Error()) {
		t.Errorf("events: %q, want one with the API server's reason, and not its words", said)
	}
}

// A setting that was mended and is broken again is told of again, though the workload waits all the while.
func TestTell_ASettingThatCannotBeReadAgainAgain(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	c.write("c", map[string]string{"k": "new"})
	h.rest()
	for i, pause := range []string{"yes", "true", "yes"} {
		c.settings = map[string]string{"configstamp.dev/pause": pause}
		h.mustSync(t, d)
		_, said := h.happened()
		if told := len(said) == 1 && strings.Contains(said[0], reason.UnreadableSetting.Event()); told != (pause == "yes") {
			t.Errorf("at %d events %q", i, said)
		}
	}
}

// What fails again after it had ended is told of again, though the workload was held
// all the while.
func TestTell_EachFailure(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c", "late")
	h := adopted(t, c)
	c.settings = map[string]string{"configstamp.dev/pause": "true"}
	c.write("c", map[string]string{"k": "new"})
	c.write("late", nil)
	h.rest()
	want := func(times, failures int) {
		t.Helper()
		for range times {
			h.queue.Add(d)
			h.next(t.Context())
		}
		_, said := h.happened()
		said = slices.DeleteFunc(said, func(text string) bool { return !strings.Contains(text, reason.Retry.Event()) })
		if len(said) != failures {
			t.Errorf("events %q, want %d", said, failures)
		}
	}
	c.denies = true
	want(3*patience, 1) // to record
	c.denies = false
	want(1, 0)
	c.denies, c.settings = true, nil
	want(3*patience, 1) // to roll
}

func TestTell_NothingLaterOfARollThatNeverCame(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	c.write("c", map[string]string{"k": "new"})
	c.away = true
	h.rest()
	if _, err := h.sync(t.Context(), d); err == nil {
		t.Fatal("the webhook was not away: the test shows nothing")
	}
	c.write("c", map[string]string{"k": "old"}) // taken back before it rolled
	h.mustSync(t, d)
	h.happened()
	// Somebody else's rollout changes the records for another reason.
	metadata := c.objects[d]["metadata"].(map[string]any)
	delete(metadata, "annotations")
	metadata["resourceVersion"] = "99"
	h.see(t, d)
	c.away = false
	h.mustSync(t, d)
	_, said := h.happened()
	for _, event := range said {
		if strings.Contains(event, reason.ConfigChanged.Event()) {
			t.Errorf("event: %s", event)
		}
	}
}

// A roll that was asked for and did not come has not come with a recording.
func TestRecord_IsNoRoll(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c", "late")
	h := adopted(t, c)
	c.write("c", map[string]string{"k": "new"})
	c.write("late", nil)
	c.fail["d"] = 1
	h.rest()
	if _, err := h.sync(t.Context(), d); err == nil {
		t.Fatal("the roll was not refused: the test shows nothing")
	}
	c.annotate(d, "pause", "true")
	h.see(t, d)
	h.mustSync(t, d)
	h.mustSync(t, d)
	calls, said := h.happened()
	if !slices.Contains(calls, "configstamp-record d") {
		t.Fatalf("calls %q: nothing was recorded, and the test shows nothing", calls)
	}
	if slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, "rolling out") }) {
		t.Errorf("events %q, want none of a roll", said)
	}
	if !h.plan.LastRoll(d, "uid-d").IsZero() {
		t.Error("it counts as rolled")
	}
}

// Nor does the webhook roll when it records and holds, knowing of a setting that we
// do not know yet.
func TestRoll_OneThatWasHeldIsNoRoll(t *testing.T) {
	for sentence, prepare := range map[string]func(h *house, d workload.Ref){
		"all at once": func(*house, workload.Ref) {},
		"in steps": func(h *house, d workload.Ref) {
			h.stepwise()
			h.mustSync(t, d)
			h.clock.Step(time.Minute) // by then it is known whether it is down
			h.cycle(t.Context())
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newCluster(t)
			c.write("c", map[string]string{"k": "old"})
			d := c.deploy("d", "c")
			h := adopted(t, c)
			c.write("c", map[string]string{"k": "new"})
			h.rest()
			prepare(h, d)
			c.settings = map[string]string{"configstamp.dev/also": "configmap/extra"}
			c.annotate(d, "mode", "observe")
			if _, err := h.sync(t.Context(), d); err == nil {
				t.Error("it counts as done")
			}
			calls, said := h.happened()
			if !slices.Equal(calls, []string{"configstamp d"}) || len(h.index.Get(d).Records.Baseline) != 2 {
				t.Fatalf("calls %q: not a roll that records alone, and the test shows nothing", calls)
			}
			if len(said) > 0 || !h.plan.LastRoll(d, "uid-d").IsZero() || h.plan.Follows(d) {
				t.Errorf("events %q, last rolled %s, followed %t: want none of a roll", said, h.plan.LastRoll(d, "uid-d"), h.plan.Follows(d))
			}
		})
	}
}

// A custom resource whose definition prunes the annotations of its template cannot be rolled: people
// are told so.
func TestRoll_StampsThatAreNotKept(t *testing.T) {
	c := newCluster(t)
	c.prunes = true
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	c.write("c", map[string]string{"k": "new"})
	h.rest()
	h.mustSync(t, d)
	if _, said := h.happened(); !slices.ContainsFunc(said, func(text string) bool {
		return strings.HasPrefix(text, "Warning RolloutBlocked") && strings.Contains(text, "CustomResourceDefinition")
	}) {
		t.Errorf("events %q, want one of what is not kept", said)
	}
}

// Who waits for its turn while another source is recorded, and is put back then, has
// not been rolled by anybody.
func TestRecord_OvertakesNobody(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c", "late")
	spec := c.objects[d]["spec"].(map[string]any)
	spec["selector"] = map[string]any{"matchLabels": map[string]any{"app": "d"}}
	h := adopted(t, c)
	h.stepwise()
	c.write("c", map[string]string{"k": "new"})
	c.write("late", nil)
	h.rest()
	h.mustSync(t, d)
	if calls, _ := h.happened(); !slices.Contains(calls, "configstamp-record d") || slices.Contains(calls, "configstamp d") {
		t.Fatalf("calls %q: the test shows nothing", calls)
	}
	h.rest()
	c.pod = workload.Pod{Name: "d-1", Started: h.clock.Now()}
	c.write("c", map[string]string{"k": "old"})
	h.mustSync(t, d)
	if h.plan.Follows(d) {
		t.Error("a rollout is followed, though nothing rolls")
	}
	if _, said := h.happened(); !slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, reason.PodsRunWithdrawnContent.Event()) }) {
		t.Errorf("events %q, want one of the pod that started in between", said)
	}
}

// stepwise has changes roll in steps.
func (h *house) stepwise() {
	h.options.Limits = rollout.Limits{Step: 1, Unsettled: rollout.Number(10), UnsettledPerNamespace: 9, RolloutDeadline: time.Hour}
	h.options.Limits.Settle = h.options.Settle
	h.plan = rollout.NewPlanner(h.options.Limits, lookup{h.Controller})
	h.planned(func(p *rollout.Planner) { p.Lead(nil, h.clock.Now()) })
	h.clock.Step(h.options.Settle)
}

// A live workload that is annotated for another product is on record at once, and
// rolls with the next edit.
func TestSync_ADialectsAnnotationOnALiveWorkload(t *testing.T) {
	c := newCluster(t)
	c.optedOut = true
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c")
	h := newHouse(t, c)
	h.options.Dialects = []checksum.Dialect{checksum.Reloader}
	work := func() (calls []string) {
		for h.queue.Len() > 0 {
			h.next(t.Context())
		}
		calls, _ = h.happened()
		return calls
	}
	if calls := work(); len(calls) > 0 {
		t.Fatalf("calls for a workload that is not opted in: %q", calls)
	}
	c.annotate(d)
	c.objects[d]["metadata"].(map[string]any)["annotations"] = map[string]any{"reloader.stakater.com/auto": "true"}
	h.see(t, d)
	if calls := work(); len(calls) != 3 || calls[2] != "configstamp-record d" {
		t.Errorf("calls: %q, want a recording", calls)
	}
	h.rest()
	c.write("c", map[string]string{"k": "new"})
	h.Changed("shop", configMap("c"))
	h.rest()
	if calls := work(); !slices.Equal(calls, []string{"configstamp d"}) {
		t.Errorf("calls: %q, want a roll", calls)
	}
}

// watched is a cluster whose watch tells of a re-admission before its answer comes.
type watched struct {
	*cluster
	tell func(ref workload.Ref)
}

func (w watched) readmit(ctx context.Context, ref workload.Ref, manager string, dryRun bool) ([]byte, []string, error) {
	body, warnings, err := w.cluster.readmit(ctx, ref, manager, dryRun)
	if err == nil && !dryRun {
		w.tell(ref)
	}
	return body, warnings, err
}

// A roll is known as one, whoever tells of it first.
func TestRoll_TheWatchTellsOfItBeforeTheAnswer(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	h.stepwise()
	c.write("c", map[string]string{"k": "new"})
	h.rest()
	h.mustSync(t, d)
	h.clock.Step(time.Minute) // by then it is known whether it is down
	h.cycle(t.Context())
	h.api = watched{c, func(ref workload.Ref) { // its own controller has written its status by then
		c.objects[ref]["metadata"].(map[string]any)["resourceVersion"] = "1000"
		h.see(t, ref)
	}}
	h.mustSync(t, d)
	if calls, _ := h.happened(); !slices.Contains(calls, "configstamp d") {
		t.Fatalf("calls %q: nothing was rolled, and the test shows nothing", calls)
	}
	if !h.plan.Follows(d) {
		t.Error("it rolls, and its rollout is not followed")
	}
}
