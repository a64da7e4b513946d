package e2e

import (
	"fmt"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// What a source says of itself, which keys count, and what happens to a workload
// that is found without stamps.

func TestPolicy_ASourceThatIsIgnoredCountsForNobody(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	ignored := settings{"ignore": "true"}
	sources := []string{"configmap/ignored", "configmap/kept", "secret/ignored"}
	edit := func(value string) {
		t.Helper()
		s.Edit("configmap/ignored", "k", value)
		s.Edit("secret/ignored", "k", value)
	}
	policy := func(do func(string, map[string]string)) {
		t.Helper()
		do("configmap/ignored", ignored)
		do("secret/ignored", ignored)
	}
	for _, source := range sources {
		s.Set(source, "k", "1")
	}
	policy(s.SetPolicy)
	// So many rolls are no storm.
	s.Create(withPolicy(deployment("d", sources...), settings{"min-interval": "1ms"}))
	s.Create(withPolicy(deployment("named", sources...), settings{"also": "configmap/ignored", "only": "secret/*", "min-interval": "1ms"}))
	before := s.Settled("deployment/d", "deployment/named")
	wantAllRecorded := func() {
		t.Helper()
		for _, workload := range []string{"deployment/d", "deployment/named"} {
			wantRecord(t, s, workload, "configmap/ignored")
			wantRecord(t, s, workload, "secret/ignored")
		}
	}
	wantStamps(t, s, "deployment/d", "configmap/kept")
	wantStamps(t, s, "deployment/named") // "ignore" on the source comes before all else
	edit("2")
	s.Unchanged(before)
	s.Edit("configmap/kept", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})

	// Counted from now on: recorded as it is, and a change of it rolls.
	before = s.Counts()
	s.SetPolicy("configmap/ignored", settings{"ignore": "false"})
	s.DropPolicy("secret/ignored", ignored)
	wantAllRecorded()
	s.Unchanged(before)
	wantStamps(t, s, "deployment/d", "configmap/kept")
	before = s.Counts()
	together(s, func() { edit("3") })
	s.WantRolls(before, rolls{"deployment/d": 1, "deployment/named": 1})
	wantStamps(t, s, "deployment/d", sources...)
}

func TestPolicy_KeysThatAreIgnoredNeverCount(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	const all, one = "deployment/all", "deployment/one"
	ignored := settings{"ignore-keys": "build-*, *.md"}
	patterns := []string{"*.md", "build-*"}
	for _, source := range []string{"configmap/c", "secret/s"} {
		s.Set(source, "app", "1", "build-date", "1")
		s.SetPolicy(source, ignored)
	}
	s.Create(deployment("all", "configmap/c", "secret/s"))
	s.Create(workload("Deployment", "one", `env:
- {name: A, valueFrom: {configMapKeyRef: {name: c, key: app}}}
- {name: B, valueFrom: {configMapKeyRef: {name: c, key: build-date}}}
`))
	before := s.Settled(all, one)
	wantRecords := func() {
		t.Helper()
		wantRecord(t, s, one, "configmap/c", "app")
		s.Eventually("waiting for records without ignored keys", func() error {
			for _, source := range []string{"configmap/c", "secret/s"} {
				if got, want := s.Record(all, source), s.DigestBut(source, patterns...); got != want {
					return fmt.Errorf("%s has %q on record for %s, want %q", all, got, source, want)
				}
			}
			return nil
		})
	}
	wantRecords()
	s.Edit("configmap/c", "build-date", "2", "build-host", "new", "README.md", "new")
	s.Edit("secret/s", "build-date", "2")
	s.Unchanged(before)
	s.Edit("configmap/c", "app", "2")
	s.WantRolls(before, rolls{all: 1, one: 1})
	wantRecords()

	// Changing what is ignored restarts nothing, there and back.
	before = s.Counts()
	s.DropPolicy("configmap/c", ignored)
	wantRecord(t, s, all, "configmap/c")
	wantRecord(t, s, one, "configmap/c", "app", "build-date")
	s.Unchanged(before)
	s.Edit("configmap/c", "build-date", "3")
	s.WantRolls(before, rolls{all: 1, one: 1})
	before = s.Counts()
	s.SetPolicy("configmap/c", ignored)
	wantRecords()
	s.Unchanged(before)
	s.Edit("configmap/c", "build-date", "4")
	s.Unchanged(before)
}

func TestPolicy_FlagsAreTheDefaultOfTheCluster(t *testing.T) {
	product := run.Exclusive(t)
	flags := []string{"--restart-on=everything", "--pause=true"}
	harness.Must(t, product.Restart(t.Context(), harness.Options{Settle: harness.Settle, Webhook: flags, Controller: flags}))
	s := run.Space(t)
	s.Set("configmap/read", "k", "1")
	s.Set("secret/node", "k", "1")
	create := func(name string, settings settings) {
		t.Helper()
		s.Create(withPolicy(workload("Deployment", name, envFrom("configmap/read"), "imagePullSecrets: [{name: node}]\n"), settings))
	}
	create("flags", nil)
	create("own", settings{"restart-on": "all", "pause": "false"})
	create("goes", settings{"pause": "false"})
	before := s.Settled("deployment/flags", "deployment/own", "deployment/goes")
	wantStamps(t, s, "deployment/flags", "configmap/read", "secret/node")
	wantStamps(t, s, "deployment/goes", "configmap/read", "secret/node")
	wantStamps(t, s, "deployment/own", "configmap/read")
	s.Set("configmap/read", "k", "2")
	s.WantRolls(before, rolls{"deployment/own": 1, "deployment/goes": 1})
	s.Set("secret/node", "k", "2")
	s.WantRolls(before, rolls{"deployment/own": 1, "deployment/goes": 2})
	s.WantNote("deployment/flags", "RolloutHeld: configmap/read changed, and this workload rolls out later: --pause")

	// Other flags: nothing restarts by that but what was held.
	before = s.Counts()
	harness.Must(t, product.Restart(t.Context(), harness.Usual()))
	s.WantRolls(before, rolls{"deployment/flags": 1})
	wantStamps(t, s, "deployment/flags", "configmap/read")
}

func TestPolicy_OfNamespacesThatAreGiven(t *testing.T) {
	product := run.Exclusive(t)
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	given := []string{"--namespaces=" + s.Namespace}
	paused := settings{"pause": "true"}
	s.SetPolicy("namespace", paused)
	harness.Must(t, product.Restart(t.Context(), harness.Options{Settle: harness.Settle, Webhook: given, Controller: given}))
	s.Create(deployment("d", "configmap/c"))
	before := s.Settled("deployment/d")
	s.Set("configmap/c", "k", "2")
	s.WantNote("deployment/d", "RolloutHeld: configmap/c changed, and this workload rolls out later: configstamp.dev/pause on the Namespace")
	s.Unchanged(before)
	s.DropPolicy("namespace", paused)
	s.WantRolls(before, rolls{"deployment/d": 1}) // read twice a minute

	// Without the right to read its Namespace it has no policy.
	s.SetPolicy("namespace", paused)
	harness.Must(t, product.Stop())
	for _, process := range product.All() {
		process.Proxy.Add(proxy.Rule{Match: proxy.Matching("get", "namespaces"), Before: proxy.Fail(403, "Forbidden", "made by the test")})
	}
	harness.Must(t, product.Start(t.Context()))
	s.Set("configmap/c", "k", "3")
	s.WantRolls(before, rolls{"deployment/d": 2})
	wantStamps(t, s, "deployment/d", "configmap/c")
}
