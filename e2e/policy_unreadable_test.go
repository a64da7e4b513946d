package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Settings that cannot be read are never guessed at.

func TestPolicy_UnreadableOnANamespaceConcernsAllInIt(t *testing.T) {
	t.Parallel()
	s, other := run.Space(t), run.Space(t)
	for _, space := range []*harness.Space{s, other} {
		space.Set("configmap/c", "k", "1")
		space.Create(deployment("a", "configmap/c"))
		space.Create(deployment("b", "configmap/c"))
	}
	before, elsewhere := s.Settled("deployment/a", "deployment/b"), other.Settled("deployment/a", "deployment/b")
	bad := settings{"mode": "dry-run"}
	s.SetPolicy("namespace", bad)
	all := rolls{"deployment/a": 1, "deployment/b": 1}
	const note = `PolicyUnreadable: configstamp.dev/mode on the Namespace: "dry-run": want restart or observe; nothing restarts until it is fixed`
	s.WantNote("namespace/"+s.Namespace, note)
	for workload := range all {
		s.WantNoNote(workload, "PolicyUnreadable")
	}
	s.Set("configmap/c", "k", "2")
	other.Set("configmap/c", "k", "2")
	other.WantRolls(elsewhere, all)
	s.Unchanged(before)
	for workload := range all { // which it holds now
		s.WantNote(workload, note)
	}
	s.SetPolicy("namespace", settings{"mode": "restart"})
	s.WantRolls(before, all)
	for workload := range all {
		other.WantNoNote(workload, "PolicyUnreadable")
	}
}

func TestPolicy_UnreadableOnASourceConcernsAllThatUseIt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, value, want string }{
		{"ignore", "configmap/c", "want false or true"},
		{"ignore-keys", "build-*,[a", `"[a" is not a valid glob: check its brackets and backslashes`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			bad := settings{row.name: row.value}
			fault := fmt.Sprintf("configstamp.dev/%s: %q: %s", row.name, row.value, row.want)
			s := run.Space(t)
			for _, source := range []string{"configmap/bad", "configmap/good", "secret/bad"} {
				s.Set(source, "k", "1")
			}
			s.SetPolicy("configmap/bad", bad)
			s.SetPolicy("secret/bad", bad)
			users := map[string][]string{
				"both": {"configmap/bad", "configmap/good"}, "secret": {"secret/bad"}, "free": {"configmap/good"},
			}
			faulty := map[string]string{"both": "configmap/bad", "secret": "secret/bad"}
			for user, sources := range users {
				s.Create(deployment(user, sources...))
				want := ""
				if source, is := faulty[user]; is {
					want = "configstamp: unreadable-setting: " + source + ": " + fault + "; nothing that uses it restarts until it is fixed"
				}
				if got := strings.Join(s.Warnings(), "\n"); got != want {
					t.Errorf("%s: warnings %q, want %q", user, got, want)
				}
			}
			before := s.Settled("deployment/both", "deployment/secret", "deployment/free")
			for user, sources := range users {
				wantStamps(t, s, "deployment/"+user, sources...)
			}
			for user, source := range faulty {
				s.WantNote(source, "PolicyUnreadable: "+source+": "+fault)
				s.WantNoNote("deployment/"+user, "PolicyUnreadable")
			}
			s.Edit("configmap/bad", "k", "2")
			s.Edit("secret/bad", "k", "2")
			s.Unchanged(before)
			for user, source := range faulty { // which it holds now
				s.WantNote("deployment/"+user, "PolicyUnreadable: "+source+": "+fault)
			}
			s.WantNoNote("deployment/free", "PolicyUnreadable")
			s.Edit("configmap/good", "k", "2")
			s.WantRolls(before, rolls{"deployment/free": 1})
			s.DropPolicy("configmap/bad", bad)
			s.SetPolicy("secret/bad", settings{"ignore": "false", "ignore-keys": "none"})
			s.WantRolls(before, rolls{"deployment/free": 1, "deployment/both": 1, "deployment/secret": 1})

			// Written on what is in use already: no admission of ours sees it.
			before = s.Counts()
			s.SetPolicy("configmap/good", bad)
			s.WantNote("configmap/good", "PolicyUnreadable: configmap/good: "+fault)
			s.Edit("configmap/good", "k", "3")
			s.Unchanged(before)
			for _, user := range []string{"deployment/both", "deployment/free"} {
				s.WantNote(user, "PolicyUnreadable: configmap/good: "+fault)
			}
			s.DropPolicy("configmap/good", bad)
			s.WantRolls(before, rolls{"deployment/free": 1, "deployment/both": 1})
		})
	}
}

func TestPolicy_UnreadableAdoptsAsUsual(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.Create(withPolicy(deployment("d", "configmap/c"), settings{"adopt": "yes"}))
	before := s.Settled("deployment/d")
	s.Label("enabled")
	wantBaselines(t, s, map[string][]string{"deployment/d": {"configmap/c"}})
	s.WantNote("deployment/d", `PolicyUnreadable: configstamp.dev/adopt: "yes": want baseline or restart`)
	s.Unchanged(before)
	s.DropPolicy("deployment/d", settings{"adopt": ""})
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

// A time to resume that is ahead is told of once, where it stands, and holds nothing.
func TestPolicy_AResumeInTheFutureHoldsNothing(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Create(deployment("d", "configmap/c"))
	before := s.Settled("deployment/d")
	ahead := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	s.Kubectl("annotate", "configmap/c", "configstamp.dev/resume="+ahead)
	note := fmt.Sprintf("PolicyUnreadable: configstamp.dev/resume: %q: this time was more than a minute in the future when it was written", ahead)
	s.WantNote("configmap/c", note)
	s.WantNoNote("deployment/d", "PolicyUnreadable")
	s.Unchanged(before)
	s.Edit("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	s.Kubectl("annotate", "--overwrite", "configmap/c", "configstamp.dev/resume="+time.Now().UTC().Format(time.RFC3339))
	s.Edit("configmap/c", "k", "3")
	s.WantRolls(before, rolls{"deployment/d": 2})
	if notes := s.Notes("configmap/c"); len(notes) != 1 {
		t.Errorf("the source has the events %q, want one", notes)
	}
}
