package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/internal/reason"
)

// The rows of the table of what goes wrong in other products. These are about
// what content is.

type rolls = harness.Rolls

// one is a namespace with Deployment d that uses ConfigMap c.
func one(t *testing.T, data ...string) (*harness.Space, harness.Counts) {
	t.Helper()
	s := run.Space(t)
	s.Set("configmap/c", data...)
	s.Create(deployment("d", "configmap/c"))
	return s, s.Settled("deployment/d")
}

// wantStamp checks that a stamp is the digest of what the source holds now.
func wantStamp(t *testing.T, s *harness.Space, workload, source string, keys ...string) {
	t.Helper()
	if got, want := s.Stamp(workload, source), s.Digest(source, keys...); got != want {
		t.Errorf("%s is stamped %q for %s, want %q", workload, got, source, want)
	}
}

// wantRecord is wantStamp for what may be a stamp or a baseline.
func wantRecord(t *testing.T, s *harness.Space, workload, source string, keys ...string) {
	t.Helper()
	want := s.Digest(source, keys...)
	s.Eventually("waiting for the record of "+source, func() error {
		if got := s.Record(workload, source); got != want {
			return fmt.Errorf("%s has %q on record for %s, want %q", workload, got, source, want)
		}
		return nil
	})
}

func TestPeersRow02_DeletedAndMadeAgainWithOtherContentRollsOnce(t *testing.T) {
	t.Parallel()
	s, before := one(t, "a", "1")
	s.Delete("configmap/c")
	s.Quiet()
	s.Set("configmap/c", "a", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")

	// And within one settle.
	before = s.Counts()
	s.Delete("configmap/c")
	s.Set("configmap/c", "a", "3")
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
}

func TestPeersRow03_BoundariesCountAndTheFieldThatHoldsThemDoesNot(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "a", "1;b=2")
	// A mount: environment variables do not see binaryData.
	s.Create(workload("Deployment", "d", "volumeMounts: [{name: c, mountPath: /c}]\n", "volumes: [{name: c, configMap: {name: c}}]\n"))
	before := s.Settled("deployment/d")
	s.Set("configmap/c", "a", "1", "b", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	stamp := s.Stamp("deployment/d", "configmap/c")

	before = s.Counts()
	s.Patch("configmap/c", `{"data":null,"binaryData":{"a":"MQ==","b":"Mg=="}}`)
	s.Unchanged(before)
	if now := s.Stamp("deployment/d", "configmap/c"); now != stamp {
		t.Errorf("the stamp went from %s to %s, and the bytes are the same", stamp, now)
	}
	s.Patch("configmap/c", `{"binaryData":{"a":"/w=="}}`)
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
}

func TestPeersRow04_SimilarAndLongNamesAreIndependent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 252)
	names := []string{"my-config", "my.config", long + "b", long + "c"}
	s := run.Space(t)
	var users []string
	for i, name := range names {
		s.Set("configmap/"+name, "k", "1")
		s.Create(deployment(fmt.Sprintf("only-%d", i), "configmap/"+name))
		users = append(users, fmt.Sprintf("deployment/only-%d", i))
	}
	s.Create(deployment("all", "configmap/"+names[0], "configmap/"+names[1], "configmap/"+names[2], "configmap/"+names[3]))
	s.Settled(append(users, "deployment/all")...)
	if stamps := harness.Stamps(s.Get("deployment/all")); len(stamps) != len(names) {
		t.Fatalf("%d stamps for %d sources: %v", len(stamps), len(names), stamps)
	}
	for i, name := range names {
		before := s.Counts()
		s.Set("configmap/"+name, "k", "2")
		s.WantRolls(before, rolls{users[i]: 1, "deployment/all": 1})
		wantStamp(t, s, "deployment/all", "configmap/"+name)
	}
}

func TestPeersRow05_UndoThenOldContentEndsOnOldContent(t *testing.T) {
	t.Parallel()
	s, before := one(t, "m", "A")
	a := s.Stamp("deployment/d", "configmap/c")
	s.Set("configmap/c", "m", "B")
	s.WantRolls(before, rolls{"deployment/d": 1})
	b := s.Stamp("deployment/d", "configmap/c")

	before = s.Counts()
	undo := s.Kubectl("rollout", "undo", "deployment/d")
	s.Unchanged(before) // content is not versioned
	if now := s.Stamp("deployment/d", "configmap/c"); now != b {
		t.Errorf("after the undo the stamp is %s, want %s", now, b)
	}
	wantWarning(t, undo, "the content of a ConfigMap or Secret is not versioned")

	s.Set("configmap/c", "m", "A")
	// The template with A was there before: its ReplicaSet is used again.
	s.WantRollsBack(before, rolls{"deployment/d": 1})
	if now := s.Stamp("deployment/d", "configmap/c"); now != a {
		t.Errorf("at the end the stamp is %s, want that of A, %s", now, a)
	}
	wantStamp(t, s, "deployment/d", "configmap/c")
}

func TestPeersRow13_AnOptionalSourceThatAppearsRollsOnce(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Create(deployment("d", "configmap/c?"))
	before := s.Settled("deployment/d")
	if got := s.Stamp("deployment/d", "configmap/c"); got != "v1:absent" {
		t.Errorf("stamp of an optional source that is not there: %q", got)
	}
	s.Set("configmap/c", "a", "1")
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")

	before = s.Counts()
	s.Delete("configmap/c")
	s.WantRollsBack(before, rolls{"deployment/d": 1}) // as it was at first
	if got := s.Stamp("deployment/d", "configmap/c"); got != "v1:absent" {
		t.Errorf("stamp after the optional source went: %q", got)
	}
}

func TestPeersRow15_OnlyTheSecondOfTwoVolumesIsMounted(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "used", "1", "unused", "1")
	s.Create(workload("Deployment", "d", "volumeMounts: [{name: second, mountPath: /c}]\n",
		"volumes:\n- {name: first, configMap: {name: c, items: [{key: unused, path: u}]}}\n- {name: second, configMap: {name: c, items: [{key: used, path: u}]}}\n"))
	before := s.Settled("deployment/d")
	s.Set("configmap/c", "used", "1", "unused", "2")
	s.Unchanged(before) // the kubelet does not even look at the first volume
	s.Set("configmap/c", "used", "2", "unused", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c", "used")
}

func TestPeersRow18_ASourceDeletedWhileNeededKeepsItsStampAndRollsNothing(t *testing.T) {
	t.Parallel()
	s, before := one(t, "a", "1")
	stamp := s.Stamp("deployment/d", "configmap/c")
	s.Delete("configmap/c")
	s.Unchanged(before)
	if now := s.Stamp("deployment/d", "configmap/c"); now != stamp {
		t.Errorf("the stamp went from %q to %q", stamp, now)
	}
	s.Set("configmap/c", "a", "1")
	s.Unchanged(before) // the same as before
	s.Set("configmap/c", "a", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

func TestPeersRow24_ARequiredKeyThatComesLaterRollsNothing(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("secret/s", "user", "pulp")
	applied := s.Apply(workload("Deployment", "d", "env: [{name: PIN, valueFrom: {secretKeyRef: {name: s, key: pin}}}]\n"))
	wantWarning(t, applied, `secret/s key "pin" does not exist`)
	before := s.Settled("deployment/d")
	s.Set("secret/s", "user", "pulp", "pin", "4711")
	wantRecord(t, s, "deployment/d", "secret/s", "pin")
	s.Unchanged(before)
	s.WantNoNote("deployment/d", "ConfigMaybeStale") // no container can have started without it

	s.Set("secret/s", "user", "pulp", "pin", "4712")
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "secret/s", "pin")
}

// wantWarning checks that kubectl showed exactly one warning with this text.
func wantWarning(t *testing.T, result harness.Result, text string) {
	t.Helper()
	times := 0
	for _, warning := range result.Warnings() {
		if strings.Contains(warning, text) {
			times++
		}
	}
	if times != 1 {
		t.Errorf("%d warnings say %q, want 1:\n%s", times, text, result.Stderr)
	}
}

// wantNoWarnings ignores the warning of a busy API server, which tests that run beside each other make.
func wantNoWarnings(t *testing.T, result harness.Result) {
	t.Helper()
	warnings := slices.DeleteFunc(result.Warnings(), func(warning string) bool {
		return warning == reason.AgainUnknown.Warning(reason.Values{})
	})
	if len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
}
