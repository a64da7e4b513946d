package pins

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// failing is a workload that bad content breaks, and that goes back by itself, before one that waits for it.
func failing(kind, manner, spec string) []member {
	return []member{
		{kind: kind, app: "first", manner: manner, ways: []string{env}, order: "-1", settings: ", configstamp.dev/on-failure: return, configstamp.dev/soak: 5s", spec: spec},
		{kind: "Deployment", app: "other", ways: []string{env}},
	}
}

const parallel = ", podManagementPolicy: Parallel"

// A bad edit breaks one workload, in each way, and each kind of workload goes back by itself: its pods have the old content
// again, and serve. The other one never rolls. The fix rolls to both.
func TestReturn(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		for _, manner := range []string{"strict", "unready", "late"} {
			t.Run(kind+" "+manner, func(t *testing.T) {
				t.Parallel()
				spec := ""
				if kind == "StatefulSet" {
					spec = parallel
				}
				first, bad, second := "first of "+t.Name(), "bad of "+t.Name(), "second of "+t.Name() // else they would be copies
				r := newRoom(t, first, failing(kind, manner, spec)...)
				m := &r.members[0]
				stamps, before := harness.Stamps(r.space.Get(m.name())), r.space.Counts()
				r.write(bad)
				failed := r.wantEvent(m.name(), "RolloutFailed")
				r.want(m, first)
				t.Logf("from the verdict until its pod had the old content again: %s", time.Since(failed).Round(100*time.Millisecond))
				r.wantEvent(m.name(), "ContentReturned")
				if is := harness.Stamps(r.space.Get(m.name())); fmt.Sprint(is) != fmt.Sprint(stamps) {
					t.Error("its template does not have its former stamps")
				}
				r.wantHalt()
				r.wantStill(first, r.members)
				if is := r.space.Counts()["deployment/other"]; is != before["deployment/other"] {
					t.Errorf("the other one has rolled: %+v, before %+v", is, before["deployment/other"])
				}
				r.write(second)
				r.wantAll(second)
			})
		}
	}
}

// A StatefulSet that waits for its broken pod has its former template, and the pod and the command are named. No pod is
// deleted.
func TestReturn_OrderedReady(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "first word", failing("StatefulSet", "strict", "")...)
	first := &r.members[0]
	stamps := harness.Stamps(r.space.Get(first.name()))
	r.write("a bad word")
	r.wantEvent(first.name(), "RolloutFailed")
	r.space.Eventually("waiting for its former stamps", func() error {
		if is := harness.Stamps(r.space.Get(first.name())); fmt.Sprint(is) != fmt.Sprint(stamps) {
			return fmt.Errorf("it has %d others", len(is))
		}
		return nil
	})
	r.wantEvent(first.name(), "ReturnDidNotHelp")
	command := "kubectl delete pod first-0 -n " + r.space.Namespace
	if notes := r.space.Notes(first.name()); !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, command) }) {
		t.Errorf("none says %q: %q", command, notes)
	}
	r.space.Kubectl(strings.Fields(command)[1:4]...)
	r.want(first, "first word")
}

// wantEvent waits for an event about an object, and returns when it was there.
func (r *room) wantEvent(about, reason string) time.Time {
	r.t.Helper()
	r.space.EventuallyIn(2*time.Minute, "waiting for "+reason, func() error {
		for _, event := range r.space.Events(about) {
			if event.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("there is none about %s: %q", about, r.space.Notes(about))
	})
	return time.Now()
}
