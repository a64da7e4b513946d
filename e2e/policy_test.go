package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What people set by annotations. Here: which sources count.

// settings are annotations of a policy, by the names of the settings.
type settings = map[string]string

// overruling are values by which a workload undoes whatever its Namespace says.
var overruling = settings{
	"only": "configmap/*,secret/*", "ignore": "secret/none", "also": "configmap/startup", "restart-on": "all",
	"mode": "restart", "pause": "false", "window": "00:00-24:00 UTC", "min-interval": "1ms", "adopt": "baseline",
}

// level is where settings stand.
type level string

const (
	onWorkload  level = "Workload"
	onNamespace level = "Namespace"
)

var levels = []level{onWorkload, onNamespace}

// row is a Deployment, and settings that concern it.
type row struct {
	name     string
	settings settings
	// notOn leaves the row out where it would contradict another.
	notOn level
	// counts are the sources that count for it.
	counts []string
	// note is the event about an edit that is held.
	note string
	// unmoved tells that a person's order does not roll it.
	unmoved bool
}

func (r row) workload() string { return "deployment/" + r.name }

// ruled is a namespace with a Deployment for each row, each under its own row's
// settings alone.
type ruled struct {
	*harness.Space
	t         *testing.T
	at        level
	rows      []row
	namespace settings // what stands on the Namespace
	edits     int
}

func newRuled(t *testing.T, at level, space func(testing.TB) *harness.Space, rows []row) *ruled {
	t.Helper()
	r := &ruled{Space: space(t), t: t, at: at, namespace: settings{}}
	for _, row := range rows {
		if row.notOn == at {
			continue
		}
		r.rows = append(r.rows, row)
		if at == onNamespace {
			maps.Copy(r.namespace, row.settings)
		}
	}
	if at == onNamespace {
		r.SetPolicy("namespace", r.namespace)
		r.Quiet() // every process has learnt of it
	}
	return r
}

// of are the settings on a row's own workload. A min-interval is always among
// them: a workload that has none is slowed down at its fourth roll.
func (r *ruled) of(row row) settings {
	own := settings{"min-interval": overruling["min-interval"]}
	if r.at == onWorkload {
		maps.Copy(own, row.settings)
		return own
	}
	if _, ruled := row.settings["min-interval"]; ruled {
		delete(own, "min-interval")
	}
	for name := range r.namespace {
		if _, ruled := row.settings[name]; !ruled {
			own[name] = overruling[name]
		}
	}
	return own
}

// create creates the Deployments, of which each reads all that manifest says.
func (r *ruled) create(manifest func(name string) string) harness.Counts {
	r.t.Helper()
	for i := range r.rows {
		r.Create(withPolicy(manifest(r.rows[i].name), r.of(r.rows[i])))
	}
	return r.Settled(r.workloads()...)
}

func (r *ruled) workloads() []string {
	names := make([]string, len(r.rows))
	for i := range r.rows {
		names[i] = r.rows[i].workload()
	}
	return names
}

// drop takes the rows' settings away, and set writes them again.
func (r *ruled) drop() { r.each(r.DropPolicy) }
func (r *ruled) set()  { r.each(r.SetPolicy) }

func (r *ruled) each(do func(string, map[string]string)) {
	if r.at == onNamespace {
		do("namespace", r.namespace)
		return
	}
	for _, row := range r.rows {
		do(row.workload(), row.settings)
	}
}

// edit gives sources new content.
func (r *ruled) edit(sources ...string) {
	r.t.Helper()
	r.edits++
	for _, source := range sources {
		r.Set(source, "k", fmt.Sprint(r.edits))
	}
	r.Warnings() // what is said of an edit is the matter of TestImpact
}

// wantEach checks that exactly those rows roll for which it holds, once.
func (r *ruled) wantEach(before harness.Counts, holds func(row) bool) {
	r.t.Helper()
	want := rolls{}
	for _, row := range r.rows {
		if holds(row) {
			want[row.workload()] = 1
		}
	}
	r.WantRolls(before, want)
}

// withPolicy writes settings on an object itself.
func withPolicy(manifest string, settings settings) string {
	lines := ""
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		lines += fmt.Sprintf("configstamp.dev/%s: %q, ", name, settings[name])
	}
	return strings.Replace(manifest, "metadata: {name:", "metadata: {annotations: {"+lines+"}, name:", 1)
}

// wantStamps checks that a workload is stamped for these sources, truly, and for
// no others.
func wantStamps(t *testing.T, s *harness.Space, workload string, sources ...string) {
	t.Helper()
	for _, source := range sources {
		wantStamp(t, s, workload, source)
	}
	wantStamped(t, s, workload, sources...)
}

// wantStamped checks for which sources a workload is stamped, true or not.
func wantStamped(t *testing.T, s *harness.Space, workload string, sources ...string) {
	t.Helper()
	keys := make([]string, len(sources))
	for i, source := range sources {
		keys[i] = harness.StampKey(source)
	}
	slices.Sort(keys)
	if got := slices.Sorted(maps.Keys(harness.Stamps(s.Get(workload)))); !slices.Equal(got, keys) {
		t.Errorf("%s is stamped for %v, want %v", workload, got, keys)
	}
}

// reader reads a source by each use. There is configmap/unnamed beside these,
// and configmap/later comes later.
func reader(name string) string {
	return workload("Deployment", name, envFrom("configmap/startup", "secret/startup")+"volumeMounts: [{name: live, mountPath: /live}]\n",
		"volumes: [{name: live, configMap: {name: live}}]\n", "imagePullSecrets: [{name: node}]\n")
}

// usual are the sources that count for a reader by default.
var usual = []string{"configmap/live", "configmap/startup", "secret/startup"}

// readers are what counts under which settings.
var readers = []row{
	{name: "none", counts: usual},
	{name: "only", settings: settings{"only": "configmap/start*, secret/other"}, counts: []string{"configmap/startup"}},
	{name: "ignore", settings: settings{"ignore": "configmap/live,secret/*"}, counts: []string{"configmap/startup"}},
	{name: "also", settings: settings{"also": "configmap/unnamed,configmap/later"}, counts: append([]string{"configmap/later", "configmap/unnamed"}, usual...)},
	{name: "startup", settings: settings{"restart-on": "startup"}, counts: []string{"configmap/startup", "secret/startup"}},
	{name: "everything", settings: settings{"restart-on": "everything"}, notOn: onNamespace, counts: append([]string{"secret/node"}, usual...)},
	{
		name: "order", notOn: onNamespace,
		settings: settings{"only": "configmap/startup,secret/startup", "also": "configmap/live,configmap/unnamed", "ignore": "configmap/live,secret/startup"},
		counts:   []string{"configmap/startup", "configmap/unnamed"},
	},
}

func TestPolicy_WhatCounts(t *testing.T) {
	t.Parallel()
	for _, at := range levels {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := newRuled(t, at, run.Space, readers)
			s.edit("configmap/live", "configmap/startup", "configmap/unnamed", "secret/node", "secret/startup")
			before := s.create(reader)
			for _, row := range s.rows {
				wantStamps(t, s.Space, row.workload(), row.counts...)
			}
			for _, sources := range [][]string{{"configmap/startup"}, {"secret/startup"}, {"configmap/live"}, {"secret/node"}, {"configmap/unnamed"}, {"configmap/later"}} {
				s.edit(sources...)
				s.wantEach(before, func(r row) bool {
					return slices.ContainsFunc(r.counts, func(source string) bool { return slices.Contains(sources, source) })
				})
				before = s.Counts()
			}
			for _, row := range s.rows {
				wantStamps(t, s.Space, row.workload(), row.counts...)
			}

			// Changing the policy restarts nothing: what counts now is recorded, and
			// what does not keeps its stamp until the template changes.
			s.drop()
			for _, row := range s.rows {
				for _, source := range usual {
					wantRecord(t, s.Space, row.workload(), source)
				}
			}
			s.Unchanged(before)
			for _, row := range s.rows {
				wantStamped(t, s.Space, row.workload(), row.counts...)
			}
			s.edit("configmap/later", "configmap/unnamed", "secret/node")
			s.Unchanged(before)
			s.edit("configmap/live")
			s.wantEach(before, func(row) bool { return true })
			for _, row := range s.rows {
				wantStamps(t, s.Space, row.workload(), usual...)
			}

			before = s.Counts()
			s.set()
			for _, row := range s.rows {
				for _, source := range row.counts {
					wantRecord(t, s.Space, row.workload(), source)
				}
			}
			s.Unchanged(before)
			for _, row := range s.rows {
				wantStamped(t, s.Space, row.workload(), usual...)
				s.Patch(row.workload(), `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":1}}}}`)
			}
			s.wantEach(before, func(row) bool { return true })
			for _, row := range s.rows {
				wantStamps(t, s.Space, row.workload(), row.counts...)
			}
		})
	}
}
