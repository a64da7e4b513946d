package controller

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

func workloadOf(uid, version string, names ...string) *Workload {
	s := &Workload{uid: types.UID(uid), resourceVersion: version}
	for _, name := range names {
		s.references = append(s.references, checksum.Reference{Source: configMap(name), Use: checksum.Startup, All: true})
	}
	return s
}

// For how long a workload makes no progress, by what its status tells each second.
func TestIndex_Standstill(t *testing.T) {
	user, began := workload.Ref{Kind: newCluster(t).kind, Namespace: "n", Name: "a"}, time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
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
			x := newIndex(func(workload.Ref) {}, func(workload.Ref, *Workload) []checksum.Source { return nil }, func() time.Time { return now })
			for i, rollout := range c.told {
				now = began.Add(time.Duration(i) * time.Second)
				s := workloadOf("1", strconv.Itoa(i+1))
				s.status = rollout
				x.put(user, s)
			}
			if got := now.Sub(x.get(user).still); got != c.want {
				t.Errorf("it stands for %s, want %s", got, c.want)
			}
		})
	}
}

func TestIndex_KnowsWhoUsesASource(t *testing.T) {
	kind := newCluster(t).kind
	a, b := workload.Ref{Kind: kind, Namespace: "n", Name: "a"}, workload.Ref{Kind: kind, Namespace: "n", Name: "b"}
	var woken []workload.Ref
	x := newIndex(func(user workload.Ref) { woken = append(woken, user) }, func(_ workload.Ref, s *Workload) (sources []checksum.Source) {
		for _, reference := range s.references {
			sources = append(sources, reference.Source)
		}
		return sources
	}, time.Now)

	x.put(a, workloadOf("1", "5", "c", "d"))
	x.put(b, workloadOf("2", "6", "c"))
	if got := x.users("n", configMap("c")); len(got) != 2 {
		t.Errorf("users of c: %v, want a and b", got)
	}
	if x.put(a, workloadOf("1", "4", "gone")) {
		t.Error("an older version of the same object was taken for news")
	}
	if len(x.users("n", configMap("gone"))) != 0 {
		t.Error("an older version of the same object replaced the newer")
	}
	if !x.put(a, workloadOf("3", "7", "d")) {
		t.Error("an object made anew under the same name was not taken")
	}
	if x.put(a, workloadOf("1", "5", "c")) {
		t.Error("an answer about the object before it was taken")
	}
	if got := x.users("n", configMap("c")); !slices.Equal(got, []workload.Ref{b}) {
		t.Errorf("users of c: %v, want b alone", got)
	}
	if x.put(b, workloadOf("2", "7", "c")) {
		t.Error("a write that changes nothing of interest was taken for news")
	}
	x.replace(kind, "", map[workload.Ref]*Workload{b: workloadOf("2", "3", "e")})
	if s := x.get(a); s != nil {
		t.Error("what a list lacks is still known")
	}
	if got := x.users("n", configMap("e")); !slices.Equal(got, []workload.Ref{b}) {
		t.Errorf("users of e: %v: a list is the truth, even with lower versions", got)
	}
	x.remove(b)
	x.renew(b, workloadOf("2", "9", "e"))
	if s := x.get(b); s != nil {
		t.Error("a late answer brought a deleted workload back")
	}
	if len(x.bySource) != 0 || len(x.workloads) != 0 {
		t.Errorf("something is left of removed workloads: %v %v", x.bySource, x.workloads)
	}

	x.put(a, workloadOf("1", "5", "c"))
	woken = nil
	x.reconsider("m")
	x.reconsider("n")
	if !slices.Equal(woken, []workload.Ref{a}) {
		t.Errorf("a change of the namespace woke %v, want a, once", woken)
	}
	if got := x.users("n", configMap("c")); !slices.Equal(got, []workload.Ref{a}) {
		t.Errorf("users of c: %v, want a", got)
	}
}

// What a workload says in its metadata alone counts at once: metadata raises no
// generation.
func TestIndex_WhatAWorkloadSaysIsNews(t *testing.T) {
	const domain = "reloader.stakater.com/"
	annotations := func(pairs ...string) map[string]any {
		says := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			says[pairs[i]] = pairs[i+1]
		}
		return map[string]any{"annotations": says}
	}
	owned := map[string]any{"ownerReferences": []any{map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "d", "controller": true}}}
	for about, test := range map[string]struct {
		was, is map[string]any
		news    bool
	}{
		"a dialect's annotation is added":         {annotations(), annotations(domain+"auto", "true"), true},
		"it is taken away":                        {annotations(domain+"auto", "true"), annotations(), true},
		"it names others":                         {annotations("configmap."+domain+"reload", "a"), annotations("configmap."+domain+"reload", "a,b"), true},
		"its expression is another":               {annotations("configmap."+domain+"reload", "a-.*"), annotations("configmap."+domain+"reload", "b-.*"), true},
		"it cannot be read any more":              {annotations("configmap."+domain+"reload", "a-.*"), annotations("configmap."+domain+"reload", "a-(.*"), true},
		"another dialect's extra is added":        {annotations("wave.pusher.com/update-on-config-change", "true"), annotations("wave.pusher.com/update-on-config-change", "true", "wave.pusher.com/extra-secrets", "s"), true},
		"somebody else rolls it from now on":      {annotations(), owned, true},
		"its expression is the same":              {annotations("configmap."+domain+"reload", "a-.*"), annotations("configmap."+domain+"reload", "a-.*"), false},
		"a dialect that does not count is nobody": {annotations(), annotations("keel.sh/policy", "all"), false},
	} {
		t.Run(about, func(t *testing.T) {
			c := newCluster(t)
			h := newHouse(t, c)
			h.options.Dialects = []checksum.Dialect{checksum.Reloader, checksum.Wave}
			h.options.Kinds = append(workload.Builtin(), workload.Known()...)
			d := c.deploy("d", "c")
			say := func(metadata map[string]any) {
				maps.Copy(c.objects[d]["metadata"].(map[string]any), metadata)
				c.annotate(d) // another version
			}
			say(test.was)
			h.see(t, d)
			for h.queue.Len() > 0 {
				h.next(t.Context())
			}
			h.index.users("shop", configMap("a-1")) // an expression that has matched is the same still
			say(test.is)
			h.see(t, d)
			if news := h.queue.Len() > 0; news != test.news {
				t.Errorf("woken: %v, want %v", news, test.news)
			}
		})
	}
}

// An answer may bring what others have said since the watch last told, and which the
// watch will not tell any more.
func TestIndex_WhatAnAnswerBringsIsNews(t *testing.T) {
	d := newCluster(t).deploy("d")
	woken := 0
	x := newIndex(func(workload.Ref) { woken++ }, func(workload.Ref, *Workload) []checksum.Source { return nil }, time.Now)
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
		s.settings, s.records.Stamps = step.settings, map[string]string{"configmap.configstamp.dev/c": step.stamp}
		if x.renew(d, s); woken != step.woken {
			t.Errorf("%s: woken %d times, want %d", step.about, woken, step.woken)
		}
	}
}
