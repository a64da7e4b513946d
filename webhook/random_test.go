package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
)

// moody is an API server that tells the truth, of what is beside sometimes nothing.
type moody struct {
	truth checksum.Contents
	rnd   *rand.Rand
	must  int
}

func (m *moody) Fresh(_ context.Context, _ string, must, beside []checksum.Source) (checksum.Contents, error) {
	m.must += len(must)
	if m.rnd.IntN(8) == 0 {
		return nil, errors.New("slow")
	}
	got := checksum.Contents{}
	for _, s := range must {
		got[s] = m.truth[s]
	}
	for _, s := range beside {
		if m.rnd.IntN(2) == 0 {
			got[s] = m.truth[s]
		}
	}
	return got, nil
}

func TestRandomRollsByOurOwnAccountAreTrue(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds /= 10
	}
	rnd := rand.New(rand.NewPCG(7, 8))
	ring, oldRing, lostRing := checksum.NewRing(newKey, oldKey), checksum.NewRing(oldKey), checksum.NewRing(lostKey)
	contentAt := func(i int) *checksum.Content {
		switch {
		case i < 0:
			return nil
		case i == 5:
			return checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: map[string]string{"other": "x"}})
		}
		return checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: map[string]string{"k": fmt.Sprint(i), "l": "1"}})
	}
	bad := map[string]int{}
	rolls := 0
	for range rounds {
		n := 1 + rnd.IntN(4)
		var refs []checksum.Reference
		truth, memory := checksum.Contents{}, checksum.Contents{}
		held := checksum.Records{Stamps: map[string]string{}, Baseline: map[checksum.Source]string{}}
		policy := checksum.DefaultPolicy()
		policy.RestartUnstamped = rnd.IntN(4) == 0
		policy.Observe = rnd.IntN(8) == 0
		var sources []checksum.Source
		for i := range n {
			s := checksum.Source{Kind: checksum.ConfigMap, Name: fmt.Sprint("c", i)}
			sources = append(sources, s)
			ref := checksum.Reference{Source: s, Use: checksum.Startup, All: true, Env: true, Optional: rnd.IntN(2) == 0}
			if rnd.IntN(3) == 0 {
				ref.All, ref.Keys, ref.RequiredKeys = false, []string{"k"}, []string{"k"}
			}
			if rnd.IntN(6) == 0 {
				ref.Use = checksum.Node
			}
			refs = append(refs, ref)
		}
		selections := checksum.Selections(refs, policy)
		for i := range selections {
			s := selections[i]
			pick := func() int {
				return []int{1, 2, 3, -1, 5}[rnd.IntN(5)]
			}
			h := pick()
			m, tr := h, h
			if rnd.IntN(2) == 0 {
				m = pick()
			}
			switch rnd.IntN(3) {
			case 0:
				tr = m
			case 1:
				tr = pick()
			}
			truth[s.Source], memory[s.Source] = contentAt(tr), contentAt(m)
			if s.HoldOnly {
				continue
			}
			by := []*checksum.Ring{ring, ring, ring, oldRing, lostRing}[rnd.IntN(5)]
			v := checksum.Absent
			if c := contentAt(h); c != nil {
				v = by.Digest("shop", s, c)
			} else if s.Required {
				continue
			}
			switch rnd.IntN(4) {
			case 0: // nothing on record
			case 1:
				held.Baseline[s.Source] = v
			case 2:
				held.Stamps[checksum.StampKey(s.Source)] = v
			default:
				held.Stamps[checksum.StampKey(s.Source)] = ring.Digest("shop", s, contentAt(4))
				held.Baseline[s.Source] = v
			}
		}
		a := checksum.Admission{Namespace: "shop", Asker: checksum.Roller, Own: true,
			Policy: policy, Selections: selections, Held: held, Sent: held}
		remembered := memory
		if rnd.IntN(10) == 0 {
			remembered = nil
		}
		known, err := proveChanges(t.Context(), &moody{truth: truth, rnd: rnd}, ring, &a, remembered)
		if known == nil {
			continue
		}
		a.Fresh = err == nil
		a.Content = func(s checksum.Source) *checksum.Content { return known[s] }
		d := checksum.Decide(ring, a)
		truly := a
		truly.Content, truly.Fresh = func(s checksum.Source) *checksum.Content { return truth[s] }, true
		should := checksum.Decide(ring, truly)
		rolled := !maps.Equal(d.Records.Stamps, held.Stamps)
		if rolled {
			rolls++
			rev := ring.Review("shop", &policy, selections, held, truly.Content)
			if len(rev.Untrue) == 0 {
				bad["rolled though nothing is untrue"]++
			}
		}
		for _, s := range sources {
			was, recorded := held.Of(s)
			is, now := d.Records.Of(s)
			if is == was && recorded == now {
				continue
			}
			fresh := should.Records
			want, wanted := fresh.Of(s)
			truestamp, stamped := "", false
			for _, sel := range selections {
				if sel.Source == s {
					if c := truth[s]; c != nil {
						truestamp, stamped = ring.Digest("shop", sel, c), true
					} else {
						truestamp, stamped = checksum.Absent, true
					}
				}
			}
			if (is != want || now != wanted) && (is != truestamp || !stamped || !now) {
				key := fmt.Sprintf("changed to what is not true: outcome %v, now recorded %v", d.Outcome, now)
				bad[key]++
				if bad[key] < 3 {
					t.Logf("%s: was %q is %q want %q truth %v memory %v outcome %v should %v", s, was, is, want, truth[s] != nil, memory[s] != nil, d.Outcome, should.Outcome)
				}
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(bad)) {
		t.Errorf("%d: %s", bad[k], k)
	}
	t.Logf("%d rolls", rolls)
}
