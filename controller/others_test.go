package controller

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/claims"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// several is a cluster with several installations of configstamp. Their webhooks
// are called in their order, as the API server does with reinvocationPolicy
// IfNeeded, for whatever anybody sends.
type several struct {
	*cluster
	t      *testing.T
	clock  *clocktesting.FakeClock
	sites  []*site
	writes int
	rolls  int
}

// site is one installation: what its controller asks, and its webhook.
type site struct {
	*several
	name string
	keys *checksum.Ring
	// deaf: its webhook is not called. silent: it does not know that another
	// installation asks, so that it claims nothing.
	deaf, silent bool
	// behind: its webhook has not heard yet what the Namespace says.
	behind     bool
	controller *Controller
	events     *events.FakeRecorder
}

func newSeveral(t *testing.T, names ...string) *several {
	t.Helper()
	inOneGoroutine(t)
	all := &several{cluster: newCluster(t), t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))}
	for _, name := range names {
		all.install(name)
	}
	return all
}

func (all *several) install(name string) *site {
	key, err := checksum.NewKey(bytes.Repeat([]byte{byte(1 + len(all.sites))}, checksum.KeySize))
	if err != nil {
		all.t.Fatal(err)
	}
	installed := &site{several: all, name: name, keys: checksum.NewRing(key), events: events.NewFakeRecorder(10000)}
	all.sites = append(all.sites, installed)
	installed.lead()
	return installed
}

// lead gives an installation a leader that knows nothing but the cluster.
func (s *site) lead() {
	s.controller = newController(Options{Policy: s.policy, Installation: s.name, Settle: settle, Workers: 1, Clock: s.clock},
		s, s, s, s, s.events, prometheus.NewRegistry())
	s.controller.leads.Store(true)
}

// name has the Namespace name an installation.
func (all *several) name(installation string) {
	all.mu.Lock()
	all.settings = map[string]string{"configstamp.dev/installation": installation}
	all.mu.Unlock()
	for _, s := range all.sites {
		s.controller.NamespaceChanged("shop")
	}
}

func (all *several) uninstall(name string) {
	all.sites = slices.DeleteFunc(all.sites, func(s *site) bool { return s.name == name })
}

// Ring implements Keys.
func (s *site) Ring() *checksum.Ring { return s.keys }

// look has the controller of an installation look at every workload.
func (s *site) look() {
	for user := range s.objects {
		s.controller.sees(s.t, user, s.body(user))
		_, _ = s.controller.sync(s.t.Context(), user) // what fails is tried again at the next look
	}
}

// looks has all controllers look in turn, so many times, with a pause between.
func (all *several) looks(times int, pause time.Duration) {
	for range times {
		for _, s := range all.sites {
			s.look()
		}
		all.clock.Step(pause)
	}
}

// said are the events of an installation so far.
func (s *site) said() (events []string) {
	for len(s.events.Events) > 0 {
		events = append(events, <-s.events.Events)
	}
	return events
}

// readmit implements api: an empty patch by an installation's account.
func (s *site) readmit(_ context.Context, user workload.Ref, manager string, dryRun bool) ([]byte, []string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	account := "system:serviceaccount:" + s.name + ":configstamp"
	before := s.body(user)
	warnings := s.admitted(user, account, manager, false, dryRun)
	after := s.body(user)
	if dryRun {
		s.objects[user] = decoded(before)
	}
	return after, warnings, nil
}

// edit is somebody's change of the template.
func (all *several) edit(user workload.Ref) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.admitted(user, "kubernetes-admin", "kubectl-edit", true, false)
}

// order is somebody's rolling re-admission.
func (all *several) order(user workload.Ref) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.admitted(user, "kubernetes-admin", checksum.RollingManager, false, false)
}

func (all *several) admitted(user workload.Ref, account, manager string, templateChanged, dryRun bool) (warnings []string) {
	object, err := all.kind.Decode(all.body(user))
	if err != nil {
		all.t.Fatal(err)
	}
	held, _ := object.Records()
	sent := held
	call := func(s *site) (changed bool) {
		if s.deaf {
			return false
		}
		decision := s.decide(object.Annotations, user, account, manager, templateChanged, held, sent)
		for _, finding := range decision.Findings {
			if !slices.Contains(warnings, finding.Warning()) {
				warnings = append(warnings, finding.Warning())
			}
		}
		changed = !decision.Records.Equal(sent)
		sent = decision.Records
		return changed
	}
	var called, again []*site
	for pass := range 2 {
		for _, s := range all.sites {
			if pass == 1 && !slices.Contains(again, s) {
				continue
			}
			if call(s) {
				again, called = append(again, called...), nil
			}
			called = append(called, s)
		}
	}
	if sent.Equal(held) {
		return warnings
	}
	if !dryRun {
		all.writes++
		if templateChanged || rollout.RolledBetween(held, sent) {
			all.rolls++
		}
	}
	all.store(user, sent)
	return warnings
}

// decide is what the webhook of an installation makes of a request.
func (s *site) decide(annotations map[string]string, user workload.Ref, account, manager string, templateChanged bool, held, sent checksum.Records) checksum.Decision {
	if served, _ := checksum.Served(checksum.Candidate{}, checksum.Namespace{OptedIn: true, Settings: s.settings}, s.name); !served && !s.behind {
		return checksum.Decision{Records: sent}
	}
	object, err := s.kind.Decode(s.body(user))
	if err != nil {
		s.t.Fatal(err)
	}
	references, err := object.References()
	if err != nil {
		s.t.Fatal(err)
	}
	policy := s.policy.With(checksum.Level{Origin: checksum.OfWorkload, Annotations: annotations}, checksum.Level{Origin: checksum.OfNamespace, Annotations: s.settings})
	installation := s.name
	if s.silent {
		installation = ""
	}
	return checksum.Decide(s.keys, checksum.Admission{
		Namespace: user.Namespace, Asker: checksum.AskerOf(manager), TemplateChanged: templateChanged, Fresh: true, Policy: policy,
		Account: checksum.AccountOf(account, installation), Installation: installation,
		Selections: checksum.Selections(references, policy), Held: held, Sent: sent,
		Content: func(source checksum.Source) *checksum.Content { return s.contents[source] },
	})
}

// keptBy tells whose key a workload's record of configmap/c is under.
func (all *several) keptBy(user workload.Ref) string {
	object, err := all.kind.Decode(all.body(user))
	if err != nil {
		all.t.Fatal(err)
	}
	records, _ := object.Records()
	value, _ := records.Of(configMap("c"))
	for _, s := range all.sites {
		if _, unknown := s.keys.UnknownKey(value); value != "" && !unknown {
			return s.name
		}
	}
	return value
}

func count(events []string, reason string) (n int) {
	for _, event := range events {
		if strings.Contains(event, " "+reason+" ") {
			n++
		}
	}
	return n
}

// Each of two installations looks a thousand times, in either order of their
// webhooks.
func TestOthers_TwoInstallationsOverOneNamespaceComeToRest(t *testing.T) {
	for _, first := range []int{0, 1} {
		all := newSeveral(t, "a", "b")
		all.write("c", map[string]string{"k": "1"})
		var users []workload.Ref
		for i := range 3 {
			users = append(users, all.deploy(fmt.Sprintf("w%d", i), "c"))
		}
		a, b := all.sites[first], all.sites[1-first]
		a.look() // it was there before the other one
		if all.writes != len(users) {
			t.Fatalf("%d writes for %d workloads", all.writes, len(users))
		}
		all.looks(1000, 7*time.Second)
		if all.writes != len(users) || all.rolls != 0 {
			t.Errorf("%d writes and %d rolls in 1,000 looks, want none beside %d records", all.writes, all.rolls, len(users))
		}
		for _, user := range users {
			if by := all.keptBy(user); by != a.name {
				t.Errorf("%s is kept by %q, want %q", user.Name, by, a.name)
			}
		}
		said := b.said()
		if n := count(said, checksum.OtherInstallation.Event()); n != 1 || len(said) != 1 || !strings.Contains(said[0], "in the namespace "+a.name+",") || !strings.Contains(said[0], "configstamp.dev/installation") {
			t.Errorf("the second one said %q, want one %s", said, checksum.OtherInstallation)
		}
		if n := count(a.said(), checksum.OtherInstallation.Event()); n != 0 {
			t.Errorf("the first one said %d times that there is another", n)
		}
		// It does not look through the other's webhook each time either.
		if n := count(strings.Split(strings.Join(all.calls, " \n "), "\n"), "get"); n > 30 {
			t.Errorf("%d reads of workloads in two hours", n)
		}
	}
}

// What is kept by one is rolled by that one, once, and the other's webhook does not
// stand in its way.
func TestOthers_AnEditRollsOnceWhoeverKeepsTheWorkload(t *testing.T) {
	for _, keeper := range []int{0, 1} {
		all := newSeveral(t, "a", "b")
		all.write("c", map[string]string{"k": "1"})
		user := all.deploy("web", "c")
		all.sites[keeper].look()
		all.looks(5, time.Minute)
		for edit := range 3 {
			all.write("c", map[string]string{"k": fmt.Sprint("edit ", edit)})
			for _, s := range all.sites {
				s.controller.Changed("shop", configMap("c"))
			}
			all.looks(20, time.Minute)
			if all.rolls != edit+1 {
				t.Errorf("kept by %s: %d rolls for %d edits", all.sites[keeper].name, all.rolls, edit+1)
			}
			if by := all.keptBy(user); by != all.sites[keeper].name {
				t.Errorf("kept by %q after an edit, want %q", by, all.sites[keeper].name)
			}
		}
	}
}

// Somebody changes the template: both stamp, the last one called stays, and from
// then on keeps the workload. It rolls once by that.
func TestOthers_AChangedTemplateIsStampedOnceAndRests(t *testing.T) {
	for _, keeper := range []int{0, 1} {
		all := newSeveral(t, "a", "b")
		all.write("c", map[string]string{"k": "1"})
		user := all.deploy("web", "c")
		all.sites[keeper].look()
		all.looks(3, time.Minute)
		before := all.writes
		all.edit(user)
		all.looks(300, time.Minute)
		if by := all.keptBy(user); all.writes != before+1 || all.rolls != 1 || by != "b" {
			t.Errorf("%d writes and %d rolls by somebody's one, kept by %q", all.writes-before, all.rolls, by)
		}
		all.write("c", map[string]string{"k": "2"})
		for _, s := range all.sites {
			s.controller.Changed("shop", configMap("c"))
		}
		all.looks(20, time.Minute)
		if all.rolls != 2 || all.keptBy(user) != "b" {
			t.Errorf("%d rolls after an edit, kept by %q", all.rolls, all.keptBy(user))
		}
	}
}

// A person's order rolls what has changed, and writes over nothing.
func TestOthers_AnOrderIsServedByTheOneThatKeepsTheWorkload(t *testing.T) {
	for _, keeper := range []int{0, 1} {
		all := newSeveral(t, "a", "b")
		all.write("c", map[string]string{"k": "1"})
		user := all.deploy("web", "c")
		all.sites[keeper].look()
		all.write("c", map[string]string{"k": "2"})
		all.order(user)
		if by := all.keptBy(user); all.rolls != 1 || by != all.sites[keeper].name {
			t.Errorf("%d rolls, kept by %q, want one by %q", all.rolls, by, all.sites[keeper].name)
		}
	}
}

// Each has recorded something of one workload: nobody writes, and each serves its own.
func TestOthers_EachServesWhatItKeeps(t *testing.T) {
	for keeper := range 2 {
		all := newSeveral(t, "a", "b")
		all.write("c", map[string]string{"k": "1"})
		all.write("d", map[string]string{"k": "1"})
		user := all.deploy("web", "c", "d")
		selection := func(name string) checksum.Selection { return checksum.Selection{Source: configMap(name), All: true} }
		all.store(user, checksum.Records{Baseline: map[checksum.Source]string{
			configMap("c"): all.sites[keeper].keys.Digest("shop", selection("c"), all.contents[configMap("c")]),
			configMap("d"): all.sites[1-keeper].keys.Digest("shop", selection("d"), all.contents[configMap("d")]),
		}})
		all.looks(300, time.Minute)
		if all.writes != 0 {
			t.Errorf("%d writes where each keeps something", all.writes)
		}
		all.write("c", map[string]string{"k": "2"})
		all.looks(300, time.Minute)
		if by := all.keptBy(user); all.rolls != 1 || all.writes != 1 || by != all.sites[keeper].name {
			t.Errorf("%d rolls, %d writes, kept by %q, want one by %q", all.rolls, all.writes, by, all.sites[keeper].name)
		}
	}
}

// A new leader finds the same: it asks, and writes nothing.
func TestOthers_ANewLeaderFindsTheSame(t *testing.T) {
	all := newSeveral(t, "a", "b")
	all.write("c", map[string]string{"k": "1"})
	user := all.deploy("web", "c")
	all.sites[0].look()
	all.looks(10, time.Minute)
	for range 50 {
		for _, s := range all.sites {
			s.lead()
		}
		all.looks(2, time.Minute)
	}
	if all.writes != 1 || all.keptBy(user) != "a" {
		t.Errorf("%d writes, kept by %q", all.writes, all.keptBy(user))
	}
}

// An installation moves: while the old one is there it keeps what it has, and after
// that everything is recorded anew, once.
func TestOthers_AnInstallationThatMovesRecordsAnewOnce(t *testing.T) {
	all := newSeveral(t, "old")
	all.write("c", map[string]string{"k": "1"})
	user, other := all.deploy("web", "c"), all.deploy("db", "c")
	all.looks(1, time.Minute)
	moved := all.install("new")
	all.looks(500, time.Minute)
	if all.writes != 2 {
		t.Errorf("%d writes while both are there, want the 2 records", all.writes)
	}
	moved.said()
	all.uninstall("old")
	all.looks(1000, time.Minute)
	if all.writes != 4 || all.rolls != 0 || all.keptBy(user) != "new" || all.keptBy(other) != "new" {
		t.Errorf("%d writes, %d rolls, kept by %q and %q", all.writes, all.rolls, all.keptBy(user), all.keptBy(other))
	}
	if said := moved.said(); count(said, checksum.LostRecord.Event()) != 2 || count(said, checksum.OtherInstallation.Event()) != 0 {
		t.Errorf("said %q", said)
	}
}

// Where no webhook claims anything (it is away, or nobody can tell whose account
// asks), a key that comes back after it was recorded anew is somebody's.
func TestOthers_AKeyThatComesBackIsSomebodys(t *testing.T) {
	all := newSeveral(t, "a", "b")
	all.write("c", map[string]string{"k": "1"})
	for i := range 3 {
		all.deploy(fmt.Sprintf("w%d", i), "c")
	}
	for _, s := range all.sites {
		s.silent = true
	}
	// Only the own webhook answers each: no chain in which one is always the last.
	for range 1000 {
		for _, s := range all.sites {
			for _, other := range all.sites {
				other.deaf = other != s
			}
			s.look()
		}
		all.clock.Step(7 * time.Second)
	}
	if all.writes > 4*3 {
		t.Errorf("%d writes in 1,000 looks at 3 workloads", all.writes)
	}
	told := 0
	for _, s := range all.sites {
		n := count(s.said(), checksum.OtherInstallation.Event())
		told += n
		if n > 1 {
			t.Errorf("%s said %d times that there is another", s.name, n)
		}
	}
	if told == 0 {
		t.Error("nobody said that there is another")
	}
}

// The Namespace names the installation that serves it.
func TestOthers_ANamespaceNamesItsInstallation(t *testing.T) {
	all := newSeveral(t, "a", "b")
	all.write("c", map[string]string{"k": "1"})
	user := all.deploy("web", "c")
	all.sites[0].look()
	all.looks(22, time.Minute) // b has asked two minutes ago
	for _, s := range all.sites {
		s.said()
	}
	all.name("b")
	all.sites[0].behind = true
	all.looks(2, time.Second)
	all.sites[0].behind = false
	all.looks(1, claims.BelievedWhereNamed)
	all.looks(1, time.Second)
	if all.writes != 2 || all.keptBy(user) != "b" {
		t.Errorf("half a minute later, %d writes, kept by %q", all.writes, all.keptBy(user))
	}
	all.looks(100, time.Minute)
	if all.writes != 2 || all.keptBy(user) != "b" {
		t.Errorf("%d writes, kept by %q", all.writes, all.keptBy(user))
	}
	all.edit(user)
	all.looks(100, time.Minute)
	if all.writes != 3 || all.keptBy(user) != "b" {
		t.Errorf("%d writes after an edit, kept by %q", all.writes, all.keptBy(user))
	}
	said := all.sites[0].said()
	if len(said) != 1 || count(said, checksum.ServedElsewhere.Event()) != 1 || !strings.Contains(said[0], "in the namespace a leaves everything") {
		t.Errorf("the one that is not named said %q", said)
	}
	// To and fro, as often as people want.
	for i := range 6 {
		all.name([]string{"a", "b"}[i%2])
		all.looks(2, time.Minute)
		if by := all.keptBy(user); all.writes != 4+i || by != []string{"a", "b"}[i%2] {
			t.Errorf("%d writes after the Namespace was named %d times, kept by %q", all.writes, i+2, by)
		}
	}
	// Nobody at all.
	all.name("nobody")
	before := all.writes
	all.write("c", map[string]string{"k": "2"})
	all.looks(100, time.Minute)
	if all.writes != before {
		t.Errorf("%d writes where nobody serves", all.writes-before)
	}
}
