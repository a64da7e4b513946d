package neighbours

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// How often a workload may be written for each edit of its sources and each act of people with it, and besides: by us, and
// by all, statuses too, of which a rollout of Argo's has about ten. More is a fight.
const (
	oursEach, oursBesides = 1, 2
	allEach, allBesides   = 25, 40
)

// People edit, promote, abort, undo and restart at random, six Rollouts and two Deployments that share sources; then all is
// promoted.
func TestRollouts_Random(t *testing.T) {
	a := startRollouts(t)
	const extra, token = "configmap/extra", "secret/token"
	f := a.newTeam(t,
		member{name: "stepped", strategy: stepped, manner: "strict", uses: []string{setting, extra}},
		member{name: "byhand", strategy: byHand, manner: "strict", uses: []string{setting, token}},
		member{name: "stepless", strategy: stepless, manner: "strict", uses: []string{setting}},
		member{name: "blue", strategy: blueGreen, manner: "strict", uses: []string{extra, token}},
		member{name: "bluebyhand", strategy: blueByHand, manner: "strict", uses: []string{setting, extra}},
		member{name: "ref", strategy: stepped, byRef: true, manner: "strict", uses: []string{setting, token}},
		member{name: "web", manner: "strict", uses: []string{setting, extra, token}},
		member{name: "api", manner: "strict", uses: []string{token}},
	)
	f.Quiet()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	before, since := f.Counts(), time.Now()
	edits, bad, acts, with := map[string]int{}, false, map[string]int{}, map[string]int{}
	for time.Since(since) < *long {
		source := strings.Fields(everySource)[random.IntN(3)]
		rollout := f.members[random.IntN(6)].name
		act := [...]string{"edit", "edit", "edit", "promote", "promote", "abort", "retry", "undo", "restart"}[random.IntN(9)]
		acts[act]++
		switch act {
		case "edit":
			word := "good"
			if source == setting && !bad && random.IntN(4) == 0 {
				word = "bad"
			}
			if source == setting {
				bad = word == "bad"
			}
			f.edit(source, word)
			edits[source]++
		case "retry":
			f.try("retry", "rollout", rollout)
			with[rollout]++
		default:
			f.try(act, rollout)
			with[rollout]++
		}
		time.Sleep(time.Duration(500+random.IntN(3500)) * time.Millisecond)
	}
	if bad {
		f.edit(setting, "good")
		edits[setting]++
	}
	f.promoteAll(with)
	f.settled()
	f.Quiet()

	now, written := f.Counts(), f.writes(since)
	for _, m := range f.members {
		most := 0
		for _, source := range m.uses {
			most += edits[source]
		}
		rolls, made := now[m.holder()].Rolls-before[m.holder()].Rolls, now[m.workload()].Revisions-before[m.workload()].Revisions
		// Argo undoes to a template in which the API server's defaults are written out: to Argo itself it is the same.
		if made > most || rolls > most+acts["undo"] || made == 0 {
			t.Errorf("%s has rolled %d times with %d new revisions for %d edits", m.name, rolls, made, most)
		}
		ours, all := 0, 0
		for _, q := range written {
			if q.Name == m.name && (q.Resource == "rollouts" || q.Resource == "deployments") {
				if all++; q.Agent == controller {
					ours++
				}
			}
		}
		causes := most + with[m.name]
		if ours > oursEach*causes+oursBesides || all > allEach*causes+allBesides || ours == 0 {
			t.Errorf("%s was written %d times by us, and %d times by all, for %d edits and %d acts", m.name, ours, all, most, with[m.name])
		}
		t.Logf("%-10s %2d edits of its sources, %2d acts: %2d rollouts, %2d revisions, %2d writes of ours, %3d of all", m.name, most, with[m.name], rolls, made, ours, all)
	}
	f.sayBusiest(written)
	t.Logf("acts %v, edits %v\n%s", acts, edits, strings.Join(tally(written), "\n"))

	// Quiet is quiet: nobody answers anybody.
	since = time.Now()
	time.Sleep(20 * time.Second)
	if written := f.writes(since); len(written) > 0 {
		t.Errorf("nobody does anything, and still there are requests:\n%s", strings.Join(tally(written), "\n"))
	}
}

// writes are those of all but kubelets, which tell of pods that go late.
func (f *team) writes(since time.Time) []request {
	f.t.Helper()
	return requests(f.t, since, func(q request) bool {
		return q.Namespace == f.Namespace && q.writes() && q.Resource != "events" && q.Agent != "kubelet"
	})
}

// sayBusiest tells how often each of the two controllers has written the object that it has written most often.
func (f *team) sayBusiest(written []request) {
	for _, agent := range []string{"rollouts-controller", controller} {
		object, n := busiest(written, agent)
		f.t.Logf("%s has written %s most often, %d times", agent, object, n)
	}
}

// try is an order of people that may come at the wrong moment.
func (f *team) try(args ...string) {
	f.t.Helper()
	if out, err := f.plugin(args...); err != nil {
		f.t.Logf("kubectl argo rollouts %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// promoteAll promotes and retries until all is at its newest revision.
func (f *team) promoteAll(with map[string]int) {
	f.t.Helper()
	f.EventuallyIn(5*time.Minute, "promoting all", func() error {
		time.Sleep(2 * time.Second)
		for _, m := range f.members {
			if m.kind() != "rollout" {
				continue
			}
			if aborted, _, _ := unstructured.NestedBool(f.Get(m.workload()).Object, "status", "abort"); aborted {
				f.try("retry", "rollout", m.name)
				with[m.name]++
			} else if f.phase(m.name) == "Paused" && slices.Contains([]string{byHand, blueByHand}, m.strategy) {
				f.try("promote", m.name)
				with[m.name]++
			}
		}
		for _, m := range f.members {
			if err := f.well(m); err != nil {
				return err
			}
			if err := f.untrue(m); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
		return nil
	})
}
