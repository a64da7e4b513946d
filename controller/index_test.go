package controller

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

func subjectOf(uid, version string, names ...string) *subject {
	s := &subject{uid: types.UID(uid), resourceVersion: version}
	for _, name := range names {
		s.references = append(s.references, checksum.Reference{Source: configMap(name), Use: checksum.Startup, All: true})
	}
	return s
}

// For how long a workload makes no progress, by what its status tells each second.
func TestStandstill(t *testing.T) {
	user, began := ref{newCluster(t).kind, "n", "a"}, time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	rolling := func(updated, available, missing int32) workload.Rollout {
		return workload.Rollout{Phase: workload.Rolling, Updated: updated, Available: available, Missing: missing}
	}
	for sentence, c := range map[string]struct {
		told []workload.Rollout
		want time.Duration
	}{
		"nothing comes":                 {[]workload.Rollout{rolling(1, 2, 2), rolling(1, 2, 2), rolling(1, 2, 2)}, 2 * time.Second},
		"one is new":                    {[]workload.Rollout{rolling(1, 2, 2), rolling(1, 2, 2), rolling(2, 2, 1)}, 0},
		"it crashes, and comes back":    {[]workload.Rollout{rolling(1, 2, 2), rolling(1, 1, 2), rolling(1, 2, 2)}, 2 * time.Second},
		"nodes go, and then one is new": {[]workload.Rollout{rolling(30, 99, 70), rolling(30, 69, 40), rolling(31, 69, 39)}, 0},
		"nodes go, and then nothing":    {[]workload.Rollout{rolling(30, 99, 70), rolling(30, 69, 40), rolling(30, 69, 40)}, time.Second},
		"nodes go and come":             {[]workload.Rollout{rolling(30, 69, 40), rolling(30, 99, 70), rolling(30, 69, 40), rolling(30, 99, 70)}, 2 * time.Second},
	} {
		t.Run(sentence, func(t *testing.T) {
			now := began
			x := newIndex(func(ref) {}, func(ref, *subject) []checksum.Source { return nil }, func() time.Time { return now })
			for i, rollout := range c.told {
				now = began.Add(time.Duration(i) * time.Second)
				s := subjectOf("1", strconv.Itoa(i+1))
				s.rollout = rollout
				x.put(user, s)
			}
			if got := now.Sub(x.get(user).still); got != c.want {
				t.Errorf("it stands for %s, want %s", got, c.want)
			}
		})
	}
}

func TestIndex(t *testing.T) {
	kind := newCluster(t).kind
	a, b := ref{kind, "n", "a"}, ref{kind, "n", "b"}
	var woken []ref
	x := newIndex(func(user ref) { woken = append(woken, user) }, func(_ ref, s *subject) (sources []checksum.Source) {
		for _, reference := range s.references {
			sources = append(sources, reference.Source)
		}
		return sources
	}, time.Now)

	x.put(a, subjectOf("1", "5", "c", "d"))
	x.put(b, subjectOf("2", "6", "c"))
	if got := x.users("n", configMap("c")); len(got) != 2 {
		t.Errorf("users of c: %v, want a and b", got)
	}
	if x.put(a, subjectOf("1", "4", "gone")) {
		t.Error("an older version of the same object was taken for news")
	}
	if len(x.users("n", configMap("gone"))) != 0 {
		t.Error("an older version of the same object replaced the newer")
	}
	if !x.put(a, subjectOf("3", "7", "d")) {
		t.Error("an object made anew under the same name was not taken")
	}
	if x.put(a, subjectOf("1", "5", "c")) {
		t.Error("an answer about the object before it was taken")
	}
	if got := x.users("n", configMap("c")); !slices.Equal(got, []ref{b}) {
		t.Errorf("users of c: %v, want b alone", got)
	}
	if x.put(b, subjectOf("2", "7", "c")) {
		t.Error("a write that changes nothing of interest was taken for news")
	}
	x.replace(kind, "", map[ref]*subject{b: subjectOf("2", "3", "e")})
	if s := x.get(a); s != nil {
		t.Error("what a list lacks is still known")
	}
	if got := x.users("n", configMap("e")); !slices.Equal(got, []ref{b}) {
		t.Errorf("users of e: %v: a list is the truth, even with lower versions", got)
	}
	x.remove(b)
	x.renew(b, subjectOf("2", "9", "e"))
	if s := x.get(b); s != nil {
		t.Error("a late answer brought a deleted workload back")
	}
	if len(x.bySource) != 0 || len(x.subjects) != 0 {
		t.Errorf("something is left of removed workloads: %v %v", x.bySource, x.subjects)
	}

	x.put(a, subjectOf("1", "5", "c"))
	woken = nil
	x.reconsider("m")
	x.reconsider("n")
	if !slices.Equal(woken, []ref{a}) {
		t.Errorf("a change of the namespace woke %v, want a, once", woken)
	}
	if got := x.users("n", configMap("c")); !slices.Equal(got, []ref{a}) {
		t.Errorf("users of c: %v, want a", got)
	}
}
