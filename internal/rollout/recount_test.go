package rollout

import (
	"slices"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// single is a cluster of one workload, which all sources concern.
type single struct{ ref workload.Ref }

func (s single) Using(SourceRef) []workload.Ref      { return []workload.Ref{s.ref} }
func (s single) Content(SourceRef) *checksum.Content { return nil }
func (s single) Written(SourceRef) time.Time         { return time.Time{} }
func (s single) Copies(checksum.Source) []SourceRef  { return nil }
func (s single) Workloads() int                      { return 1 }

// After a panic all tallies are right again, and who had the turn is looked at, as the
// orders that told of it may be lost.
func TestRecount_MakesTalliesAnewAndLosesNoTurn(t *testing.T) {
	kind, _ := workload.Builtin().Find("apps", "deployments")
	ref, source := workload.Ref{Kind: kind, Namespace: "shop", Name: "web-app"}, checksum.Source{Kind: checksum.ConfigMap, Name: "web"}
	p := New(Limits{Step: 1, Soak: 10 * time.Second, RolloutDeadline: time.Minute}, single{ref})
	p.Lead(nil, start)
	r := p.of(ref)
	p.wait(r, waiter{ref: ref, sources: []checksum.Source{source}, due: start}, start)
	p.seen(r, p.Mark(), start)
	if out := p.Next(start); !slices.Equal(out.Roll, []workload.Ref{ref}) {
		t.Fatalf("%v may roll, want the workload: the test shows nothing", out.Roll)
	}
	p.under, p.underIn = 7, map[string]int{"shop": 7}
	r.waits.on[0].tally = tally{under: 7}
	p.Requeues()
	p.Recount(start)
	if err := p.Check(start); err != nil {
		t.Error(err)
	}
	if requeues := p.Requeues(); !slices.Contains(requeues, Requeue{Workload: ref}) {
		t.Errorf("%v are looked at, want the workload whose turn has come", requeues)
	}
}

// Of a source that changes again and again people are told once an hour.
func TestPace_TellsOfASourceOnceAnHour(t *testing.T) {
	ref, hot := workload.Ref{Namespace: "shop", Name: "web-app"}, checksum.Source{Kind: checksum.ConfigMap, Name: "hot"}
	p := New(Limits{Settle: time.Second}, single{ref})
	for range paceRolls {
		p.Rolled(ref, "uid", []checksum.Source{hot}, start)
	}
	for _, c := range []struct {
		after time.Duration
		tells bool
	}{{0, true}, {59 * time.Minute, false}, {time.Hour, true}} {
		is, tell := p.Hot(ref, "uid", start.Add(c.after))
		if !slices.Equal(is, []checksum.Source{hot}) || slices.Contains(tell, hot) != c.tells {
			t.Errorf("after %s: hot %v, people are told of %v; want them told: %t", c.after, is, tell, c.tells)
		}
	}
}
