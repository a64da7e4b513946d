package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// example is what a file of examples/ has to do: no warning, these stamps, and what its
// comment says of edits.
type example struct {
	namespace string              // that it brings; without it: any
	stamped   map[string][]string // by workload: the sources
	keys      map[string][]string // by source: the keys that count, where not all do
	but       map[string][]string // by source: the patterns of keys that do not
	idle      [][]string          // edits that restart nothing
	edit      []string            // an edit, and
	rolls     rolls               // what it rolls
	held      string              // or the workload that it holds
}

var examples = map[string]example{
	"first-workload.yaml": {
		namespace: "hello", stamped: map[string][]string{"deployment/web-app": {"configmap/web-message"}},
		edit: []string{"configmap/web-message", "MESSAGE", "hello moon"}, rolls: rolls{"deployment/web-app": 1},
	},
	"secret-statefulset.yaml": {
		stamped: map[string][]string{"statefulset/db": {"secret/db-login"}}, keys: map[string][]string{"secret/db-login": {"password"}},
		idle: [][]string{{"secret/db-login", "comment", "another"}},
		edit: []string{"secret/db-login", "password", "changed"}, rolls: rolls{"statefulset/db": 1},
	},
	"cronjob.yaml":       {stamped: map[string][]string{"cronjob/report": {"configmap/report-settings"}}},
	"policy-window.yaml": {stamped: map[string][]string{"deployment/night": {"configmap/night-settings"}}},
	"policy-pause.yaml": {
		stamped: map[string][]string{"deployment/paused": {"configmap/paused-settings"}},
		edit:    []string{"configmap/paused-settings", "COLOUR", "green"}, held: "deployment/paused",
	},
	"policy-ignore-keys.yaml": {
		stamped: map[string][]string{"deployment/web": {"configmap/web-settings"}}, but: map[string][]string{"configmap/web-settings": {"build-date", "*.md"}},
		idle: [][]string{{"configmap/web-settings", "build-date", "2026-11-02", "notes.md", "other"}},
		edit: []string{"configmap/web-settings", "COLOUR", "green"}, rolls: rolls{"deployment/web": 1},
	},
	"policy-only.yaml": {
		stamped: map[string][]string{"deployment/shop": {"configmap/shop-flags"}},
		idle:    [][]string{{"configmap/shop-texts", "GREETING", "good evening"}},
		edit:    []string{"configmap/shop-flags", "COLOUR", "green"}, rolls: rolls{"deployment/shop": 1},
	},
	// Nothing runs here, so one waits for the first for ever: ./rollouts sees such a change stop.
	"bad-edit.yaml": {stamped: map[string][]string{"deployment/cart": {"configmap/timeouts"}, "deployment/checkout": {"configmap/timeouts"}, "deployment/search": {"configmap/timeouts"}}},
}

func TestExamples(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	files, err := filepath.Glob("../examples/*.yaml")
	harness.Must(t, err)
	for _, file := range files {
		name := filepath.Base(file)
		wanted, known := examples[name]
		if !known {
			t.Errorf("examples/%s is not in this table", name)
			continue
		}
		manifest, err := os.ReadFile(file)
		harness.Must(t, err)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wanted.try(t, string(manifest))
		})
	}
	if len(files) != len(examples) {
		t.Errorf("%d files, and %d in this table", len(files), len(examples))
	}
}

func (e example) try(t *testing.T, manifest string) {
	s := run.Space(t)
	if e.namespace != "" {
		s = run.Existing(t, e.namespace)
		t.Cleanup(func() {
			_ = s.Run.Client.CoreV1().Namespaces().Delete(context.Background(), e.namespace, metav1.DeleteOptions{})
		})
	}
	wantNoWarnings(t, s.Apply(manifest))
	var names []string
	for workload, sources := range e.stamped {
		names = append(names, workload)
		wantStamped(t, s, workload, sources...)
		for _, source := range sources {
			if got, want := s.Stamp(workload, source), e.digest(s, source); got != want {
				t.Errorf("%s is stamped %q for %s, want %q", workload, got, source, want)
			}
		}
	}
	before := s.Settled(names...)
	for _, edit := range e.idle {
		s.Edit(edit[0], edit[1:]...)
		s.Unchanged(before)
	}
	if e.edit == nil {
		return
	}
	s.Edit(e.edit[0], e.edit[1:]...)
	s.WantRolls(before, e.rolls)
	if e.held != "" {
		s.WantNote(e.held, fmt.Sprintf("RolloutHeld: %s changed", e.edit[0]))
	}
}

// digest is what the stamp of a source has to be.
func (e example) digest(s *harness.Space, source string) string {
	if patterns := e.but[source]; patterns != nil {
		return s.DigestBut(source, patterns...)
	}
	return s.Digest(source, e.keys[source]...)
}
