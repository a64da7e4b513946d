package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
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
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var edits, warned, named, quiet atomic.Int64
	t.Run("edits", func(t *testing.T) {
		for space := range (*impactEdits + impactWorlds*impactRounds - 1) / (impactWorlds * impactRounds) {
			t.Run(fmt.Sprint(space), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(seed, uint64(space)))
				s := run.Space(t)
				var everyone []string
				for world := range impactWorlds {
					everyone = append(everyone, randomUsers(s, rnd, fmt.Sprintf("world%d-", world))...)
				}
				for range impactRounds {
					before, want := s.Settled(everyone...), rolls{}
					for world := range impactWorlds {
						said := randomEdit(t, s, rnd, fmt.Sprintf("configmap/world%d-c%d", world, rnd.IntN(3)))
						for _, name := range said.names {
							want[name] = 1
						}
						edits.Add(1)
						named.Add(int64(len(said.names)))
						if said.text != "" {
							warned.Add(1)
						} else {
							quiet.Add(1)
						}
					}
					s.WantRolls(before, want)
				}
			})
		}
	})
	t.Logf("%d edits: %d warnings, which name %d workloads; %d times nothing was said", edits.Load(), warned.Load(), named.Load(), quiet.Load())
	if warned.Load() == 0 || quiet.Load() == 0 {
		t.Errorf("seed %d: there were only edits of one kind", seed)
	}
}

// randomEdit edits a ConfigMap in one of many ways, and returns what the API server said.
func randomEdit(t *testing.T, s *harness.Space, rnd *rand.Rand, source string) said {
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
	warnings := s.Warnings()
	if len(warnings) > 1 {
		t.Errorf("an edit of %s is answered with %d warnings: %q", source, len(warnings), warnings)
	}
	if len(warnings) == 0 {
		return said{}
	}
	return reading(t, warnings[0])
}

// said is what a warning tells.
type said struct {
	text  string
	names []string // of those that roll
}

var rollsOut = regexp.MustCompile(`rolls out ((?:[a-z]+/[a-z0-9-]+(?:, )?)+)(?: and (\d+) more)?`)

// reading reads a warning: the names of what rolls.
func reading(t *testing.T, text string) said {
	t.Helper()
	s := said{text: text}
	parts := rollsOut.FindStringSubmatch(text)
	if parts == nil {
		return s
	}
	s.names = strings.FieldsFunc(parts[1], func(r rune) bool { return r == ',' || r == ' ' })
	if more, _ := strconv.Atoi(parts[2]); more > 0 {
		t.Errorf("%d names of %q are left out", more, text)
	}
	return s
}
