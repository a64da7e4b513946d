package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What holds rollouts, and when that ends.

// holding are settings that hold for longer than a test takes.
func holding() []row {
	const held = "RolloutHeld: configmap/c changed, and this workload rolls out later: configstamp.dev/"
	closed := time.Now().UTC().AddDate(0, 0, 3).Weekday().String()[:3] + " 00:00-01:00 UTC"
	until := time.Now().Add(1000 * time.Hour).UTC().Format(time.RFC3339)
	return []row{
		{name: "free"},
		{name: "observed", settings: settings{"mode": "observe"}, note: "WouldRollOut: configmap/c changed: this workload would roll out, but its mode is observe", unmoved: true},
		{name: "paused", settings: settings{"pause": "true"}, note: held + "pause%s"},
		{name: "paused-until", settings: settings{"pause": until}, notOn: onNamespace, note: held + "pause%s holds it until " + until},
		{name: "closed", settings: settings{"window": closed}, note: held + "window%s holds it until "},
		{name: "recent", settings: settings{"min-interval": "1h"}, note: held + "min-interval%s holds it until "},
	}
}

func (r row) isHeld() bool { return r.note != "" }

// noteAt is the event about an edit that is held by a setting that stands there.
func (r row) noteAt(at level) string {
	where := ""
	if at == onNamespace {
		where = " on the Namespace"
	}
	return strings.Replace(r.note, "%s", where, 1)
}

func reads(sources ...string) func(name string) string {
	return func(name string) string { return deployment(name, sources...) }
}

func TestPolicy_WhatIsHeldRollsOnceWhenThatEnds(t *testing.T) {
	t.Parallel()
	for _, at := range levels {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := newRuled(t, at, run.Space, holding())
			s.edit("configmap/c", "secret/s")
			before := s.create(reads("configmap/c", "secret/s"))
			for _, row := range s.rows {
				wantStamps(t, s.Space, row.workload(), "configmap/c", "secret/s")
			}
			free := func(r row) bool { return !r.isHeld() }
			s.edit("configmap/c")
			s.wantEach(before, free)
			for _, row := range s.rows {
				if row.isHeld() {
					s.WantNote(row.workload(), row.noteAt(at))
				}
			}
			before = s.Counts()
			s.edit("secret/s")
			s.wantEach(before, free)

			// A person's order is served; observe rolls nothing.
			before = s.Counts()
			for _, row := range s.rows {
				ordered := s.Kubectl("patch", row.workload(), "--field-manager=configstamp", "-p", "{}")
				if row.unmoved {
					wantWarning(t, ordered, "mode is observe: checksums are out of date, and nothing restarts")
				} else {
					wantNoWarnings(t, ordered)
				}
			}
			s.wantEach(before, func(r row) bool { return r.isHeld() && !r.unmoved })
			for _, row := range s.rows {
				if !row.unmoved {
					wantStamps(t, s.Space, row.workload(), "configmap/c", "secret/s")
				}
			}

			before = s.Counts()
			s.edit("configmap/c")
			s.wantEach(before, free)
			before = s.Counts()
			s.drop()
			s.wantEach(before, row.isHeld)
			for _, row := range s.rows {
				wantStamps(t, s.Space, row.workload(), "configmap/c", "secret/s")
			}
		})
	}
}

func TestPolicy_HoldsThatEndByThemselves(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "0")
	names := []string{"paused", "closed"}
	for _, name := range names {
		s.Create(withPolicy(deployment(name, "configmap/c"), settings{"pause": "true"}))
	}
	before := s.Settled("deployment/paused", "deployment/closed")
	s.Set("configmap/c", "k", "1")
	for _, name := range names {
		s.WantNote("deployment/"+name, "RolloutHeld")
	}
	// Only now is it said until when, so that nothing above can come too late.
	pauseEnds := time.Now().Add(10 * time.Second).Truncate(time.Second)
	opens := time.Now().Add(70 * time.Second).Truncate(time.Minute).UTC() // in 10 s at least
	s.SetPolicy("deployment/paused", settings{"pause": pauseEnds.UTC().Format(time.RFC3339)})
	s.SetPolicy("deployment/closed", settings{"window": opens.Format("15:04") + "-" + opens.Add(5*time.Minute).Format("15:04") + " UTC"})
	s.DropPolicy("deployment/closed", settings{"pause": ""})
	for name, end := range map[string]time.Time{"paused": pauseEnds, "closed": opens} {
		s.EventuallyIn(3*time.Minute, "waiting until a hold ends by itself", func() error {
			if got, want := s.Stamp("deployment/"+name, "configmap/c"), s.Digest("configmap/c"); got != want {
				return fmt.Errorf("the stamp of %s is not that of the new content", name)
			}
			return nil
		})
		s.Eventually("waiting for its revision", func() error {
			if rolled := newestRevision(t, s, "replicasets", name); rolled.Before(end) {
				return fmt.Errorf("%s rolled at %v, want not before %v", name, rolled, end)
			}
			return nil
		})
	}
	s.WantRolls(before, rolls{"deployment/paused": 1, "deployment/closed": 1})
}

// newestRevision is when the newest of a workload's revisions (replicasets or
// controllerrevisions) was made.
func newestRevision(t *testing.T, s *harness.Space, revisions, name string) time.Time {
	t.Helper()
	list, err := run.Dynamic.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: revisions}).Namespace(s.Namespace).
		List(context.Background(), metav1.ListOptions{LabelSelector: "app=" + name})
	harness.Must(t, err)
	var newest time.Time
	for i := range list.Items {
		if made := list.Items[i].GetCreationTimestamp().Time; made.After(newest) {
			newest = made
		}
	}
	return newest
}

func TestPolicy_AnEditTakenBackDuringAPauseRollsNothing(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.SetPolicy("namespace", settings{"pause": "true"})
	s.Quiet()
	s.Create(deployment("d", "configmap/c"))
	before := s.Settled("deployment/d")
	s.Set("configmap/c", "k", "2")
	s.WantNote("deployment/d", "RolloutHeld")
	s.Set("configmap/c", "k", "1")
	s.Unchanged(before)
	s.DropPolicy("namespace", settings{"pause": ""})
	s.Unchanged(before)
	s.Set("configmap/c", "k", "3")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

func TestPolicy_WhoOverrulesAHoldIsTold(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	closed := time.Now().UTC().AddDate(0, 0, 3).Weekday().String()[:3] + " 00:00-01:00 UTC"
	s.Set("configmap/c", "k", "1")
	s.Create(withPolicy(deployment("closed", "configmap/c"), settings{"window": closed}))
	s.Create(withPolicy(deployment("paused", "configmap/c"), settings{"pause": "true"}))
	before := s.Settled("deployment/closed", "deployment/paused")
	s.Kubectl("rollout", "restart", "deployment/paused") // nothing waits
	s.WantRolls(before, rolls{"deployment/paused": 1})
	s.Set("configmap/c", "k", "2")
	s.WantNote("deployment/closed", "RolloutHeld")
	s.WantNote("deployment/paused", "RolloutHeld")
	time.Sleep(2 * time.Second) // what is compared has whole seconds
	s.Kubectl("patch", "deployment/closed", "--field-manager=configstamp", "-p", "{}")
	s.Kubectl("rollout", "restart", "deployment/paused")
	s.WantRolls(before, rolls{"deployment/closed": 1, "deployment/paused": 2})
}

func TestPolicy_RecordingsWaitForNoHold(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.SetPolicy("namespace", settings{"pause": "true"})
	s.Create(deployment("d", "configmap/c"))
	before := s.Settled("deployment/d")
	s.Label("enabled")
	wantBaselines(t, s, map[string][]string{"deployment/d": {"configmap/c"}})
	s.Set("configmap/c", "k", "2")
	s.Unchanged(before)
	s.DropPolicy("namespace", settings{"pause": ""})
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamps(t, s, "deployment/d", "configmap/c")
}

func TestPolicy_MinIntervalCountsFromTheNewestRevision(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	const interval = 15 * time.Second // what is compared has whole seconds, and what is edited "soon" may take some
	pace := settings{"min-interval": interval.String()}

	t.Run("Deployment", func(t *testing.T) {
		t.Parallel()
		s := run.Space(t)
		s.Set("configmap/c", "k", "0")
		s.Create(withPolicy(deployment("d", "configmap/c"), pace))
		before := s.Settled("deployment/d")
		current := progressing(s)
		for i := range 2 {
			s.Set("configmap/c", "k", fmt.Sprint(i+1))
			s.WantRolls(before, rolls{"deployment/d": i + 1})
			wantLater(t, current, progressing(s), interval)
			current = progressing(s)
		}
		// It is the newest revision that counts, whoever made it, and not our own last roll.
		time.Sleep(time.Until(current.Add(interval + time.Second)))
		s.Kubectl("rollout", "restart", "deployment/d")
		s.WantRolls(before, rolls{"deployment/d": 3})
		restarted := progressing(s)
		s.Set("configmap/c", "k", "3")
		s.WantRolls(before, rolls{"deployment/d": 4})
		wantLater(t, restarted, progressing(s), interval)
		// And one that is older than that is not waited for.
		time.Sleep(time.Until(progressing(s).Add(interval + time.Second)))
		s.Set("configmap/c", "k", "4")
		s.WantRolls(before, rolls{"deployment/d": 5})
	})

	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := run.Space(t)
			w := strings.ToLower(kind) + "/w"
			s.Set("configmap/c", "k", "0")
			s.Create(withPolicy(workload(kind, "w", envFrom("configmap/c")), pace))
			before := s.Settled(w)
			s.Set("configmap/c", "k", "1")
			s.WantRolls(before, rolls{w: 1})
			s.WantNoNote(w, "RolloutHeld") // without a roll of ours before
			first := newestRevision(t, s, "controllerrevisions", "w")
			s.Set("configmap/c", "k", "2")
			s.WantNote(w, "RolloutHeld: configmap/c changed, and this workload rolls out later: configstamp.dev/min-interval holds it until ")
			s.WantRolls(before, rolls{w: 2})
			wantLater(t, first, newestRevision(t, s, "controllerrevisions", "w"), interval-time.Second) // its controller may have been a moment late
		})
	}
}

func wantLater(t *testing.T, before, after time.Time, interval time.Duration) {
	t.Helper()
	if between := after.Sub(before); between < interval {
		t.Errorf("rolled %v after the newest revision (%v, then %v), want %v at least", between, before, after, interval)
	}
}

// progressing is when the newest revision of Deployment d became current, as its
// status tells once all its replicas are new: until then that time moves.
func progressing(s *harness.Space) (updated time.Time) {
	s.Eventually("waiting for the Deployment's conditions", func() error {
		deployment, err := run.Client.AppsV1().Deployments(s.Namespace).Get(context.Background(), "d", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status := &deployment.Status
		done := status.ObservedGeneration == deployment.Generation && status.UpdatedReplicas == 1
		for _, condition := range status.Conditions {
			if condition.Type == "Progressing" && done {
				updated = condition.LastUpdateTime.Time
				return nil
			}
		}
		return fmt.Errorf("%+v", deployment.Status)
	})
	return updated
}

func TestPeersRow22_ASourceThatIsWrittenAllTheTimeRollsAFewTimes(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "0")
	s.Create(deployment("d", "configmap/c"))
	s.Create(withPolicy(deployment("paced", "configmap/c"), settings{"min-interval": "5s"}))
	before := s.Settled("deployment/d", "deployment/paced")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	writes, begun := 0, time.Now()
	write := func(atLeast time.Duration) {
		for since := time.Now(); time.Since(since) < atLeast; writes++ {
			<-tick.C
			s.Set("configmap/c", "k", fmt.Sprint(writes+1))
		}
	}
	write(12 * time.Second)
	s.Eventually("waiting until it is said", func() error { // once for each rollout that waits
		if notes := s.Notes("deployment/d"); !strings.Contains(strings.Join(notes, "\n"), "RolloutsSlowedDown: configmap/c changed again and again") {
			write(time.Second) // there were too few rolls yet, on a slow machine
			return fmt.Errorf("there are: %s", notes)
		}
		return nil
	})
	s.WantNoNote("deployment/paced", "RolloutsSlowedDown")
	counts, took := s.Counts(), time.Since(begun) // an interval of 5 s counts from a time in whole seconds
	for workload, most := range map[string]int{"deployment/d": 3 + slowed(took), "deployment/paced": 1 + int(took/(4*time.Second))} {
		if done := counts[workload].Rolls - before[workload].Rolls; done < 1 || done > most {
			t.Errorf("%d writes in %s rolled %s %d times, want 1 to %d", writes, took, workload, done, most)
		}
	}
	s.EventuallyIn(100*time.Second, "waiting for the last content", func() error {
		for _, workload := range []string{"deployment/d", "deployment/paced"} {
			if got, want := s.Stamp(workload, "configmap/c"), s.Digest("configmap/c"); got != want {
				return fmt.Errorf("%s is stamped %q, want %q", workload, got, want)
			}
		}
		return nil
	})
}

// slowed is how often a workload may roll, after three times, that is slowed down:
// it waits twice the longest settle at first, and twice as long each time.
func slowed(within time.Duration) (times int) {
	for pause := 2 * 10 * harness.Settle; within >= pause; pause *= 2 {
		within -= pause
		times++
	}
	return times
}
