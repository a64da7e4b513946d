package pins

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// failing is a workload that bad content breaks, and that goes back by itself, before one that waits for it.
func failing(kind, manner, spec string) []member {
	soak := "5s"
	if manner == "late" { // a busy kubelet reports the crash some seconds after it
		soak = "15s"
	}
	return []member{
		{kind: kind, app: "first", manner: manner, ways: []string{env}, order: "-1", settings: ", configstamp.dev/on-failure: return, configstamp.dev/soak: " + soak, spec: spec},
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
	word := "first of " + t.Name() // the same edit as that of another test would make copies
	r := newRoom(t, word, failing("StatefulSet", "strict", "")...)
	first := &r.members[0]
	stamps := harness.Stamps(r.space.Get(first.name()))
	r.write("bad of " + t.Name())
	r.wantEvent(first.name(), "RolloutFailed")
	r.space.Eventually("waiting for its former stamps", func() error {
		if is := harness.Stamps(r.space.Get(first.name())); fmt.Sprint(is) != fmt.Sprint(stamps) {
			return fmt.Errorf("it has %d others", len(is))
		}
		return nil
	})
	command := "kubectl delete pod first-0 -n " + r.space.Namespace
	if notes := r.space.Notes(first.name()); !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, command) }) {
		t.Errorf("none says %q: %q", command, notes)
	}
	r.space.Kubectl(strings.Fields(command)[1:4]...)
	r.want(first, word)
	r.wantEvent(first.name(), "ContentReturned")
}

// A fix is written about when the workload goes back: in each of many rounds a little later. It is never declined, and
// rolls to all.
func TestReturn_AFixAtTheSameTime(t *testing.T) {
	t.Parallel()
	const rooms = 5
	for at := range rooms {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, "first of "+t.Name(), failing("Deployment", "strict", "")...)
			usual := r.goesBack("bad of " + t.Name())
			r.write("second of " + t.Name())
			r.wantAll("second of " + t.Name())
			for round := range max(1, *times/10) {
				r.write(fmt.Sprintf("bad of %s in round %d", t.Name(), round))
				all := max(1, *times/10) * rooms
				time.Sleep(usual - time.Second + 2*time.Second*time.Duration(round*rooms+at)/time.Duration(all))
				fix := fmt.Sprintf("fix of %s in round %d", t.Name(), round)
				r.write(fix)
				r.wantAll(fix)
			}
		})
	}
}

// The leader is killed about when the workload goes back, and another one leads: it goes back, or it holds and says so. The
// content of its pods is never a mixture, and the other workload never rolls. Every other round nothing waits behind it.
func TestReturn_TheLeaderDies(t *testing.T) {
	product := run.Exclusive(t)
	var usual time.Duration
	count := max(2, *times/5)
	went := 0
	for round := range count {
		first, bad := fmt.Sprintf("first of %s in round %d", t.Name(), round), fmt.Sprintf("bad of %s in round %d", t.Name(), round)
		r := newRoom(t, first, failing("Deployment", "strict", "")[:1+round%2]...)
		m := &r.members[0]
		if usual == 0 {
			usual = r.goesBack("bad of " + t.Name())
			r.write(first + ", again")
			r.wantAll(first + ", again")
			first += ", again"
		}
		stamps, before := harness.Stamps(r.space.Get(m.name())), r.space.Counts()
		r.write(bad)
		kill := time.After(usual - time.Second + 2*time.Second*time.Duration(round)/time.Duration(count))
		r.space.Eventually("waiting until it has rolled", func() error {
			if is := harness.Stamps(r.space.Get(m.name())); fmt.Sprint(is) == fmt.Sprint(stamps) {
				return errors.New("it has not")
			}
			return nil
		})
		<-kill
		for _, controller := range product.Controllers {
			harness.Must(t, controller.Kill())
		}
		harness.Must(t, run.ForgetLeader(t.Context()))
		harness.Must(t, product.Start(t.Context()))
		r.space.EventuallyIn(2*time.Minute, "waiting until it has gone back, or it is said why it does not", func() error {
			if is := harness.Stamps(r.space.Get(m.name())); fmt.Sprint(is) == fmt.Sprint(stamps) {
				return nil
			}
			for _, event := range r.space.Events(m.name()) {
				if event.Reason == "ReturnImpossible" {
					t.Logf("round %d: %s", round, event.Note)
					return nil
				}
			}
			return fmt.Errorf("neither: %q", r.space.Notes(m.name()))
		})
		if is := harness.Stamps(r.space.Get(m.name())); fmt.Sprint(is) == fmt.Sprint(stamps) {
			went++
			r.wantAll(first)
		}
		r.wantStill(first, r.members[1:])
		if is := r.space.Counts()["deployment/other"]; is != before["deployment/other"] {
			t.Errorf("the other one has rolled: %+v, before %+v", is, before["deployment/other"])
		}
		fix := fmt.Sprintf("fix of %s in round %d", t.Name(), round)
		r.write(fix)
		r.wantAll(fix)
	}
	t.Logf("in %d of %d rounds it went back", went, count)
}

// goesBack writes bad content, and returns after how long the first member had its former stamps again.
func (r *room) goesBack(bad string) time.Duration {
	r.t.Helper()
	m, wrote := &r.members[0], time.Now()
	stamps := fmt.Sprint(harness.Stamps(r.space.Get(m.name())))
	r.write(bad)
	for _, carries := range []bool{false, true} {
		r.space.Eventually("waiting for its stamps to change", func() error {
			if is := fmt.Sprint(harness.Stamps(r.space.Get(m.name()))); (is == stamps) != carries {
				return errors.New("they have not changed")
			}
			return nil
		})
	}
	return time.Since(wrote)
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
