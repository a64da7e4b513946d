package e2e

import (
	"crypto/sha1" // what others use
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// These rows are about how much is written, and by whom.

// The edits of these two rows must lie within one settle, on a machine that may
// be slow, so it is long here.
func TestCoalescing(t *testing.T) {
	product := run.Exclusive(t)
	harness.Must(t, product.Restart(t.Context(), harness.Options{Settle: 10 * time.Second}))
	t.Run("PeersRow09_FifteenEditsInABurstMakeOneRollout", func(t *testing.T) {
		t.Parallel()
		s, before := one(t, "n", "0")
		for i := range 15 {
			s.Set("configmap/c", "n", fmt.Sprint(i+1))
			time.Sleep(50 * time.Millisecond)
		}
		s.WantRolls(before, rolls{"deployment/d": 1})
		wantStamp(t, s, "deployment/d", "configmap/c")
	})
	t.Run("PeersRow10_OneApplyOfTwoConfigMapsAndTheImageIsOneReplicaSet", func(t *testing.T) {
		t.Parallel()
		s := run.Space(t)
		manifest := func(version string) string {
			return configMap("one", version) + "---\n" + configMap("two", version) + "---\n" +
				strings.Replace(deployment("d", "configmap/one", "configmap/two"), "app:1", "app:"+version, 1)
		}
		s.Apply(manifest("1"))
		before := s.Settled("deployment/d")
		s.Apply(manifest("2"))
		s.WantRolls(before, rolls{"deployment/d": 1})
		wantStamp(t, s, "deployment/d", "configmap/one")
		wantStamp(t, s, "deployment/d", "configmap/two")
	})
	t.Run("SeveralSourcesThatSettleTogetherMakeOneRollout", func(t *testing.T) {
		t.Parallel()
		s := run.Space(t)
		s.Set("configmap/c", "k", "1")
		s.Set("secret/s", "k", "1")
		s.Create(deployment("d", "configmap/c", "secret/s"))
		before := s.Settled("deployment/d")
		s.Set("configmap/c", "k", "2")
		s.Set("secret/s", "k", "2")
		s.WantRolls(before, rolls{"deployment/d": 1})
		wantStamp(t, s, "deployment/d", "configmap/c")
		wantStamp(t, s, "deployment/d", "secret/s")
		s.WantNote("deployment/d", "configmap/c and secret/s changed: rolling out")
	})
	t.Run("AnEditThatIsTakenBackWithinTheSettleRollsNothing", func(t *testing.T) {
		t.Parallel()
		s, before := one(t, "n", "0")
		s.Set("configmap/c", "n", "1")
		s.Set("configmap/c", "n", "0")
		s.Unchanged(before)
		s.Set("configmap/c", "n", "2")
		s.WantRolls(before, rolls{"deployment/d": 1})
	})
}

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {k: %q}\n", name, value)
}

func TestPeersRow14_ReplaceWithTheOriginalManifestKeepsStampsAndRollsNothing(t *testing.T) {
	t.Parallel()
	s, before := one(t, "a", "1")
	s.Set("configmap/c", "a", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	before, stamp := s.Counts(), s.Stamp("deployment/d", "configmap/c")
	result := s.KubectlInput(deployment("d", "configmap/c"), "replace", "-f", "-")
	wantNoWarnings(t, result)
	s.Unchanged(before)
	if now := s.Stamp("deployment/d", "configmap/c"); now != stamp {
		t.Errorf("the stamp went from %q to %q", stamp, now)
	}
}

func TestPeersRow16_ADigestHelpsNobodyToGuessASecret(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("secret/one", "pin", "4711")
	s.Set("secret/two", "pin", "4711")
	s.Create(deployment("d", "secret/one", "secret/two"))
	first, second := s.Stamp("deployment/d", "secret/one"), s.Stamp("deployment/d", "secret/two")
	if first == "" || first == second {
		t.Errorf("equal Secrets have the stamps %q and %q, want two different ones", first, second)
	}
	if want := s.Digest("secret/one"); first != want {
		t.Errorf("stamp %q, want the keyed one %q", first, want)
	}
	// All that somebody who reads the annotations can do: try every pin.
	for pin := range 10000 {
		guess := fmt.Sprintf("%04d", pin)
		for _, text := range []string{guess, "pin" + guess, "pin=" + guess, "pin=" + guess + ";"} {
			sum := sha1.Sum([]byte(text))
			if strings.Contains(first, hex.EncodeToString(sum[:])[:32]) {
				t.Fatalf("the plain hash of %q is in the stamp", text)
			}
		}
		nothing := make([]byte, 32) // a key that is none
		if first == harness.Digest(nothing, "secret", s.Namespace, "one", map[string][]byte{"pin": []byte(guess)}, nil) {
			t.Fatal("the stamp is made without a key")
		}
	}
	// In another namespace it is another one again.
	other := run.Space(t)
	other.Set("secret/one", "pin", "4711")
	other.Create(deployment("d", "secret/one"))
	if there := other.Stamp("deployment/d", "secret/one"); there == first {
		t.Errorf("two namespaces share the stamp %q", there)
	}
}

func TestPeersRow17_TwoSourcesOfOneNameAndDifferentKindDoNotCollide(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/same", "k", "1")
	s.Set("secret/same", "k", "1")
	s.Create(deployment("d", "configmap/same", "secret/same"))
	before := s.Settled("deployment/d")
	wantStamp(t, s, "deployment/d", "configmap/same")
	wantStamp(t, s, "deployment/d", "secret/same")
	s.Set("secret/same", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	s.Set("configmap/same", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 2})
}

func TestPeersRow21_RewritesWithoutChangeRollNothing(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("secret/s", "token", "1")
	s.Create(deployment("d", "secret/s"))
	before := s.Settled("deployment/d")
	stamp := s.Stamp("deployment/d", "secret/s")
	for i := range 10 {
		s.Set("secret/s", "token", "1")
		s.Patch("secret/s", fmt.Sprintf(`{"metadata":{"annotations":{"renewed":"%d"},"labels":{"round":"%d"}}}`, i, i))
	}
	s.Patch("secret/s", `{"immutable":true}`)
	s.Unchanged(before)
	if now := s.Stamp("deployment/d", "secret/s"); now != stamp {
		t.Errorf("the stamp went from %q to %q", stamp, now)
	}
	s.Delete("secret/s")
	s.Set("secret/s", "token", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}
