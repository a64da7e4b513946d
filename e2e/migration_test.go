package e2e

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/harness"
)

// What docs/migration.md says of those who come from something else, where
// dialects_test.go does not prove it.

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

// The annotation checksum/config of Helm charts, beside our stamps.
func TestMigration_HelmChecksums(t *testing.T) {
	t.Parallel()
	charted := func(t *testing.T) (s *harness.Space, before harness.Counts, release func(checksum string)) {
		s = run.Space(t)
		s.Set("configmap/c", "k", "1")
		s.Create(annotated(deployment("d", "configmap/c"), true, map[string]string{"checksum/config": "1"}))
		return s, s.Settled("deployment/d"), func(checksum string) {
			s.Patch("deployment/d", `{"spec":{"template":{"metadata":{"annotations":{"checksum/config":`+checksum+`}}}}}`)
		}
	}
	t.Run("a release that changes both rolls once", func(t *testing.T) {
		t.Parallel()
		s, before, release := charted(t)
		together(s, func() {
			s.Set("configmap/c", "k", "2") // Helm writes ConfigMaps first
			release(`"2"`)
		})
		s.WantRolls(before, rolls{"deployment/d": 1})
		wantStamp(t, s, "deployment/d", "configmap/c")
	})
	t.Run("an edit by hand rolls, and the release that follows it rolls again", func(t *testing.T) {
		t.Parallel()
		s, before, release := charted(t)
		s.Set("configmap/c", "k", "2")
		s.WantRolls(before, rolls{"deployment/d": 1})
		if stays := harness.TemplateAnnotations(s.Get("deployment/d"))["checksum/config"]; stays != "1" {
			t.Errorf("checksum/config is %q, and was 1", stays)
		}
		before = s.Counts()
		release(`"2"`)
		s.WantRolls(before, rolls{"deployment/d": 1})
	})
	t.Run("taking it out of the chart rolls once, with whatever else the release brings", func(t *testing.T) {
		t.Parallel()
		s, before, _ := charted(t)
		s.Patch("deployment/d", `{"spec":{"template":{"metadata":{"annotations":{"checksum/config":null}},"spec":{"terminationGracePeriodSeconds":1}}}}`)
		s.WantRolls(before, rolls{"deployment/d": 1})
		wantStamps(t, s, "deployment/d", "configmap/c")
		before = s.Counts()
		s.Set("configmap/c", "k", "2")
		s.WantRolls(before, rolls{"deployment/d": 1})
	})
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

// The label is given before the other's annotations are taken away; the other way
// round nobody looks in between, and nothing is lost either.
func TestMigration_LabelledTooLate(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.Create(former{"reloader.stakater.com/auto", "reloader.stakater.com/last-reloaded-from"}.workload())
	before := s.Settled("deployment/d")
	s.Patch("deployment/d", `{"metadata":{"annotations":{"reloader.stakater.com/auto":null}}}`)
	time.Sleep(time.Second)
	s.Set("configmap/c", "k", "2")
	s.Unchanged(before)
	s.Label(checksum.InjectEnabled)
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
}

// together has edits be one change, however long they take: nothing rolls meanwhile.
func together(s *harness.Space, edits func()) {
	pause := settings{"pause": "true"}
	s.SetPolicy("namespace", pause)
	edits()
	s.DropPolicy("namespace", pause)
}

// inventory is what follows "kubectl --namespace shop get" in docs/migration.md.
const inventory = `deployments,statefulsets,daemonsets,cronjobs -l 'configstamp.dev/inject!=disabled' -o go-template='{{range .items}}{{.kind}}/{{.metadata.name}}
	{{- range $key, $_ := .metadata.annotations}} {{$key}}{{end}}
	{{- with .spec.template}}{{range $key, $_ := .metadata.annotations}} {{$key}}{{end}}{{end}}
	{{- with .spec.jobTemplate}}{{range $key, $_ := .spec.template.metadata.annotations}} {{$key}}{{end}}{{end}}{{"\n"}}{{end}}' |
	grep -v -e ' configstamp.dev/baseline' -e '[.]configstamp.dev/' | cut -d' ' -f1`

// Labelling a namespace opts in more than what the other product looked after. The
// inventory names it beforehand.
func TestMigration_TheLabelOptsInWhatTheInventoryNames(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	create := func(name string, annotations map[string]string) {
		s.Create(annotated(deployment(name, "configmap/c"), false, annotations))
	}
	create("looked-after", map[string]string{"reloader.stakater.com/auto": "true"})
	create("waved", map[string]string{"wave.pusher.com/update-on-config-change": "true"})
	create("never", nil)
	create("ignores-one", map[string]string{"reloader.stakater.com/ignore": "configmap=other"})
	create("auto-reloaded", map[string]string{"reloader.stakater.com/last-reloaded-from": "{}"})
	s.Create(annotated(workload("CronJob", "nightly", envFrom("configmap/c")), false, map[string]string{"reloader.stakater.com/auto": "true"}))
	s.Create(workload("CronJob", "weekly", envFrom("configmap/c")))
	s.Create(labelled(deployment("out", "configmap/c"), "disabled"))
	want := []string{"CronJob/weekly", "Deployment/auto-reloaded", "Deployment/ignores-one", "Deployment/never"}

	shell := exec.CommandContext(t.Context(), "bash", "-c", "kubectl --namespace "+s.Namespace+" get "+inventory)
	shell.Env = append(os.Environ(), "KUBECONFIG="+s.Run.Kubeconfig(), "PATH="+s.Run.Programs()+string(os.PathListSeparator)+os.Getenv("PATH"))
	listed, err := shell.Output()
	harness.Must(t, err)
	got := strings.Fields(string(listed))
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("it names %q, want %q", got, want)
	}

	s.Label("enabled")
	for _, name := range want {
		s.Eventually("waiting until "+name+" is opted in", func() error {
			if s.Record(strings.ToLower(name), "configmap/c") == "" {
				return errors.New("there is no record")
			}
			return nil
		})
	}
	if s.Record("deployment/out", "configmap/c") != "" {
		t.Error("what opted out has a record")
	}
}
