package impact_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Each reason why a workload does not roll.
func TestForecast_WhoStaysAndWhy(t *testing.T) {
	live := checksum.Reference{Source: config, Use: checksum.Live, All: true}
	node := checksum.Reference{Source: config, Use: checksum.Node, All: true, Optional: true}
	tells(t, "who-stays-and-why", suppose(t, limits(), func(source rollout.SourceRef) impact.Seen {
		return impact.Seen{Missing: source.Source.Name == "gone"}
	}, edited("greeting"),
		web("rolls"), web("its-key", oneKey("greeting")), web("another-key", oneKey("color")),
		web("live", uses(live)), web("live-left-out", uses(live), says("restart-on", "startup")),
		web("node", uses(node)), web("node-counts", uses(node), says("restart-on", "everything")),
		web("not-mounted", uses(checksum.Reference{Source: config, Use: checksum.Unused, All: true})),
		web("ignores", says("ignore", "configmap/payment-*")), web("others-only", says("only", "secret/db")),
		web("observes", says("mode", "observe")), web("paused", says("pause", "true")), web("unreadable", says("pause", "maybe")),
		web("opted-out", func(w *impact.Workload) { w.Served, w.Why = false, reason.OptedOut }),
		web("odd-template", func(w *impact.Workload) { w.Unreadable = true }),
		web("job", of("Job")), web("new", func(w *impact.Workload) { w.Records = checksum.Records{} }),
		web("odd-record", recordedAs("89abcdef")),
		web("lacks-another", uses(live, checksum.Reference{Source: checksum.Source{Kind: checksum.Secret, Name: "gone"}, Use: checksum.Live, All: true})),
		web("elsewhere", uses(checksum.Reference{Source: checksum.Source{Kind: checksum.Secret, Name: "db"}, Use: checksum.Live, All: true})),
	))
}

func TestForecast_WhatTheSourceLeavesOut(t *testing.T) {
	annotated := func(setting, value string) func(rollout.SourceRef) impact.Seen {
		return func(rollout.SourceRef) impact.Seen {
			return impact.Seen{Policy: checksum.SourcePolicyOf(map[string]string{"configstamp.dev/" + setting: value})}
		}
	}
	tells(t, "ignored-key", suppose(t, limits(), annotated("ignore-keys", "build-*"), edited("build-date"),
		web("web", recordedAs(checksum.Selection{Source: config, All: true, Except: []string{"build-*"}}.ID())),
		web("recorded-before-the-setting")))
	tells(t, "ignored-source", suppose(t, limits(), annotated("ignore", "true"), edited(), web("web")))
	tells(t, "unreadable-source", suppose(t, limits(), annotated("ignore", "perhaps"), edited(), web("web")))
}

// What waits already for an earlier edit is not counted for one that it does not see; who
// sees that it carries already what comes is told so. Both need the digest key.
func TestForecast_WhatWaitsAlreadyIsNotOfThisEdit(t *testing.T) {
	key, err := checksum.NewKey(bytes.Repeat([]byte{7}, checksum.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	ring := checksum.NewRing(key)
	content := func(greeting, color string) *checksum.Content {
		return checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: map[string]string{"greeting": greeting, "color": color}})
	}
	waits := web("waits", oneKey("greeting"))
	waits.Records.Stamps[checksum.StampKey(config)] = ring.Digest("shop", checksum.Selections(waits.References, waits.Policy)[0], content("hi", "red"))
	for is, want := range map[*checksum.Content]reason.Reason{
		content("ho", "blue"): reason.KeyNotUsed, content("hi", "red"): reason.Kept, content("hey", "red"): reason.NoReason,
	} {
		q := impact.Question{Now: now, Limits: limits(), CanRoll: 1, Ring: ring, Workloads: []impact.Workload{waits},
			Edits: []impact.Edit{{At: at("shop", config), Was: content("ho", "red"), Is: is}}, Content: func(rollout.SourceRef) *checksum.Content { return nil }}
		answer, why := q.Answer(), reason.NoReason
		if len(answer.Stays) > 0 {
			why = answer.Stays[0].Why
		}
		if why != want || len(answer.Rolls)+len(answer.Stays) != 1 {
			t.Errorf("%v roll, %v stay, want %q", answer.Rolls, answer.Stays, want)
		}
	}
}

func TestForecast_ADeletionBreaksNobody(t *testing.T) {
	optional := checksum.Reference{Source: config, Use: checksum.Startup, All: true, Optional: true}
	tells(t, "deletion", suppose(t, limits(), nil, deleted, web("requires"), web("can-do-without", uses(optional))))
	missing := func(rollout.SourceRef) impact.Seen { return impact.Seen{Missing: true} }
	tells(t, "creation", suppose(t, limits(), missing, edited(), web("was-deleted-once"), web("requires", func(w *impact.Workload) { w.Records = checksum.Records{} }),
		web("optional", uses(optional), func(w *impact.Workload) { w.Records.Stamps[checksum.StampKey(config)] = checksum.Absent })))
}

func TestForecast_HeldUntilATime(t *testing.T) {
	tells(t, "held-until-a-time", suppose(t, limits(), nil, edited(), web("free"),
		web("at-night", says("window", "Mon-Fri 22:00-04:00 UTC")), web("at-night-too", says("window", "Mon-Fri 22:00-04:00 UTC")),
		web("open", says("window", "09:00-17:00 UTC")), web("paused", says("pause", "2026-07-01T12:00:00Z")),
		web("hourly", says("min-interval", "1h"), func(w *impact.Workload) { w.Status.Current = now.Add(-20 * time.Minute) })))
}

func TestForecast_Kinds(t *testing.T) {
	tells(t, "kinds", suppose(t, limits(), nil, edited(), web("deployment"),
		web("cronjob", of("CronJob"), status(workload.Status{Waits: "later runs start with it"})),
		web("sleeps", status(workload.Status{Waits: "it has no replicas"})),
		web("daemonset", of("DaemonSet"), func(w *impact.Workload) { w.Status.PerNode, w.Status.Wanted = true, 50 }),
		web("knative", of("Service"), status(workload.Status{Phase: workload.RolledOut, StatusHash: 7})),
		web("tells-nothing", of("CloneSet"), status(workload.Status{StatusHash: 9})),
		web("busy", func(w *impact.Workload) { w.Status.Phase, w.Status.Missing = workload.Rolling, 1 }),
		web("unhealthy", func(w *impact.Workload) { w.Status.Phase, w.Status.Missing = workload.Failed, 1 })))
}

func TestForecast_NoSteps(t *testing.T) {
	off := limits()
	off.Step = 0
	tells(t, "no-steps", suppose(t, off, nil, edited(), web("a"), web("b"), web("c", says("pause", "2026-07-01T12:00:00Z"))))
}

// As many begin at once as the steps allow, and the budget.
func TestForecast_HowManyGoFirst(t *testing.T) {
	for step, want := range map[int]int{0: 40, 1: 1, 7: 7, 30: 9} { // of ten slots, nine are for one namespace
		limited := limits()
		limited.Step = step
		if answer := suppose(t, limited, nil, edited(), many(40)...).Answer(); answer.First != want || len(answer.Rolls) != 40 {
			t.Errorf("--step=%d: %d of %d go first, want %d", step, answer.First, len(answer.Rolls), want)
		}
	}
}

// Of those that begin at once, the ones whose own controller would accept new pods that crash.
func TestForecast_WhoGoesFirstAndIsUnguarded(t *testing.T) {
	unprobed := func(w *impact.Workload) { w.Unprobed = true }
	slow := func(w *impact.Workload) { w.Status.MinReady = time.Second }
	small := func(w *impact.Workload) { w.Status.Wanted = 2 }
	single := func(w *impact.Workload) { w.Status.Wanted, w.Status.Gentle = 1, false }
	recreates := func(w *impact.Workload) { w.Status.Recreates, w.Status.Gentle = true, false }
	for about, c := range map[string]struct {
		workloads []impact.Workload
		step      int
		want      string
	}{
		"it has a probe":                        {[]impact.Workload{web("a"), web("b", unprobed)}, 1, ""},
		"it has minReadySeconds":                {[]impact.Workload{web("a", unprobed, slow), web("b", unprobed)}, 1, ""},
		"it has neither":                        {[]impact.Workload{web("b"), web("a", unprobed)}, 1, "a"},
		"one with an order goes before":         {[]impact.Workload{web("a", unprobed), web("z", says("order", "1"))}, 1, ""},
		"the lower order goes first":            {[]impact.Workload{web("a", says("order", "2")), web("z", unprobed, says("order", "1"))}, 1, "z"},
		"the smaller one goes first":            {[]impact.Workload{web("a"), web("z", unprobed, small)}, 1, "z"},
		"one that serves meanwhile goes before": {[]impact.Workload{web("a", unprobed, single), web("z")}, 1, ""},
		"one that rolls already goes later":     {[]impact.Workload{web("a", unprobed, status(workload.Status{Phase: workload.Rolling, Wanted: 1})), web("z")}, 1, ""},
		"of two":                                {[]impact.Workload{web("a", unprobed), web("b"), web("c", unprobed)}, 2, "a"},
		"all at once":                           {[]impact.Workload{web("c", unprobed), web("b"), web("a", unprobed)}, 0, "a c"},
		"a paused one does not roll":            {[]impact.Workload{web("a", unprobed, says("pause", "true")), web("b")}, 1, ""},
		"all of its pods end first anyway":      {[]impact.Workload{web("a", unprobed, recreates)}, 1, ""},
		"its kind counts no pods":               {[]impact.Workload{web("a", unprobed, of("Service"))}, 1, ""},
	} {
		limited := limits()
		limited.Step = c.step
		var got []string
		for _, ref := range suppose(t, limited, nil, edited(), c.workloads...).Answer().Unguarded {
			got = append(got, ref.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %q", about, got, c.want)
		}
	}
}

func many(count int) (all []impact.Workload) {
	for n := range count {
		all = append(all, web(fmt.Sprintf("web-%03d", n)))
	}
	return all
}
