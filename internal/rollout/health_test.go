package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

var (
	start  = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	stamps = map[string]string{"configmap.configstamp.dev/c": "new"}
)

// A rollout that began at second 0 is looked at each second, until it is judged.
func TestHealth(t *testing.T) {
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	up := func(second int) workload.Pod {
		return workload.Pod{Name: "new", Node: "n", Stamps: stamps, Ready: true, Created: at(0), Started: at(second)}
	}
	old := workload.Pod{Name: "old", Stamps: map[string]string{"configmap.configstamp.dev/c": "old"}, Ready: true, Restarted: true, Started: at(-1000)}
	crashing := workload.Pod{Name: "new", Node: "n", Stamps: stamps, Trouble: "container app: CrashLoopBackOff", Restarted: true}
	late := func(second int) workload.Pod { // it crashes after three seconds, each time
		pod := up(0)
		switch phase := second % 13; {
		case second < 3:
		case phase < 3:
			pod.Started, pod.Restarted = at(second-phase), true
		default:
			pod = crashing
		}
		return pod
	}
	rolling := workload.Status{Phase: workload.Rolling, Deadline: true}
	waiting := workload.Pod{Name: "new", Stamps: stamps, Created: at(0)}
	starting := workload.Pod{Name: "new", Node: "n", Stamps: stamps, Created: at(0)}
	short := workload.Status{Phase: workload.Rolling, Wanted: 3, Updated: 3, Available: 2, Missing: 1}
	fell := short
	fell.Phase, fell.Why = workload.Failed, "ProgressDeadlineExceeded"
	done := workload.Status{Phase: workload.RolledOut, Available: 2, Updated: 2}
	daemonSet, _ := workload.Builtin().Find("apps", "daemonsets")
	daemons := func(observed, updated, available int) workload.Status {
		rollout, err := daemonSet.Status(fmt.Appendf(nil, `{"metadata":{"generation":2},"status":{"observedGeneration":%d,"desiredNumberScheduled":100,"updatedNumberScheduled":%d,"numberAvailable":%d}}`,
			observed, updated, available))
		if err != nil {
			t.Fatal(err)
		}
		return rollout
	}
	type now struct {
		status workload.Status
		pods   []workload.Pod
	}
	for sentence, c := range map[string]struct {
		then func(second int) now
		down map[string]bool
		// level is how many were available at its turn. blind tells that its pods have no selector.
		level int32
		blind bool
		want  State
		when  int // in seconds
		why   string
	}{
		"healthy is rolled out for the soak": {
			then: func(s int) now {
				if s < 5 {
					return now{rolling, []workload.Pod{old, up(1)}}
				}
				return now{done, []workload.Pod{up(1), up(4)}}
			}, want: Proven, when: 15,
		},
		"but for twice the crash deadline, once a container has ended with an error": {
			then: func(s int) now {
				pod := up(5)
				if pod.Restarted, pod.Crashed = true, true; s < 5 {
					pod.Ready, pod.Started = false, time.Time{}
					return now{rolling, []workload.Pod{old, pod}}
				}
				return now{done, []workload.Pod{pod}}
			}, want: Proven, when: 65,
		},
		"and no less than minReadySeconds": {
			then: func(int) now {
				slow := done
				slow.MinReady = 25 * time.Second
				return now{slow, []workload.Pod{up(0)}}
			}, want: Proven, when: 25,
		},
		"pods that are ready get further, if minReadySeconds is longer than the deadline": {
			then: func(s int) now {
				if s < 400 {
					return now{workload.Status{Phase: workload.Rolling, Wanted: 1, Updated: 1, Missing: 1, MinReady: 400 * time.Second}, []workload.Pod{up(0)}}
				}
				slow := done
				slow.MinReady = 400 * time.Second
				return now{slow, []workload.Pod{up(0)}}
			}, want: Proven, when: 800,
		},
		"what ends slowly is told": {
			then: func(int) now {
				slow := old
				slow.Name, slow.Deleting, slow.Ending, slow.Grace = "web-1", true, at(10), time.Hour
				return now{rolling, []workload.Pod{slow}}
			}, want: Failed, when: 300, why: "pod web-1 has been terminating for 4m50s, and may for 1h0m0s; it has made no progress for 5m0s",
		},
		"but not those that never become ready": {
			then: func(int) now {
				return now{workload.Status{Phase: workload.Rolling, Wanted: 1, Updated: 1, Missing: 1, MinReady: 400 * time.Second}, []workload.Pod{starting}}
			}, want: Failed, when: 300, why: "the containers of pod new have not started; it has made no progress for 5m0s",
		},
		"what fails is told with how its container has ended": {
			then: func(int) now {
				killed := crashing
				killed.Ended = "OOMKilled with exit code 137"
				return now{rolling, []workload.Pod{old, killed}}
			}, want: Failed, when: 35, why: "container app: CrashLoopBackOff, after OOMKilled with exit code 137 (1 of 1 new pods)",
		},
		"however long they are": {
			then: func(int) now {
				slow := done
				slow.MinReady = 400 * time.Second
				return now{slow, []workload.Pod{up(0)}}
			}, want: Proven, when: 400,
		},
		"a container that restarts begins the soak anew": {
			then: func(s int) now {
				pod := up(1)
				if s >= 8 {
					pod.Started, pod.Restarted = at(8), true
				}
				return now{done, []workload.Pod{pod, up(1)}}
			}, want: Proven, when: 20, // seen when the first soak was over
		},
		"an app without a probe that crashes after three seconds fails": {
			then: func(s int) now {
				if pod := late(s); pod.Trouble == "" {
					return now{done, []workload.Pod{pod, pod}}
				}
				return now{workload.Status{Phase: workload.Rolling, Updated: 2, Missing: 2, Deadline: true}, []workload.Pod{crashing, crashing}}
			}, want: Failed, when: 35, why: "container app: CrashLoopBackOff (2 of 2 new pods)",
		},
		"and so it does though the status never tells": {
			then: func(s int) now { return now{done, []workload.Pod{late(s), late(s)}} },
			want: Failed, when: 40, why: "its container restarts (2 of 2 new pods)",
		},
		"one of two that crashes is left to the controller": {
			then: func(s int) now {
				if s < 200 {
					return now{rolling, []workload.Pod{up(0), crashing}}
				}
				return now{workload.Status{Phase: workload.Failed, Why: "ProgressDeadlineExceeded", FailedAt: at(200)}, []workload.Pod{up(0), crashing}}
			}, want: Failed, when: 200, why: "pod new: container app: CrashLoopBackOff; its controller reports ProgressDeadlineExceeded",
		},
		"a deadline of its own that is longer does not count": {
			then: func(int) now { return now{rolling, []workload.Pod{up(0), crashing}} }, want: Failed, when: 300, why: "pod new: container app: CrashLoopBackOff; it has made no progress for 5m0s",
		},
		"one that stands at a pause of its own is waited for": {
			then: func(s int) now {
				if s < 900 {
					return now{workload.Status{Phase: workload.Suspended, Updated: 1, Available: 2, Missing: 1, Deadline: true}, []workload.Pod{up(0)}}
				}
				return now{workload.Status{Phase: workload.Failed, Why: "Degraded"}, []workload.Pod{up(0)}}
			}, want: Failed, when: 900, why: "its controller reports Degraded",
		},
		"one that crashes at a pause of its own has failed": {
			then: func(s int) now {
				return now{workload.Status{Phase: workload.Suspended, Updated: 1, Available: 2, Missing: 1, Deadline: true}, []workload.Pod{late(s)}}
			}, want: Failed, when: 35, why: "container app: CrashLoopBackOff (1 of 1 new pods)",
		},
		"a failure of the revision before does not count": {
			then: func(s int) now {
				if s < 4 {
					return now{workload.Status{Phase: workload.Failed, FailedAt: at(-100)}, nil}
				}
				return now{done, []workload.Pod{up(1)}}
			}, want: Proven, when: 14,
		},
		"images that cannot be pulled fail by the same deadline": {
			then: func(int) now {
				return now{rolling, []workload.Pod{old, {Name: "new", Node: "n", Stamps: stamps, Trouble: "container app: ImagePullBackOff"}}}
			}, want: Failed, when: 35, why: "container app: ImagePullBackOff (1 of 1 new pods)",
		},
		"what has no deadline of its own fails without progress": {
			then: func(s int) now {
				return now{workload.Status{Phase: workload.Rolling, Updated: int32(min(s, 100))}, []workload.Pod{old}}
			}, want: Failed, when: 400, why: "pods are missing and none is created; it has made no progress for 5m0s",
		},
		"nodes that go away bring nothing to a standstill": {
			then: func(s int) now { // one in twelve seconds is new; of a hundred, thirty old ones go
				nodes, updated := int32(100), int32(s/12)
				if s >= 360 {
					nodes = 70
				}
				if updated >= nodes {
					return now{workload.Status{Phase: workload.RolledOut, PerNode: true, Updated: nodes, Available: nodes}, []workload.Pod{up(0)}}
				}
				return now{workload.Status{Phase: workload.Rolling, PerNode: true, Updated: updated, Available: nodes - 1, Missing: nodes - updated}, []workload.Pod{up(0)}}
			}, want: Proven, when: 850,
		},
		"nor does what the status tells of the revision before": {
			then: func(s int) now { // one in eight seconds
				switch updated := s / 8; {
				case s == 0:
					return now{daemons(1, 100, 100), nil}
				case updated < 100:
					return now{daemons(2, updated, 99), []workload.Pod{up(0)}}
				}
				return now{daemons(2, 100, 100), []workload.Pod{up(0)}}
			}, want: Proven, when: 810,
		},
		"what was rolled out and never lasted fails without progress": {
			then: func(s int) now {
				if s%7 == 0 {
					return now{done, []workload.Pod{up(s)}}
				}
				return now{rolling, []workload.Pod{up(s)}}
			}, want: Failed, when: 300, why: "it has made no progress for 5m0s",
		},
		"what cannot tell is settled at once": {
			then: func(int) now { return now{workload.Status{Waits: "it is paused"}, nil} }, want: Untold,
		},
		"a status that is the same again after a change speaks of the new revision": {
			then: func(s int) now {
				switch {
				case s < 5:
					return now{workload.Status{Phase: workload.RolledOut, StatusHash: 1}, nil}
				case s < 10:
					return now{workload.Status{Phase: workload.Rolling, StatusHash: 2}, nil}
				}
				return now{workload.Status{Phase: workload.RolledOut, StatusHash: 1}, nil}
			}, blind: true, want: Proven, when: 20,
		},
		"a failure that may be of the revision before does not count": {
			then: func(int) now { return now{workload.Status{Phase: workload.Failed, StatusHash: 1}, nil} }, blind: true, want: Untold, when: 300,
		},
		"nodes that are not ready are discounted": {
			then: func(int) now {
				pod, gone := up(0), old
				pod.Node, gone.Node, gone.Ready = "a", "b", false
				return now{workload.Status{Phase: workload.Rolling, PerNode: true, Missing: 1}, []workload.Pod{pod, gone}}
			}, down: map[string]bool{"b": true}, want: Proven, when: 20,
		},
		"nodes that are ready are not": {
			then: func(int) now {
				pod, gone := up(0), old
				pod.Node, gone.Node, gone.Ready = "a", "b", false
				return now{workload.Status{Phase: workload.Rolling, PerNode: true, Missing: 1}, []workload.Pod{pod, gone}}
			}, want: Failed, when: 300, why: "it has made no progress for 5m0s",
		},
		"nodes that are ready are not, though others lack as many": {
			then: func(int) now {
				pod, gone, slow := up(0), old, old
				pod.Node, gone.Node, gone.Ready, slow.Node = "a", "b", false, "c"
				return now{workload.Status{Phase: workload.Rolling, PerNode: true, Missing: 1}, []workload.Pod{pod, gone, slow}}
			}, down: map[string]bool{"b": true}, want: Untold, when: 300, // they keep it from going on
		},
		"a rollout that nodes keep from beginning cannot tell": {
			then: func(int) now {
				gone, slow := old, old
				gone.Node, gone.Ready, slow.Node = "b", false, "c"
				return now{workload.Status{Phase: workload.Rolling, PerNode: true, Missing: 2}, []workload.Pod{gone, slow}}
			}, down: map[string]bool{"b": true}, want: Untold, when: 300,
		},
		"but not when something new is not ready elsewhere": {
			then: func(int) now {
				hangs, gone := up(0), old
				hangs.Node, hangs.Ready, gone.Node, gone.Ready = "a", false, "b", false
				return now{workload.Status{Phase: workload.Rolling, PerNode: true, Missing: 2}, []workload.Pod{hangs, gone}}
			}, down: map[string]bool{"b": true}, want: Failed, when: 300, why: "pod new is not ready; it has made no progress for 5m0s",
		},
		"a pod that is never made on a node that is not ready is no matter": {
			then: func(int) now {
				pod := up(0)
				pod.Node = "a"
				return now{workload.Status{Phase: workload.Rolling, PerNode: true, Missing: 1, Updated: 2, Available: 1},
					[]workload.Pod{pod, {Name: "new", Node: "b", Stamps: stamps}}}
			}, down: map[string]bool{"b": true}, want: Proven, when: 20,
		},
		"nor is one that cannot pull its image there, while others still roll": {
			then: func(s int) now {
				stuck := workload.Pod{Name: "new", Node: "b", Stamps: stamps, Trouble: "container app: ImagePullBackOff"}
				before := old
				before.Node = "a"
				if s < 100 {
					return now{workload.Status{Phase: workload.Rolling, PerNode: true, Missing: 2, Updated: 1, Available: 1}, []workload.Pod{before, stuck}}
				}
				pod := up(100)
				pod.Node = "a"
				return now{workload.Status{Phase: workload.Rolling, PerNode: true, Missing: 1, Updated: 2, Available: 1}, []workload.Pod{pod, stuck}}
			}, down: map[string]bool{"b": true}, want: Proven, when: 120,
		},
		"and it hides no crash on a node that is ready": {
			then: func(int) now {
				here := crashing
				here.Node = "a"
				return now{workload.Status{Phase: workload.Rolling, PerNode: true, Missing: 2, Updated: 2},
					[]workload.Pod{here, {Name: "new", Node: "b", Stamps: stamps}}}
			}, down: map[string]bool{"b": true}, want: Failed, when: 40, why: "container app: CrashLoopBackOff (1 of 1 new pods)",
		},
		"when no node is ready, nobody can tell": {
			then: func(int) now {
				return now{workload.Status{Phase: workload.Rolling, PerNode: true, Missing: 1, Updated: 1}, []workload.Pod{{Name: "new", Node: "b", Stamps: stamps}}}
			}, down: map[string]bool{"b": true}, want: Untold, when: 300,
		},
		"other kinds are held to their pods, wherever they are": {
			then: func(int) now {
				here := crashing
				here.Node = "b"
				return now{rolling, []workload.Pod{here}}
			}, down: map[string]bool{"b": true}, want: Failed, when: 35, why: "container app: CrashLoopBackOff (1 of 1 new pods)",
		},
		"kinds whose pods nobody finds are healthy by what they say": {
			then: func(int) now { return now{done, nil} }, blind: true, want: Proven, when: 10,
		},
		"as many as before are enough, as no content keeps a pod from a node": {
			then: func(int) now { return now{short, []workload.Pod{up(0), up(0), waiting}} }, level: 2, want: Proven, when: 15,
		},
		"whatever its own controller says of that": {
			then: func(s int) now {
				if s < 20 {
					return now{workload.Status{Phase: workload.Rolling, Wanted: 3, Updated: 2, Old: true, Available: 2, Missing: 2}, []workload.Pod{up(0), waiting, old}}
				}
				return now{fell, []workload.Pod{up(0), up(0), waiting}}
			}, level: 2, want: Proven, when: 30,
		},
		"who lost one more waits for a node with that as well": {
			then: func(int) now {
				lost := short
				lost.Available, lost.Missing = 1, 2
				return now{lost, []workload.Pod{up(0), waiting, waiting}}
			}, level: 2, want: Proven, when: 15,
		},
		"fewer than before are not enough": {
			then: func(int) now { return now{short, []workload.Pod{up(0), up(0), starting}} }, level: 3, want: Failed, when: 300, why: "the containers of pod new have not started; it has made no progress for 5m0s",
		},
		"nor are as many of which one is in trouble": {
			then: func(int) now { return now{fell, []workload.Pod{up(0), up(0), crashing}} }, level: 2, want: Failed, when: 0, why: "pod new: container app: CrashLoopBackOff; its controller reports ProgressDeadlineExceeded",
		},
		"nor some of the revision before": {
			then: func(int) now {
				left := short
				left.Old = true
				return now{left, []workload.Pod{up(0), old, waiting}}
			}, level: 2, want: Failed, when: 300, why: "pod new waits for a node (no reason is given); it has made no progress for 5m0s",
		},
		"of one that had none, its own controller alone decides": {
			then: func(int) now { return now{short, []workload.Pod{up(0), up(0), waiting}} }, want: Failed, when: 300, why: "pod new waits for a node (no reason is given); it has made no progress for 5m0s",
		},
		"more are not wanted than are wanted now": {
			then: func(int) now {
				scaled := short
				scaled.Wanted = 2
				return now{scaled, []workload.Pod{up(0), up(0)}}
			}, level: 5, want: Proven, when: 15,
		},
		"its soak goes on while its own controller has not seen yet that it was scaled": {
			then: func(s int) now {
				if s < 5 || s > 8 {
					return now{done, []workload.Pod{up(0)}}
				}
				return now{workload.Status{Phase: workload.Rolling, Behind: true, Wanted: 4, Available: 2, Missing: 4, Old: true}, []workload.Pod{up(0)}}
			}, level: 2, want: Proven, when: 10,
		},
		"whose pods nobody finds is as before by its status": {
			then: func(int) now { return now{fell, nil} }, level: 2, blind: true, want: Proven, when: 10,
		},
		"pods that are not made yet are waited for": {
			then: func(s int) now {
				if s < 20 {
					return now{done, []workload.Pod{old}}
				}
				return now{done, []workload.Pod{up(20)}}
			}, want: Proven, when: 30,
		},
		"one early restart is no failure, however long the soak": {
			then: func(int) now {
				pod := up(2)
				pod.Restarted = true
				slow := done
				slow.MinReady = time.Minute
				return now{slow, []workload.Pod{pod}}
			}, want: Proven, when: 60,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := newPatient()
			p.down, p.blind, p.trial.level = c.down, c.blind, c.level
			for second := range 1000 {
				is := c.then(second)
				p.status, p.pods = is.status, is.pods
				how, why := p.judge(second)
				if how == OnTrial {
					continue
				}
				if how != c.want || second != c.when || why != c.why {
					t.Errorf("judged %v (%q) after %d seconds, want %v (%q) after %d", how, why, second, c.want, c.why, c.when)
				}
				return
			}
			t.Error("never judged")
		})
	}
}

// The source holds something else from second 20 to 25. Containers that started since then prove nothing.
func TestHealth_ContentReturns(t *testing.T) {
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	up := func(name string, second int) workload.Pod {
		return workload.Pod{Name: name, Node: "n", Stamps: stamps, Ready: true, Created: at(0), Started: at(second)}
	}
	restarted := up("a", 23)
	restarted.Restarted = true
	for sentence, c := range map[string]struct {
		pods  []workload.Pod // from second 23 on
		later []workload.Pod // from second 200 on, if any
		slow  bool           // it is rolled out from second 30 on, not from 5
		blind bool
		want  State
		when  int
	}{
		"its pods have run since before":                 {pods: []workload.Pod{up("a", 3)}, want: Proven, when: 65},
		"they have, and it was not yet well":             {pods: []workload.Pod{up("a", 3)}, slow: true, want: Proven, when: 90},
		"one was replaced meanwhile":                     {pods: []workload.Pod{up("a", 3), up("b", 22)}, want: Failed, when: 25},
		"one has restarted meanwhile":                    {pods: []workload.Pod{restarted}, want: Failed, when: 25},
		"it was replaced meanwhile, and once more since": {pods: []workload.Pod{up("b", 22)}, later: []workload.Pod{up("c", 201)}, want: Proven, when: 270},
		"its pods cannot be listed, and it was well":     {blind: true, want: Proven, when: 65},
		"its pods cannot be listed, and it was not":      {blind: true, slow: true, want: Failed, when: 30},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := newPatient()
			p.blind, p.trial.level = c.blind, 2
			p.limits.Soak = time.Minute
			var how State
			for second := range 1000 {
				p.status = workload.Status{Phase: workload.RolledOut, Wanted: 2, Updated: 2, Available: 2}
				if second < 5 || c.slow && second < 30 || c.later != nil && second >= 200 && second < 206 {
					p.status = workload.Status{Phase: workload.Rolling, Wanted: 2, Updated: 2, Available: 1, Missing: 1}
				}
				switch {
				case c.blind:
				case second < 23:
					p.pods = []workload.Pod{up("a", 3)}
				case second < 200 || c.later == nil:
					p.pods = c.pods
				default:
					p.pods = c.later
				}
				if second == 25 {
					p.trial.health.doubts(at(20))
				}
				how, _ = p.judge(second)
				if p.trial.failed = p.trial.failed || how == Failed; how == OnTrial || how == Failed && c.later != nil {
					continue
				}
				if how != c.want || second != c.when {
					t.Errorf("judged %v after %d seconds, want %v after %d", how, second, c.want, c.when)
				}
				return
			}
			t.Errorf("never judged; the last word was %v", how)
		})
	}
}

// patient is a rollout that is looked at by hand.
type patient struct {
	trial  *trial
	limits Limits
	facts  Facts
	status workload.Status
	pods   []workload.Pod
	blind  bool
	down   map[string]bool
	lists  int
}

func newPatient() *patient {
	return &patient{
		trial: &trial{began: start}, facts: Facts{Records: checksum.Records{Stamps: stamps}},
		limits: Limits{Step: 1, Soak: 10 * time.Second, CrashDeadline: 30 * time.Second, RolloutDeadline: 5 * time.Minute},
	}
}

// judge tells how it is after some seconds.
func (p *patient) judge(second int) (State, string) {
	f := p.facts
	for f.Status = p.status; ; {
		p.trial.health.soak = p.limits.soak(&f)
		is := p.trial.judge(&f, &p.limits, start.Add(time.Duration(second)*time.Second))
		if !is.need.Any() {
			why := ""
			if is.why != nil {
				why = is.why.String()
			}
			return is.state, why
		}
		if f.Pods == nil {
			p.lists++
			if f.Pods = (&Pods{All: p.pods}); p.blind {
				f.Pods.Access = Unselected
			}
		}
		f.Nodes = map[string]bool{}
		for _, name := range is.need.Nodes {
			f.Nodes[name] = !p.down[name]
		}
	}
}

// at best: that it has never been better does not hide it.
func TestAFailedDaemonSetThatRecoversIsFoundSoon(t *testing.T) {
	p := newPatient()
	p.down = map[string]bool{"b": true}
	up := workload.Pod{Name: "new", Node: "a", Stamps: stamps, Ready: true, Created: start, Started: start}
	lost := workload.Pod{Name: "new-too", Node: "b", Stamps: stamps, Created: start}
	crashing := workload.Pod{Name: "new", Node: "a", Stamps: stamps, Created: start, Restarted: true, Trouble: "container app: CrashLoopBackOff"}
	for second := range 3600 {
		p.pods = []workload.Pod{up, lost}
		p.status = workload.Status{Phase: workload.Rolling, PerNode: true, Updated: 2, Available: 1, Missing: 1}
		if second >= 4 && second < 1800 {
			p.pods = []workload.Pod{crashing, lost}
			p.status.Available, p.status.Missing = 0, 2
		}
		how, _ := p.judge(second)
		if how == Failed {
			p.trial.failed = true
		}
		if how == Proven {
			if !p.trial.failed || second < 1800 || second > 1800+60 {
				t.Errorf("healthy after %d seconds (it failed: %t), want it within a minute from 1800", second, p.trial.failed)
			}
			return
		}
	}
	t.Error("never healthy")
}

// A canary that has come to its pause lets others begin once its new pods have been up for the soak, and is looked at
// seldom then; one that has none yet is as well. One that crashes there lets no other begin.
func TestACanaryStandsWhenItsPodsHaveBeenUp(t *testing.T) {
	up := workload.Pod{Name: "new", Node: "n", Stamps: stamps, Ready: true, Created: start, Started: start}
	crashing := workload.Pod{Name: "new", Node: "n", Stamps: stamps, Trouble: "container app: CrashLoopBackOff", Restarted: true}
	for sentence, c := range map[string]struct {
		pods func(second int) []workload.Pod
		when int // -1: never
	}{
		"its pod is up":     {func(int) []workload.Pod { return []workload.Pod{up} }, 15},
		"it has no pod yet": {func(int) []workload.Pod { return nil }, 15},
		"it crashes after seven seconds": {func(second int) []workload.Pod {
			if second < 7 {
				return []workload.Pod{up}
			}
			return []workload.Pod{crashing}
		}, -1},
	} {
		t.Run(sentence, func(t *testing.T) {
			p, stood := newPatient(), -1
			p.status = workload.Status{Phase: workload.Suspended, Updated: 1, Available: 2, Missing: 1, Deadline: true}
			for second := range 3600 {
				p.pods = c.pods(second)
				how, _ := p.judge(second)
				p.facts.Status = p.status
				switch {
				case how == Failed && c.when < 0 && stood < 0:
					return
				case how != OnTrial:
					t.Fatalf("judged %v after %d seconds", how, second)
				case stood < 0 && p.trial.stands(&p.facts, start.Add(time.Duration(second)*time.Second)):
					stood, p.trial.standing = second, true
				}
			}
			if stood != c.when {
				t.Errorf("it stands after %d seconds, want %d", stood, c.when)
			}
			if p.lists > 15 {
				t.Errorf("its pods were listed %d times", p.lists)
			}
		})
	}
}

// A DaemonSet of 500 pods replaces one in twenty seconds, each of which is well.
func TestPodsOfASlowRolloutAreSeldomListed(t *testing.T) {
	p := newPatient()
	for second := range 10_000 {
		updated := int32(second / 20)
		p.pods = []workload.Pod{{Name: "first", Node: "a", Stamps: stamps, Ready: second >= 20, Created: start}}
		p.status = workload.Status{Phase: workload.Rolling, PerNode: true, Updated: updated, Available: 499, Missing: 500 - updated}
		if how, why := p.judge(second); how != OnTrial {
			t.Fatalf("judged %v (%s) after %d seconds", how, why, second)
		}
	}
	if p.lists > 12 {
		t.Errorf("its pods were listed %d times", p.lists)
	}
}

// A DaemonSet with a node that is not ready has failed, and is as well again as it was
