package waiting

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

func TestAHaltOutweighsARetry(t *testing.T) {
	w, ref := New(), workload.Ref{Namespace: "shop", Name: "d"}
	for _, step := range []struct {
		hold   reason.Reason
		failed bool
		want   reason.Reason
	}{
		{reason.NoReason, true, reason.Retry},
		{reason.Turn, false, reason.Retry}, // its turn, and the time to try again
		{reason.Halted, false, reason.Halted},
		{reason.Turn, false, reason.Turn},
	} {
		w.Looked(ref, Found{Why: step.hold}, step.failed, true, time.Now())
		if got := w.Tally(); len(got) != 1 || got[step.want.Label()].Count != 1 {
			t.Errorf("after %+v: %v", step, got)
		}
	}
}

// Each label has its count and the time of its first.
func TestTally(t *testing.T) {
	began := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	w := New()
	for i, at := range []struct {
		namespace string
		why       reason.Reason
		after     time.Duration
		fails     bool
	}{
		{"a", reason.Paused, 3, false}, {"a", reason.Paused, 1, false}, {"a", reason.OutsideWindow, 5, false},
		{"b", reason.Paused, 2, false}, {"b", reason.Turn, 4, true},
	} {
		w.Looked(workload.Ref{Namespace: at.namespace, Name: fmt.Sprint(i)}, Found{Why: at.why}, at.fails, at.fails, began.Add(at.after))
	}
	if got, want := w.Tally(), (map[string]Queued{"pause": {3, began.Add(1)}, "window": {1, began.Add(5)}, "retry": {1, began.Add(4)}}); !maps.Equal(got, want) {
		t.Errorf("by label %v, want %v", got, want)
	}
}

// A hundred workloads that wait for one thing are told of at once: when it is new, and then
// every half hour while it lasts.
func TestStanding_ManyAreOneAndEveryHalfHour(t *testing.T) {
	began := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	namespace := rollout.SourceRef{Namespace: "shop"}
	source := rollout.SourceRef{Namespace: "shop", Source: checksum.Source{Kind: checksum.ConfigMap, Name: "c"}}
	deployments, _ := workload.Builtin().Find("apps", "deployments")
	ref := func(i int) workload.Ref {
		return workload.Ref{Kind: deployments, Namespace: "shop", Name: fmt.Sprintf("d%02d", i)}
	}
	w := New()
	for i := range 100 {
		w.Looked(ref(i), Found{reason.Paused, []rollout.SourceRef{namespace}}, false, false, began)
	}
	w.Looked(ref(100), Found{reason.Halted, []rollout.SourceRef{source}}, false, false, began.Add(-time.Minute))
	w.Looked(ref(101), Found{reason.Turn, []rollout.SourceRef{source}}, false, false, began)
	tell := func(i int, why reason.Reason) {
		w.Told.First(Of(ref(i)), why, why.String()+" of "+ref(i).Name)
	}
	for i := range 100 {
		tell(i, reason.Paused)
	}
	tell(100, reason.Halted)
	tell(100, reason.Retry) // of the other one people were told nothing yet
	paused := "pause /shop 100 pause of d00 since 00:00:00"
	halted := "halted c/shop 1 halted of d100 since 23:59:00"
	for _, step := range []struct {
		after time.Duration
		do    func()
		want  []string
	}{
		{0, func() {}, []string{paused, halted}},
		{time.Minute, func() {}, nil},
		{29*time.Minute + 59*time.Second, func() {}, nil},
		{30 * time.Minute, func() {}, []string{paused + " again", halted + " again"}},
		{31 * time.Minute, func() {}, nil},
		{59 * time.Minute, func() { w.Looked(ref(100), Found{}, false, false, began) }, nil},
		{60 * time.Minute, func() {}, []string{paused + " again"}},
		{61 * time.Minute, func() {
			w.Looked(ref(100), Found{reason.Halted, []rollout.SourceRef{source}}, false, false, began.Add(-time.Minute))
		}, []string{halted}}, // it had ended: it is new
		{62 * time.Minute, func() { w.Looked(ref(100), Found{}, true, true, began.Add(time.Hour)) },
			[]string{"retry c/shop 1 retry of d100 since 01:00:00"}},
	} {
		step.do()
		var got []string
		for _, s := range w.Standing(began.Add(step.after)) {
			text := fmt.Sprintf("%s %s/%s %d %s since %s", s.Why.Label(), s.About.Source.Name, s.About.Namespace, len(s.Workloads), s.Text, s.Since.Format(time.TimeOnly))
			if s.Again {
				text += " again"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("after %s: %q, want %q", step.after, got, step.want)
		}
	}
}

// Reasons that have a label in common and not the event are told of each by its own; and what a
// workload waits for now is not told of where it waited before.
func TestStanding_EachEventByItself(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	source := []rollout.SourceRef{{Namespace: "shop", Source: checksum.Source{Kind: checksum.ConfigMap, Name: "c"}}}
	ref := func(name string) workload.Ref { return workload.Ref{Namespace: "shop", Name: name} }
	w := New()
	w.Looked(ref("gone"), Found{reason.SourceGone, source}, false, false, now)
	w.Looked(ref("held"), Found{reason.MissingSource, source}, false, false, now)
	w.Looked(ref("blocked"), Found{reason.Turn, source}, false, false, now)
	w.Looked(ref("blocked"), Found{Why: reason.RecordingBlocked}, false, false, now)
	w.Looked(ref("fails"), Found{reason.Turn, source}, false, false, now)
	w.Looked(ref("fails"), Found{}, true, true, now)
	for name, why := range map[string]reason.Reason{"gone": reason.SourceGone, "held": reason.MissingSource, "blocked": reason.RecordingBlocked, "fails": reason.Retry} {
		w.Told.First(Of(ref(name)), why, "words")
	}
	var got []string
	for _, s := range w.Standing(now) {
		got = append(got, fmt.Sprint(s.Why.Event(), " ", s.About.Source.Name, " ", s.Workloads[0].Name, " ", len(s.Workloads)))
	}
	if want := []string{"RecordingBlocked  blocked 1", "RolloutHeld c held 1", "SourceMissing c gone 1", "ReadmissionFailing c fails 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Who may write in one namespace names many sources: people are told of some at a time, of each in
// its turn, and of other namespaces at once.
func TestStanding_ANamespaceTakesTurnsWithItself(t *testing.T) {
	now, w, told := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), New(), map[rollout.SourceRef]int{}
	for namespace, sources := range map[string]int{"loud": 50, "shop": 1} {
		ref, found := workload.Ref{Namespace: namespace, Name: "web"}, Found{Why: reason.MissingSource}
		for i := range sources {
			found.About = append(found.About, rollout.SourceRef{Namespace: namespace, Source: checksum.Source{Kind: checksum.ConfigMap, Name: fmt.Sprint(i)}})
		}
		w.Looked(ref, found, false, false, now)
		w.Told.First(Of(ref), reason.MissingSource, "words")
	}
	for at := range 30 {
		named := map[string]int{}
		for _, s := range w.Standing(now.Add(time.Duration(at) * (Every + time.Minute))) {
			named[s.About.Namespace]++
			told[s.About]++
		}
		if named["loud"] > mostNamed || named["shop"] != 1 {
			t.Errorf("told %v", named)
		}
	}
	for about, times := range told {
		if least := 30 / 3; len(told) != 51 || times < least {
			t.Errorf("%v was told of %d times of %d", about, times, least)
		}
	}
}
