package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

var impactEdits = flag.Int("impact-edits", 60, "how many random edits TestImpact_TheWarningIsWhatRolls makes")

const (
	impactWorlds = 4 // in one namespace, which knows nothing of each other
	impactRounds = 3 // of edits: a workload that rolls more often is slowed down
)

// The workloads that a warning names are those that roll, and no others, whatever the edit.
func TestImpact_TheWarningIsWhatRolls(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var tally tally
	t.Run("edits", func(t *testing.T) {
		for space := range (*impactEdits + impactWorlds*impactRounds - 1) / (impactWorlds * impactRounds) {
			t.Run(fmt.Sprint(space), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(seed, uint64(space)))
				s := run.Space(t)
				var everyone []string
				for world := range impactWorlds {
					everyone = append(everyone, randomUsers(s, rnd, worldName(world))...)
				}
				for range impactRounds {
					before, promises := s.Settled(everyone...), make([]promise, impactWorlds)
					for world := range promises {
						promises[world] = randomEdit(t, s, rnd, fmt.Sprintf("configmap/%sc%d", worldName(world), rnd.IntN(3)))
						tally.add(&promises[world])
					}
					wantKept(t, s, before, promises)
				}
			})
		}
	})
	t.Logf("%d edits: %d promise something, of %d workloads, %d times without all names; %d do not", tally.edits, tally.promise, tally.workloads, tally.unnamed, tally.edits-tally.promise)
	if tally.promise == 0 || tally.promise == tally.edits {
		t.Errorf("seed %d: there were only edits of one kind", seed)
	}
}

// randomEdit edits a ConfigMap in one of many ways, and returns what the API server said.
func randomEdit(t *testing.T, s *harness.Space, rnd *rand.Rand, source string) promise {
	t.Helper()
	key, value := fmt.Sprintf("k%d", rnd.IntN(3)), fmt.Sprint(rnd.Uint64())
	s.Warnings()
	switch rnd.IntN(8) {
	case 0: // which no container sees
		s.Patch(source, fmt.Sprintf(`{"metadata":{"annotations":{"note":%q}}}`, value))
	case 1: // a key more
		s.Edit(source, "k3", value)
	case 2: // all others
		s.Set(source, "k0", value, "k1", value, "k2", value)
	case 3: // what is there already
		s.Patch(source, `{}`)
	case 4: // the same bytes in another field, and other ones
		s.Patch(source, fmt.Sprintf(`{"binaryData":{"k4":"AAAA"},"data":{%q:%q}}`, key, value))
	default:
		s.Edit(source, key, value)
	}
	return promiseOf(t, s.Warnings())
}

// promise is what the warnings of one edit say.
type promise struct {
	texts []string
	names []string // of those whose template changes
	more  int      // that are counted, and not named
}

// What changes at once: pods are replaced, or there are none.
var (
	rollsOut   = regexp.MustCompile(`^configstamp: this (?:change|deletion) rolls out (.+?)(?:, [a-z]+ first)?$`)
	startLater = regexp.MustCompile(`^configstamp: no pod of (.+) restarts now: pods that start later use the new content$`)
	counted    = regexp.MustCompile(`^(?:([0-9]+) more|workloads with long names \(([0-9]+)\))$`)
)

func promiseOf(t *testing.T, warnings []string) promise {
	t.Helper()
	p := promise{texts: warnings}
	for _, warning := range warnings {
		parts := rollsOut.FindStringSubmatch(warning)
		if parts == nil {
			parts = startLater.FindStringSubmatch(warning)
		}
		if parts == nil {
			continue // it is held
		}
		for _, name := range strings.Split(strings.Replace(parts[1], " and ", ", ", 1), ", ") {
			more := counted.FindStringSubmatch(name)
			if more == nil {
				p.names = append(p.names, name)
				continue
			}
			n, err := strconv.Atoi(more[1] + more[2])
			harness.Must(t, err)
			p.more += n
		}
	}
	return p
}

// kept says in what the workloads of one world did not roll as promised.
func (p *promise) kept(world string, before, now harness.Counts) error {
	rolled := []string{}
	for workload, count := range now {
		_, name, _ := strings.Cut(workload, "/")
		switch times := count.Rolls - before[workload].Rolls; {
		case !strings.HasPrefix(name, world) || times == 0:
		case times > 1:
			return fmt.Errorf("%s rolled %d times after %q", workload, times, p.texts)
		default:
			rolled = append(rolled, workload)
		}
	}
	slices.Sort(rolled)
	if len(rolled) != len(p.names)+p.more {
		return fmt.Errorf("%q rolled after %q", rolled, p.texts)
	}
	for _, name := range p.names {
		if !slices.Contains(rolled, name) {
			return fmt.Errorf("%q rolled after %q, without %s", rolled, p.texts, name)
		}
	}
	return nil
}

// wantKept waits until in every world that has rolled that was promised there, and checks
// that nothing else does.
func wantKept(t *testing.T, s *harness.Space, before harness.Counts, promises []promise) {
	t.Helper()
	all := func() error {
		now := s.Counts()
		for world := range promises {
			if err := promises[world].kept(worldName(world), before, now); err != nil {
				return err
			}
		}
		return nil
	}
	s.Eventually("waiting for what was promised", all)
	s.Quiet()
	if err := all(); err != nil {
		t.Fatalf("%v\n%s", err, s.Report())
	}
}

func worldName(world int) string { return fmt.Sprintf("world%d-", world) }

// tally counts edits.
type tally struct {
	mu                                 sync.Mutex
	edits, promise, workloads, unnamed int
}

func (t *tally) add(p *promise) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.edits++
	if n := len(p.names) + p.more; n > 0 {
		t.promise++
		t.workloads += n
	}
	if p.more > 0 {
		t.unnamed++
	}
}
