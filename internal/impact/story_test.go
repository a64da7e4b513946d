package impact_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

var update = flag.Bool("update", false, "write the stories in testdata")

// A Wednesday, at ten in the morning.
var now = time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)

func limits() rollout.Limits {
	return rollout.Limits{Step: 1, Settle: 2 * time.Second, Soak: 10 * time.Second, CrashDeadline: 30 * time.Second, RolloutDeadline: 10 * time.Minute}
}

var config = checksum.Source{Kind: checksum.ConfigMap, Name: "payment-api-config"}

func at(namespace string, source checksum.Source) rollout.SourceRef {
	return rollout.SourceRef{Namespace: namespace, Source: source}
}

func kind(name string) *workload.Kind {
	for _, k := range workload.Builtin().With(workload.Known()...) {
		if k.Name == name {
			return k
		}
	}
	panic(name)
}

// web is a Deployment of three replicas that reads a source by envFrom, and is on record
// under a key that nobody here has.
func web(name string, changes ...func(*impact.Workload)) impact.Workload {
	w := impact.Workload{
		Ref: workload.Ref{Kind: kind("Deployment"), Namespace: "shop", Name: name}, Served: true, Policy: checksum.DefaultPolicy(),
		References: []checksum.Reference{{Source: config, Use: checksum.Startup, All: true, Env: true}},
		Records:    checksum.Records{Stamps: map[string]string{checksum.StampKey(config): "v1:0123abcd:all:00112233445566778899aabbccddeeff"}},
		Status:     workload.Status{Phase: workload.RolledOut, Wanted: 3, Available: 3, Updated: 3, Gentle: true},
	}
	for _, change := range changes {
		change(&w)
	}
	return w
}

func of(name string) func(*impact.Workload) {
	return func(w *impact.Workload) { w.Ref.Kind = kind(name) }
}

func says(setting, value string) func(*impact.Workload) {
	return func(w *impact.Workload) {
		w.Policy = w.Policy.With(checksum.Level{Origin: checksum.OfWorkload, Annotations: map[string]string{"configstamp.dev/" + setting: value}})
	}
}

func status(s workload.Status) func(*impact.Workload) {
	return func(w *impact.Workload) { w.Status = s }
}

func uses(references ...checksum.Reference) func(*impact.Workload) {
	return func(w *impact.Workload) { w.References = references }
}

// recordedAs is the value on record, of some selection.
func recordedAs(selection string) func(*impact.Workload) {
	return func(w *impact.Workload) {
		w.Records.Stamps = map[string]string{checksum.StampKey(config): "v1:0123abcd:" + selection + ":00112233445566778899aabbccddeeff"}
	}
}

func oneKey(key string) func(*impact.Workload) {
	return func(w *impact.Workload) {
		uses(checksum.Reference{Source: config, Use: checksum.Startup, Keys: []string{key}, RequiredKeys: []string{key}, Env: true})(w)
		recordedAs(checksum.Selections(w.References, w.Policy)[0].ID())(w)
	}
}

// suppose asks what comes of an edit.
func suppose(t *testing.T, limits rollout.Limits, seen func(rollout.SourceRef) impact.Seen, edits func(*impact.Supposed) []impact.Edit, workloads ...impact.Workload) *impact.Question {
	t.Helper()
	if seen == nil {
		seen = func(rollout.SourceRef) impact.Seen { return impact.Seen{} }
	}
	world, err := impact.Suppose(workloads, seen)
	if err != nil {
		t.Fatal(err)
	}
	return &impact.Question{Edits: edits(world), Now: now, Workloads: world.Workloads, Limits: limits, CanRoll: len(workloads), Ring: world.Ring, Content: world.Content}
}

// edited changes some keys of the one source, or all.
func edited(keys ...string) func(*impact.Supposed) []impact.Edit {
	return func(s *impact.Supposed) []impact.Edit {
		return []impact.Edit{s.Changed(at("shop", config), keys...)}
	}
}

func deleted(s *impact.Supposed) []impact.Edit {
	return []impact.Edit{s.Deleted(at("shop", config))}
}

// text is an answer as people may read it.
func text(q *impact.Question) string {
	var b strings.Builder
	answer := q.Answer()
	for i := range answer.Rolls {
		r := &answer.Rolls[i]
		fmt.Fprintf(&b, "%s rolls", r.Workload)
		if r.Held.Reason != reason.NoReason {
			fmt.Fprintf(&b, "; held by %s until %s", r.Held.Reason, r.Held.Until.Format(time.RFC3339))
		}
		if r.Waits != "" {
			fmt.Fprintf(&b, "; no pod restarts: %s", r.Waits)
		}
		fmt.Fprintln(&b)
	}
	for _, s := range answer.Stays {
		said := checksum.Finding{Reason: s.Why, Source: s.Source}
		if s.Finding.Reason != reason.NoReason {
			said = s.Finding
		}
		fmt.Fprintf(&b, "%s stays (%s): %s", s.Workload, s.Why, said)
		if s.Would {
			fmt.Fprint(&b, "; it rolls when that ends")
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "%d first\n", answer.First)
	return b.String()
}

// tells compares a story with the one in testdata.
func tells(t *testing.T, name string, q *impact.Question) {
	t.Helper()
	path, got := filepath.Join("testdata", name+".golden"), text(q)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: it tells\n%s\nwant\n%s", name, got, want)
	}
}
