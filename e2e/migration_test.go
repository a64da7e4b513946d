package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What docs/migration.md says of those who come from something else, where
// dialects_test.go does not prove it.

// reloaded is what Reloader 1.4.21 reads on a workload, and the sources with which it restarts the workload.
type reloaded struct {
	annotations map[string]string
	onTemplate  bool
	sources     []string
	// code is that of doctor --migrate for it, and differs reports a warning that something would differ.
	code    string
	differs bool
}

func reloadedKinds() map[string]reloaded {
	const of, annotations, all = "reloader.stakater.com/", "annotations", "configmap/a configmap/marked secret/s"
	kind := func(code string, differs bool, sources string, pairs ...string) reloaded {
		is := reloaded{annotations: map[string]string{}, code: code, differs: differs, sources: strings.Fields(sources)}
		for i := 0; i < len(pairs); i += 2 {
			is.annotations[pairs[i]] = pairs[i+1]
		}
		return is
	}
	onTemplate := kind(annotations, false, all, of+"auto", "true")
	onTemplate.onTemplate = true
	return map[string]reloaded{
		"auto":         kind(annotations, false, all, of+"auto", "true"),
		"template":     onTemplate,
		"maps":         kind(annotations, true, all, "configmap."+of+"auto", "true"),
		"secrets":      kind(annotations, true, all, "secret."+of+"auto", "true"),
		"classes":      kind(annotations, true, all+" "+vault, "secretproviderclass."+of+"auto", "true"),
		"named-map":    kind(annotations, true, all+" configmap/named", "configmap."+of+"reload", "named,a"),
		"named-secret": kind(annotations, true, all, "secret."+of+"reload", "s"),
		"named-class":  kind(annotations, true, all+" "+vault, "secretproviderclass."+of+"reload", "web-vault"),
		"search":       kind(annotations, true, all, of+"search", "true"),
		"exclude":      kind("auto-reload-all", false, "configmap/marked", "configmaps.exclude."+of+"reload", "a", "secrets.exclude."+of+"reload", "s"),
		"pause":        kind(annotations, false, all, of+"auto", "true", "deployment."+of+"pause-period", "1s"),
		"strategy":     kind(annotations, false, all, of+"auto", "true", of+"rollout-strategy", "restart"),
		"no-maps":      kind(annotations, true, "secret/s", "configmap."+of+"auto", "false"),
		"opted-out":    kind("opted-out", false, "", of+"auto", "false"),
		"plain":        kind("auto-reload-all", true, all),
	}
}

// manifest is such a workload, without pods. All use the same sources, but for the class.
func (r reloaded) manifest(kind, name string) string {
	container, pod := envFrom("configmap/a", "configmap/marked", "configmap/ignored", "secret/s"), ""
	if slices.Contains(r.sources, vault) {
		container += "volumeMounts: [{name: vault, mountPath: /vault}]\n"
		pod = "volumes: [{name: vault, csi: {driver: secrets-store.csi.k8s.io, readOnly: true, volumeAttributes: {secretProviderClass: web-vault}}}]\n"
	}
	return strings.Replace(annotated(workload(kind, name, container, pod), r.onTemplate, r.annotations), "replicas: 1", "replicas: 0", 1)
}

// A cluster of Reloader with --auto-reload-all moves as the page says: doctor --migrate names each workload, its commands
// are run, and optIn: all is set. No template changes by that. Then each edit rolls what Reloader would have restarted.
func TestMigration_FromReloader(t *testing.T) {
	product := run.Exclusive(t)
	off := harness.Usual()
	off.Webhook, off.Controller = nil, nil
	harness.Must(t, product.Restart(t.Context(), off))
	spaces := []*harness.Space{run.PlainSpace(t), run.PlainSpace(t), run.PlainSpace(t)}
	defineStatuses(t, spaces[0])
	spaces[0].Create(strings.NewReplacer("replicas: 1", "replicas: 0", "registry.example/app:1", "ghcr.io/stakater/reloader:v1.4.21").Replace(
		workload("Deployment", "reloader-reloader", `args: ["--auto-reload-all", "--enable-csi-integration=true"]`)))
	var befores []harness.Counts
	kindOf := func(space int, name string) string {
		return restamped[(space+slices.Index(slices.Sorted(maps.Keys(reloadedKinds())), name))%len(restamped)]
	}
	users := func(space int, source string) (users []string) {
		for name, of := range reloadedKinds() {
			if source == "" || slices.Contains(of.sources, source) {
				users = append(users, strings.ToLower(kindOf(space, name))+"/"+name)
			}
		}
		return users
	}
	for i, s := range spaces {
		for _, source := range []string{"configmap/a", "configmap/marked", "configmap/ignored", "configmap/named", "secret/s"} {
			s.Set(source, "k", "1")
		}
		s.Patch("configmap/marked", `{"metadata":{"annotations":{"reloader.stakater.com/match":"true"}}}`)
		s.Patch("configmap/ignored", `{"metadata":{"annotations":{"reloader.stakater.com/ignore":"true"}}}`)
		mount(s, "pod", "1")
		for name, of := range reloadedKinds() {
			s.Create(of.manifest(kindOf(i, name), name))
		}
		befores = append(befores, s.Settled(users(i, "")...))
	}
	spaces[0].Edit("configmap/a", "k", "off")
	spaces[0].Unchanged(befores[0])

	ask := plugin(t, spaces[0])
	for _, f := range wantMigrates(t, ask, spaces, true) {
		if f.Check == "differs" && f.Weight == "warning" {
			spaces[0].Kubectl(strings.Fields(f.Remedy)[1:]...)
		}
	}
	wantMigrates(t, ask, spaces, false)
	for _, kind := range []string{"ValidatingAdmissionPolicy", "MutatingWebhookConfiguration", "ConfigMap"} {
		run.Configure(t, kind, "e2e/testdata/whole-cluster.yaml")
	}
	on := withClasses()
	on.Webhook = append(on.Webhook, "--opt-in=all")
	on.Controller = append(on.Controller, "--opt-in=all", "--max-unsettled=200", "--max-unsettled-per-namespace=200")
	harness.Must(t, product.Restart(t.Context(), on))
	for i, s := range spaces {
		s.Eventually("waiting for records of just what counts", func() error {
			for name, of := range reloadedKinds() {
				object := s.Get(strings.ToLower(kindOf(i, name)) + "/" + name)
				if got := slices.Sorted(maps.Keys(harness.Baseline(object))); !slices.Equal(got, slices.Sorted(slices.Values(of.sources))) || len(harness.Stamps(object)) > 0 {
					return fmt.Errorf("%s has %q and %s", name, got, state(object))
				}
			}
			return nil
		})
		s.Unchanged(befores[i])
	}
	sources := []string{"configmap/a", "configmap/named", vault, "configmap/marked", "secret/s", "configmap/ignored"}
	for round := range len(sources) / len(spaces) { // each source in one namespace
		for i, s := range spaces {
			befores[i] = s.Counts()
			if source := sources[round*len(spaces)+i]; source == vault {
				remount(s, "pod", "2")
			} else {
				s.Edit(source, "k", "2")
			}
		}
		for i, s := range spaces {
			s.WantRolls(befores[i], each(users(i, sources[round*len(spaces)+i]), 1))
		}
	}
}

// migrationFinding is what doctor --migrate prints of one.
type migrationFinding struct {
	Weight, Check, Namespace, Remedy string
	About                            []string
}

// wantMigrates checks what doctor --migrate says, before its commands are run or after.
func wantMigrates(t *testing.T, ask func(...string) (string, int), spaces []*harness.Space, before bool) []migrationFinding {
	t.Helper()
	var answer struct{ Findings []migrationFinding }
	text, _ := ask("doctor", "--migrate", "-o", "json")
	harness.Must(t, json.NewDecoder(strings.NewReader(text)).Decode(&answer))
	has := func(s *harness.Space, name, weight, code string) bool {
		return slices.ContainsFunc(answer.Findings, func(f migrationFinding) bool {
			return f.Check == code && f.Weight == weight && f.Namespace == s.Namespace && slices.ContainsFunc(f.About, func(about string) bool { return strings.HasSuffix(about, "/"+name) })
		})
	}
	if !has(spaces[0], "reloader-reloader", "note", "reloader") {
		t.Error("Reloader is not found")
	}
	for _, s := range spaces {
		for name, of := range reloadedKinds() {
			if before && !has(s, name, "note", of.code) {
				t.Errorf("%s is not named as %s", name, of.code)
			}
			if differs := has(s, name, "warning", "differs"); differs != (before && of.differs) {
				t.Errorf("%s differs: %t, before the commands were run: %t", name, differs, before)
			}
		}
	}
	return answer.Findings
}

// former is a product that was here before, with what it writes into pod templates.
type former struct{ optIn, trace string }

func formers() map[string]former {
	return map[string]former{
		"Reloader": {"reloader.stakater.com/auto", "reloader.stakater.com/last-reloaded-from"},
		"wave":     {"wave.pusher.com/update-on-config-change", "wave.pusher.com/config-hash"},
	}
}

// workload is what it has looked after until today.
func (f former) workload() string {
	manifest := annotated(deployment("d", "configmap/c"), false, map[string]string{f.optIn: "true"})
	return annotated(manifest, true, map[string]string{f.trace: "1"})
}

// Its annotations may go or stay, once the namespace is labelled.
func TestMigration_GivingUpTheAnnotationsOfTheOther(t *testing.T) {
	t.Parallel()
	for name, product := range formers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := run.PlainSpace(t)
			s.Set("configmap/c", "k", "1")
			s.Create(product.workload())
			before := s.Settled("deployment/d")
			s.Label("enabled")
			s.Patch("deployment/d", `{"metadata":{"annotations":{"`+product.optIn+`":null}}}`)
			s.Unchanged(before)
			s.Set("configmap/c", "k", "2")
			s.WantRolls(before, rolls{"deployment/d": 1})
			wantStamp(t, s, "deployment/d", "configmap/c")
			if left := harness.TemplateAnnotations(s.Get("deployment/d"))[product.trace]; left != "1" {
				t.Errorf("%s is %q, and was 1", product.trace, left)
			}
			// What it wrote into the template costs a rollout to take out, as any edit of it does.
			before = s.Counts()
			s.Patch("deployment/d", `{"spec":{"template":{"metadata":{"annotations":{"`+product.trace+`":null}}}}}`)
			s.WantRolls(before, rolls{"deployment/d": 1})
			wantStamp(t, s, "deployment/d", "configmap/c")
		})
	}
}

// Both at work: the other writes to the template at once, and that update is
// stamped. Only when it comes later than our own rollout are there two.
func TestMigration_BothAtOnce(t *testing.T) {
	t.Parallel()
	for name, product := range formers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := run.PlainSpace(t)
			s.Set("configmap/c", "k", "1")
			s.Create(product.workload())
			before := s.Settled("deployment/d")
			other := func(value string) {
				s.Patch("deployment/d", `{"spec":{"template":{"metadata":{"annotations":{"`+product.trace+`":"`+value+`"}}}}}`)
			}
			together(s, func() {
				s.Set("configmap/c", "k", "2")
				other("2")
			})
			s.WantRolls(before, rolls{"deployment/d": 1})
			wantStamp(t, s, "deployment/d", "configmap/c")

			before = s.Counts()
			s.Set("configmap/c", "k", "3")
			s.WantRolls(before, rolls{"deployment/d": 1})
			other("3")
			s.WantRolls(before, rolls{"deployment/d": 2})
		})
	}
}

// Names with a hash of the content, as Kustomize's generators make them.
func TestMigration_KustomizeSuffixes(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c-1", "k", "1")
	s.Apply(deployment("d", "configmap/c-1"))
	before := s.Settled("deployment/d")

	// Another content is another name: one rollout, with the stamp of that name alone.
	s.Set("configmap/c-2", "k", "2")
	wantNoWarnings(t, s.Apply(deployment("d", "configmap/c-2")))
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamps(t, s, "deployment/d", "configmap/c-2")

	// An undo brings the old name back, and with it the old content.
	before = s.Counts()
	if undo := s.Kubectl("rollout", "undo", "deployment/d"); strings.Contains(undo.Stderr, "configstamp") {
		t.Errorf("warned of an undo that does bring the old content back: %s", undo.Stderr)
	}
	s.WantRollsBack(before, rolls{"deployment/d": 1})
	wantStamps(t, s, "deployment/d", "configmap/c-1")

	// The one that is not used any more may go.
	before = s.Counts()
	s.Delete("configmap/c-2")
	s.Unchanged(before)

	// Going off the suffixes is one rollout, as any other name is; from then on
	// edits roll.
	s.Set("configmap/c", "k", "1")
	wantNoWarnings(t, s.Apply(deployment("d", "configmap/c")))
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamps(t, s, "deployment/d", "configmap/c")
	before = s.Counts()
	s.Delete("configmap/c-1")
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

// together has edits be one change, however long they take: nothing rolls meanwhile.
func together(s *harness.Space, edits func()) {
	pause := settings{"pause": "true"}
	s.SetPolicy("namespace", pause)
	edits()
	s.DropPolicy("namespace", pause)
}
