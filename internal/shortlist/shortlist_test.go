package shortlist

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestChoose(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	for sentence, c := range map[string]struct {
		places map[string]time.Time
		needs  map[string]need
		size   int
		want   string
	}{
		"no places":    {nil, map[string]need{"a": {1, 1}}, 0, ""},
		"room for all": {nil, map[string]need{"a": {0, 1}, "b": {1, 9}}, 3, "a b"},
		"of the free places, the one with most to tell": {nil, map[string]need{"a": {0, 99}, "b": {1, 1}, "c": {2, 2}}, 2, "b c"},
		"then the one with most workloads":              {nil, map[string]need{"a": {0, 1}, "b": {0, 3}, "c": {0, 2}}, 2, "b c"},
		"then by name":                                  {nil, map[string]need{"c": {0, 1}, "b": {0, 1}, "a": {0, 1}}, 2, "a b"},
		"one that serves nothing wants none":            {nil, map[string]need{"a": {0, 0}, "b": {0, 1}}, 2, "b"},
		"who has a place keeps it": {map[string]time.Time{"z": ago(1)},
			map[string]need{"a": {50, 50}, "z": {0, 1}}, 1, "z"},
		"and keeps it while something is to be told": {map[string]time.Time{"z": ago(300)},
			map[string]need{"a": {50, 50}, "z": {1, 1}}, 1, "z"},
		"even of a workload that is not served any more": {map[string]time.Time{"z": ago(300)},
			map[string]need{"a": {50, 50}, "z": {1, 0}}, 1, "z"},
		"a place is free when nothing is served": {map[string]time.Time{"z": ago(1)},
			map[string]need{"a": {0, 1}, "z": {0, 0}}, 1, "a"},
		"and when the namespace is gone": {map[string]time.Time{"z": ago(1)},
			map[string]need{"a": {0, 1}}, 1, "a"},
		"who was quiet for an hour gives way": {map[string]time.Time{"y": ago(59), "z": ago(60)},
			map[string]need{"a": {1, 1}, "y": {0, 1}, "z": {0, 1}}, 2, "a y"},
		"to one with something to tell alone": {map[string]time.Time{"z": ago(60)},
			map[string]need{"a": {0, 99}, "z": {0, 1}}, 1, "z"},
		"who was quiet for longest first": {map[string]time.Time{"x": ago(70), "y": ago(90), "z": ago(80)},
			map[string]need{"a": {1, 1}, "x": {0, 1}, "y": {0, 9}, "z": {0, 1}}, 3, "a x z"},
		"who was never told of at once": {map[string]time.Time{"y": {}, "z": ago(90)},
			map[string]need{"a": {1, 1}, "y": {0, 9}, "z": {0, 1}}, 2, "a z"},
		"of equals who serves least": {map[string]time.Time{"x": {}, "y": {}, "z": {}},
			map[string]need{"a": {1, 1}, "x": {0, 2}, "y": {0, 1}, "z": {0, 3}}, 3, "a x z"},
		"and the last by name": {map[string]time.Time{"x": {}, "y": {}, "z": {}},
			map[string]need{"a": {1, 1}, "x": {0, 2}, "y": {0, 2}, "z": {0, 2}}, 3, "a x y"},
		"the one that needs it most takes it": {map[string]time.Time{"z": {}},
			map[string]need{"a": {1, 9}, "b": {2, 2}, "z": {0, 1}}, 1, "b"},
		"a free place is taken before another's": {map[string]time.Time{"z": {}},
			map[string]need{"a": {1, 1}, "z": {0, 1}}, 2, "a z"},
	} {
		t.Run(sentence, func(t *testing.T) {
			chosen := choose(c.places, c.needs, c.size, now)
			if got := strings.Join(slices.Sorted(maps.Keys(chosen)), " "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// No series comes and goes: one that there was something to tell of stays for an hour, unless
// nothing is served in its namespace any more. There are never too many, and no place is left
// free while somebody wants it.
func TestChoose_SeriesAreStable(t *testing.T) {
	const size = 7
	for seed := range uint64(20) {
		random, now := rand.New(rand.NewPCG(seed, 1)), time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
		told, served, last := Counts{}, map[string]int{}, map[string]time.Time{}
		list, was := New(size), Names{}
		for range 500 {
			now = now.Add(15 * time.Second)
			for range 3 {
				name := fmt.Sprintf("n%02d", random.IntN(20))
				told[Cell{name, "waiting"}], served[name] = max(0, random.IntN(9)-5), max(0, random.IntN(40)-2)
			}
			is, want := list.Choose(told, served, now), 0
			for name := range served {
				tells := told[Cell{name, "waiting"}] > 0
				if tells || served[name] > 0 {
					want++
					if since, ok := last[name]; ok && !is[name] && (tells || now.Sub(since) < Quiet) {
						t.Fatalf("seed %d, %s: %s was told of at %s, and has lost its place", seed, now, name, since)
					}
				}
				if !is[name] {
					delete(last, name)
				} else if tells {
					last[name] = now
				}
			}
			if len(is) != min(size, want) {
				t.Fatalf("seed %d, %s: %d have places, want %d", seed, now, len(is), min(size, want))
			}
			if again := list.Choose(told, served, now); !maps.Equal(again, is) || !maps.Equal(list.Names(), is) {
				t.Fatalf("seed %d, %s: the same need, and %v after %v", seed, now, again, is)
			}
			was = is
		}
		if len(was) != size {
			t.Errorf("seed %d: %d have places in the end: the test shows too little", seed, len(was))
		}
	}
}

// Of a namespace everything counts that the metrics tell, in whatever state.
func TestChoose_ByAllStates(t *testing.T) {
	for range 20 { // the order of a map is another each time
		told := Counts{{"a", "held"}: 2, {"a", "waiting"}: 2, {"b", "held"}: 3}
		if names := New(1).Choose(told, nil, time.Now()); !names["a"] {
			t.Fatalf("%v have a place, want a", names)
		}
	}
}

// Those without a place are summed, and each series is there, be it 0.
func TestNames_OthersAreSummed(t *testing.T) {
	told, served := Counts{}, map[string]int{"a": 1, "b": 1, "c": 2}
	told.Add("a", "held", 1)
	told.Add("a", "held", 2)
	told.Add("b", "held", 1)
	told.Add("d", "held", 1)
	list := New(1)
	for _, want := range []string{
		"(others) waiting 0, (others) held 5",
		"(others) waiting 0, (others) held 2, a waiting 0, a held 3",
	} {
		var series []string
		list.Names().Sum(told, []string{"waiting", "held"}, func(sum float64, labels ...string) {
			series = append(series, fmt.Sprint(labels[0], " ", labels[1], " ", sum))
		})
		if got := strings.Join(series, ", "); got != want {
			t.Errorf("%s; want %s", got, want)
		}
		list.Choose(told, served, time.Now())
	}
	if len(validation.IsDNS1123Label(Others)) == 0 {
		t.Errorf("a namespace can be called %s", Others)
	}
}
