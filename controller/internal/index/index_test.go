package index

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

func workloadOf(uid, version string, names ...string) *Workload {
	s := &Workload{UID: types.UID(uid), ResourceVersion: version}
	for _, name := range names {
		s.References = append(s.References, checksum.Reference{Source: configMap(name), Use: checksum.Startup, All: true})
	}
	return s
}

// For how long a workload makes no progress, by what its status tells each second.
func TestIndex_Standstill(t *testing.T) {
	ref, began := workload.Ref{Kind: deployments(), Namespace: "n", Name: "a"}, time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	rolling := func(updated, available, missing int32) workload.Status {
		return workload.Status{Phase: workload.Rolling, Updated: updated, Available: available, Missing: missing}
	}
	for sentence, c := range map[string]struct {
		told []workload.Status
		want time.Duration
	}{
		"nothing comes":                 {[]workload.Status{rolling(1, 2, 2), rolling(1, 2, 2), rolling(1, 2, 2)}, 2 * time.Second},
		"one is new":                    {[]workload.Status{rolling(1, 2, 2), rolling(1, 2, 2), rolling(2, 2, 1)}, 0},
		"it crashes, and comes back":    {[]workload.Status{rolling(1, 2, 2), rolling(1, 1, 2), rolling(1, 2, 2)}, 2 * time.Second},
		"nodes go, and then one is new": {[]workload.Status{rolling(30, 99, 70), rolling(30, 69, 40), rolling(31, 69, 39)}, 0},
		"nodes go, and then nothing":    {[]workload.Status{rolling(30, 99, 70), rolling(30, 69, 40), rolling(30, 69, 40)}, time.Second},
		"nodes go and come":             {[]workload.Status{rolling(30, 69, 40), rolling(30, 99, 70), rolling(30, 69, 40), rolling(30, 99, 70)}, 2 * time.Second},
	} {
		t.Run(sentence, func(t *testing.T) {
			now := began
			x := New(func(workload.Ref) {}, func(workload.Ref, *Workload) []checksum.Source { return nil }, func() time.Time { return now })
			for i, rollout := range c.told {
				now = began.Add(time.Duration(i) * time.Second)
				s := workloadOf("1", strconv.Itoa(i+1))
				s.Status = rollout
				x.put(ref, s)
			}
			if got := now.Sub(x.Get(ref).Standstill.Since); got != c.want {
				t.Errorf("it stands for %s, want %s", got, c.want)
			}
		})
	}
}

func TestIndex_KnowsWhoUsesASource(t *testing.T) {
	kind := deployments()
	a, b := workload.Ref{Kind: kind, Namespace: "n", Name: "a"}, workload.Ref{Kind: kind, Namespace: "n", Name: "b"}
	var woken []workload.Ref
	x := New(func(ref workload.Ref) { woken = append(woken, ref) }, func(_ workload.Ref, s *Workload) (sources []checksum.Source) {
		for _, reference := range s.References {
			sources = append(sources, reference.Source)
		}
		return sources
	}, time.Now)

	x.put(a, workloadOf("1", "5", "c", "d"))
	x.put(b, workloadOf("2", "6", "c"))
	if got := x.Using("n", configMap("c")); len(got) != 2 {
		t.Errorf("users of c: %v, want a and b", got)
	}
	if x.put(a, workloadOf("1", "4", "gone")) {
		t.Error("an older version of the same object was taken for news")
	}
	if len(x.Using("n", configMap("gone"))) != 0 {
		t.Error("an older version of the same object replaced the newer")
	}
	if !x.put(a, workloadOf("3", "7", "d")) {
		t.Error("an object made anew under the same name was not taken")
	}
	if x.put(a, workloadOf("1", "5", "c")) {
		t.Error("an answer about the object before it was taken")
	}
	if got := x.Using("n", configMap("c")); !slices.Equal(got, []workload.Ref{b}) {
		t.Errorf("users of c: %v, want b alone", got)
	}
	if x.put(b, workloadOf("2", "7", "c")) {
		t.Error("a write that changes nothing of interest was taken for news")
	}
	x.Replace(kind, "", map[workload.Ref]*Workload{b: workloadOf("2", "3", "e")})
	if s := x.Get(a); s != nil {
		t.Error("what a list lacks is still known")
	}
	if got := x.Using("n", configMap("e")); !slices.Equal(got, []workload.Ref{b}) {
		t.Errorf("users of e: %v: a list is the truth, even with lower versions", got)
	}
	x.Told(b, nil)
	x.Renew(b, workloadOf("2", "9", "e"))
	if s := x.Get(b); s != nil {
		t.Error("a late answer brought a deleted workload back")
	}
	if len(x.bySource) != 0 || len(x.workloads) != 0 {
		t.Errorf("something is left of removed workloads: %v %v", x.bySource, x.workloads)
	}

	x.put(a, workloadOf("1", "5", "c"))
	woken = nil
	x.Reconsider("m")
	x.Reconsider("n")
	if !slices.Equal(woken, []workload.Ref{a}) {
		t.Errorf("a change of the namespace woke %v, want a, once", woken)
	}
	if got := x.Using("n", configMap("c")); !slices.Equal(got, []workload.Ref{a}) {
		t.Errorf("users of c: %v, want a", got)
	}
}

// An answer may bring what others have said since the watch last told, and which the
// watch will not tell any more.
func TestIndex_WhatAnAnswerBringsIsNews(t *testing.T) {
	d := workload.Ref{Kind: deployments(), Namespace: "shop", Name: "d"}
	woken := 0
	x := New(func(workload.Ref) { woken++ }, func(workload.Ref, *Workload) []checksum.Source { return nil }, time.Now)
	x.put(d, workloadOf("1", "5"))
	for _, step := range []struct {
		about, version string
		settings       map[string]string
		stamp          string
		woken          int
	}{
		{"our own stamp", "6", nil, "v1", 0},
		{"and somebody's pause", "8", map[string]string{"configstamp.dev/pause": "true"}, "v2", 1},
		{"an answer from before", "7", nil, "v1", 1},
	} {
		s := workloadOf("1", step.version)
		s.Settings, s.Records.Stamps = step.settings, map[string]string{"configmap.configstamp.dev/c": step.stamp}
		if x.Renew(d, s); woken != step.woken {
			t.Errorf("%s: woken %d times, want %d", step.about, woken, step.woken)
		}
	}
}

// A Deployment without replicas is as far as the Rollout that runs its template.
func TestIndex_WhoRunsATemplateTellsHowFarItIs(t *testing.T) {
	rollouts, _ := workload.Known().Find("argoproj.io", "rollouts")
	d, r := workload.Ref{Kind: deployments(), Namespace: "shop", Name: "d"}, workload.Ref{Kind: rollouts, Namespace: "shop", Name: "r"}
	var woken []workload.Ref
	x := New(func(ref workload.Ref) { woken = append(woken, ref) }, func(workload.Ref, *Workload) []checksum.Source { return nil }, time.Now)
	version := 0
	told := func(ref workload.Ref, generation, replicas int32, phase workload.Phase, of *workload.TemplateOf) {
		version++
		s := workloadOf("1", strconv.Itoa(version))
		s.Generation, s.Status, s.TemplateOf = int64(generation), workload.Status{Phase: phase, Wanted: replicas}, of
		woken = nil
		x.Told(ref, s)
	}
	want := func(about string, phase workload.Phase, wakes ...workload.Ref) {
		t.Helper()
		if is := x.Get(d).Status.Phase; is != phase || !slices.Equal(woken, wakes) {
			t.Errorf("%s: its phase is %d and %v are woken, want %d and %v", about, is, woken, phase, wakes)
		}
	}
	seen := func(generation int64) *workload.TemplateOf { return &workload.TemplateOf{Ref: d, Observed: generation} }

	told(d, 1, 0, workload.Unreported, nil)
	want("nobody runs its template", workload.Unreported, d)
	told(r, 1, 2, workload.RolledOut, seen(1))
	want("the Rollout is there", workload.RolledOut, r, d)
	told(d, 2, 0, workload.Unreported, nil)
	want("it has another template", workload.Rolling, d)
	told(r, 1, 2, workload.RolledOut, seen(1))
	want("which the Rollout has not seen", workload.Rolling)
	told(r, 1, 2, workload.Failed, seen(2))
	want("it has failed", workload.Failed, r, d)
	x.Reconsider("shop")
	want("a policy has changed", workload.Failed, woken...)
	told(d, 3, 2, workload.RolledOut, nil)
	want("it has replicas of its own again", workload.RolledOut, d)
	told(d, 4, 0, workload.Unreported, nil)
	told(r, 2, 2, workload.RolledOut, nil)
	want("the Rollout has a template of its own", workload.Unreported, r, d)
	told(r, 3, 2, workload.RolledOut, seen(4))
	x.Replace(rollouts, "", nil)
	if want("the Rollout is gone", workload.Unreported, r, d, r, d); len(x.runBy) != 0 {
		t.Errorf("something is left of it: %v", x.runBy)
	}

	// It is renamed: both are there for a while. The first by name counts, whoever told last.
	older := workload.Ref{Kind: rollouts, Namespace: "shop", Name: "zz"}
	told(older, 1, 2, workload.RolledOut, seen(4))
	told(r, 1, 2, workload.Failed, seen(4))
	want("one before it by name has failed", workload.Failed, r, d)
	told(older, 2, 2, workload.RolledOut, seen(4))
	want("the other tells again", workload.Failed, older)
	x.Replace(rollouts, "", map[workload.Ref]*Workload{older: x.Get(older)})
	if is := x.Get(d).Status.Phase; is != workload.RolledOut || x.runBy[d] != older {
		t.Errorf("the first is gone: its phase is %d, and %v runs it", is, x.runBy[d])
	}
}

// put has the index take a workload, and wakes nobody.
func (x *Index) put(ref workload.Ref, s *Workload) (news bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.take(ref, s)
}

func deployments() *workload.Kind {
	kind, _ := workload.Builtin().Find("apps", "deployments")
	return kind
}

func configMap(name string) checksum.Source {
	return checksum.Source{Kind: checksum.ConfigMap, Name: name}
}
