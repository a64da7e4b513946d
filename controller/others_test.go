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
	name       string
	keys       *checksum.Ring
	away       bool // its webhook is not called
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

// Ring implements Keys.
func (s *site) Ring() *checksum.Ring { return s.keys }

// look has the controller of an installation look at every workload.
func (s *site) look() {
	for ref := range s.objects {
		s.controller.sees(s.t, ref, s.body(ref))
		_, _ = s.controller.sync(s.t.Context(), ref) // what fails is tried again at the next look
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
func (s *site) readmit(_ context.Context, ref workload.Ref, manager string, dryRun bool) ([]byte, []string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	account := "system:serviceaccount:" + s.name + ":configstamp"
	before := s.body(ref)
	warnings := s.admitted(ref, account, manager, false, dryRun)
	after := s.body(ref)
	if dryRun {
		s.objects[ref] = decoded(before)
	}
	return after, warnings, nil
}

// edit is somebody's change of the template.
func (all *several) edit(ref workload.Ref) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.admitted(ref, "kubernetes-admin", "kubectl-edit", true, false)
}

func (all *several) admitted(ref workload.Ref, account, manager string, templateChanged, dryRun bool) (warnings []string) {
	object, err := all.kind.Decode(all.body(ref))
	if err != nil {
		all.t.Fatal(err)
	}
	held, _ := object.Records()
	sent := held
	call := func(s *site) (changed bool) {
		if s.away {
			return false
		}
		decision := s.decide(object.Annotations, ref, account, manager, templateChanged, held, sent)
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
	all.store(ref, sent)
	return warnings
}

// decide is what the webhook of an installation makes of a request.
func (s *site) decide(annotations map[string]string, ref workload.Ref, account, manager string, templateChanged bool, held, sent checksum.Records) checksum.Decision {
	if served, _ := checksum.Served(checksum.Candidate{}, checksum.Namespace{OptedIn: true, Settings: s.settings}, s.name); !served {
		return checksum.Decision{Records: sent}
	}
	object, err := s.kind.Decode(s.body(ref))
	if err != nil {
		s.t.Fatal(err)
	}
	references, err := object.References()
	if err != nil {
		s.t.Fatal(err)
	}
	policy := s.policy.With(checksum.Level{Origin: checksum.OfWorkload, Annotations: annotations}, checksum.Level{Origin: checksum.OfNamespace, Annotations: s.settings})
	return checksum.Decide(s.keys, checksum.Admission{
		Namespace: ref.Namespace, Asker: checksum.AskerOf(manager), TemplateChanged: templateChanged, Fresh: true, Policy: policy,
		Own:        checksum.IsOwn(account, s.name),
		Selections: checksum.Selections(references, policy), Held: held, Sent: sent,
		Content: func(source checksum.Source) *checksum.Content { return s.contents[source] },
	})
}

// keptBy tells whose key a workload's record of configmap/c is under.
func (all *several) keptBy(ref workload.Ref) string {
	object, err := all.kind.Decode(all.body(ref))
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

// The Namespace names nobody. Each of two installations looks every minute for a day, in either
// order of their webhooks: nothing restarts, they write seldom, and each edit rolls once.
func TestOthers_TwoInstallationsOverOneNamespaceComeToRest(t *testing.T) {
	for _, first := range []int{0, 1} {
		all := newSeveral(t, "a", "b")
		all.write("c", map[string]string{"k": "1"})
		var refs []workload.Ref
		for i := range 3 {
			refs = append(refs, all.deploy(fmt.Sprintf("w%d", i), "c"))
		}
		all.sites[first].look() // it was there before the other one
		all.looks(24*60, time.Minute)
		if all.writes > 2*len(refs) || all.rolls != 0 {
			t.Errorf("%d writes and %d rolls in a day, want %d records at most", all.writes, all.rolls, 2*len(refs))
		}
		// It does not look through the other's webhook each time either.
		if n := count(strings.Split(strings.Join(all.calls, " \n "), "\n"), "get"); n > 3*len(refs)*24 {
			t.Errorf("%d reads of workloads in a day", n)
		}
		for edit := range 3 {
			before := all.rolls
			all.write("c", map[string]string{"k": fmt.Sprint("edit ", edit)})
			for _, s := range all.sites {
				s.controller.Changed("shop", configMap("c"))
			}
			all.looks(100, time.Minute)
			if all.rolls != before+len(refs) {
				t.Errorf("%d rolls of %d workloads for an edit", all.rolls-before, len(refs))
			}
		}
		for _, ref := range refs {
			if by := all.keptBy(ref); by != "b" {
				t.Errorf("%s is kept by %q, want b, whose webhook is called last", ref.Name, by)
			}
		}
	}
}

// Both stamp a changed template: it rolls once.
func TestOthers_AChangedTemplateIsStampedOnceAndRests(t *testing.T) {
	for _, keeper := range []int{0, 1} {
		all := newSeveral(t, "a", "b")
		all.write("c", map[string]string{"k": "1"})
		ref := all.deploy("web", "c")
		all.sites[keeper].look()
		all.looks(3, time.Minute)
		before := all.writes
		all.edit(ref)
		all.looks(300, time.Minute)
		if by := all.keptBy(ref); all.writes != before+1 || all.rolls != 1 || by != "b" {
			t.Errorf("%d writes and %d rolls by somebody's one, kept by %q", all.writes-before, all.rolls, by)
		}
	}
}

// An installation has gone: what it has recorded is recorded anew, once, and people hear what to
// do if it has not.
func TestOthers_WhatAnInstallationLeftIsRecordedAnewOnce(t *testing.T) {
	all := newSeveral(t, "old")
	all.write("c", map[string]string{"k": "1"})
	ref, other := all.deploy("web", "c"), all.deploy("db", "c")
	all.looks(1, time.Minute)
	moved := all.install("new")
	all.sites = all.sites[1:]
	all.looks(1000, time.Minute)
	if all.writes != 4 || all.rolls != 0 || all.keptBy(ref) != "new" || all.keptBy(other) != "new" {
		t.Errorf("%d writes, %d rolls, kept by %q and %q", all.writes, all.rolls, all.keptBy(ref), all.keptBy(other))
	}
	if said := moved.said(); count(said, checksum.LostRecord.Event()) != 2 || !strings.Contains(said[0], "configstamp.dev/installation") {
		t.Errorf("said %q", said)
	}
}

// A lost key comes with a webhook that starts: where it was not called nothing was recorded, and the
// workload waits for no hour.
func TestOthers_AWebhookThatIsAwayIsAskedAgainSoon(t *testing.T) {
	all := newSeveral(t, "old")
	all.write("c", map[string]string{"k": "1"})
	ref := all.deploy("web", "c")
	all.looks(1, time.Minute)
	all.install("new").away = true
	all.sites = all.sites[1:]
	all.looks(3, time.Second)
	all.sites[0].away = false
	all.looks(2, time.Second)
	if all.writes != 2 || all.keptBy(ref) != "new" {
		t.Errorf("%d writes, kept by %q", all.writes, all.keptBy(ref))
	}
}

// The Namespace names the installation that serves it.
func TestOthers_ANamespaceNamesItsInstallation(t *testing.T) {
	all := newSeveral(t, "a", "b")
	all.write("c", map[string]string{"k": "1"})
	ref := all.deploy("web", "c")
	all.name("a")
	all.looks(3, time.Minute)
	if all.writes != 1 || all.keptBy(ref) != "a" {
		t.Errorf("%d writes, kept by %q", all.writes, all.keptBy(ref))
	}
	all.name("b")
	all.looks(100, time.Minute)
	if all.writes != 2 || all.keptBy(ref) != "b" {
		t.Errorf("%d writes, kept by %q", all.writes, all.keptBy(ref))
	}
	all.edit(ref)
	all.looks(100, time.Minute)
	if all.writes != 3 || all.keptBy(ref) != "b" {
		t.Errorf("%d writes after an edit, kept by %q", all.writes, all.keptBy(ref))
	}
	said := all.sites[0].said()
	if n := count(said, checksum.ServedElsewhere.Event()); n != 1 || !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "in the namespace a leaves everything") }) {
		t.Errorf("the one that is not named said %q", said)
	}
	// To and fro, as often as people want: each takes over within an hour.
	for i := range 6 {
		all.name([]string{"a", "b"}[i%2])
		all.looks(61, time.Minute)
		if by := all.keptBy(ref); all.writes != 4+i || by != []string{"a", "b"}[i%2] {
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
