package neighbours

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Flux beside configstamp, each story in a namespace of its own.
func TestFlux(t *testing.T) {
	startFlux(t)
	t.Run("Stories", func(t *testing.T) {
		for _, story := range []struct {
			name string
			run  func(*testing.T)
		}{
			{"PeopleEdit", testFluxEdits},
			{"ABadEditHalts", testFluxHalt},
			{"ARelease", testFluxRelease},
			{"Prune", testFluxPrune},
			{"DependsOn", testFluxDependsOn},
		} {
			t.Run(story.name, func(t *testing.T) {
				t.Parallel()
				story.run(t)
			})
		}
	})
	t.Run("APauseByHand", testFluxPause) // of all namespaces
}

// fluxFleet is four workloads that read one ConfigMap.
func fluxFleet(setting string) map[string]string {
	files := map[string]string{"app/setting.yaml": fluxConfigMap("setting", setting)}
	for i := range 4 {
		name := fmt.Sprintf("app-%d", i)
		files["app/"+name+".yaml"] = fluxApp("Deployment", name, "1", "configmap/setting")
	}
	return files
}

var fluxFleetUses = []string{
	"deployment/app-0 configmap/setting", "deployment/app-1 configmap/setting", "deployment/app-2 configmap/setting", "deployment/app-3 configmap/setting",
}

// A bad edit in Git stops at one workload, which the Kustomization says by its health check. No
// sync rolls the others meanwhile. A revert in Git repairs it.
func testFluxHalt(t *testing.T) {
	f := newFluxed(t, map[string]map[string]any{"app": nil}, fluxFleet("good"))
	f.wantTruth(t, fluxFleetUses...)
	before, pushed := f.Counts(), time.Now()
	name := f.names[0]
	f.push(t, "a mistake", fluxFleet("bad"))
	failed := ""
	eventually(t, "one workload fails", 2*time.Minute, func() error {
		for i := range 4 {
			workload := fmt.Sprintf("deployment/app-%d", i)
			for _, note := range f.Notes(workload) {
				if strings.HasPrefix(note, "RolloutFailed") {
					failed = workload
					return nil
				}
			}
		}
		return fmt.Errorf("no event RolloutFailed")
	}, f.Report)
	t.Logf("%s failed %s after the commit", failed, time.Since(pushed).Round(time.Second))
	eventually(t, "the Kustomization says so", 3*time.Minute, func() error {
		ready := f.field(t, name, `{.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].reason} {.status.conditions[?(@.type=="Ready")].message}`)
		if !strings.HasPrefix(ready, "False HealthCheckFailed") || !strings.Contains(ready, strings.Replace(failed, "deployment/", "/", 1)) {
			return fmt.Errorf("it says: %s", ready)
		}
		t.Logf("the Kustomization is not ready %s after the commit: %s", time.Since(pushed).Round(time.Second), ready)
		for i := range 4 {
			if other := fmt.Sprintf("/app-%d", i); "deployment"+other != failed && strings.Contains(ready, f.Namespace+other) {
				t.Errorf("it names %s, which runs: %s", other, ready)
			}
		}
		return nil
	}, f.status)
	time.Sleep(fluxTimeout + 2*fluxInterval) // one more sync of all at least
	f.WantRolls(before, harness.Rolls{failed: 1})
	pushed = time.Now()
	f.push(t, "the mistake is taken back", fluxFleet("good"))
	f.WantRollsBack(before, harness.Rolls{failed: 2})
	f.synced(t)
	t.Logf("all is well %s after the revert", time.Since(pushed).Round(time.Second))
	f.wantTruth(t, fluxFleetUses...)
	f.wantAsGit(t)
	f.wantNoFight(t)
}

// Somebody releases a halted change by hand, because its failure does not matter. Flux syncs the
// ConfigMap meanwhile, and the change goes on all the same.
func testFluxRelease(t *testing.T) {
	files := func(setting string) map[string]string {
		files := fluxFleet(setting)
		for name, text := range files {
			switch {
			case strings.HasPrefix(name, "app/app-0"):
				files[name] = strings.Replace(text, "labels: {app: app-0}}\nspec", `labels: {app: app-0}, annotations: {configstamp.dev/order: "1"}}`+"\nspec", 1)
			default:
				files[name] = strings.Replace(text, "args: [strict]", "args: [lenient]", 1)
			}
		}
		return files
	}
	f := newFluxed(t, map[string]map[string]any{"app": {"wait": false}}, files("good"))
	f.wantTruth(t, fluxFleetUses...)
	configstamp := fluxPlugin(t)
	before := f.Counts()
	f.push(t, "a mistake that one cannot bear", files("bad"))
	f.Eventually("waiting for the halt", func() error {
		if notes := strings.Join(f.Notes("configmap/setting"), "\n"); !strings.Contains(notes, "ChangeHalted") {
			return fmt.Errorf("there are %s", notes)
		}
		return nil
	})
	time.Sleep(2 * fluxInterval)
	f.WantRolls(before, harness.Rolls{"deployment/app-0": 1})
	configstamp("release", "configmap/setting", "-n", f.Namespace)
	f.WantRolls(before, harness.Rolls{"deployment/app-0": 1, "deployment/app-1": 1, "deployment/app-2": 1, "deployment/app-3": 1})
	f.wantTruth(t, fluxFleetUses...)
	f.synced(t)
	f.wantAsGit(t)
	f.wantNoFight(t)
}

// What Git has no more goes, and rolls nothing but those who can do without it.
func testFluxPrune(t *testing.T) {
	f := newFluxed(t, map[string]map[string]any{"app": nil}, map[string]string{
		"app/setting.yaml": fluxConfigMap("setting", "good"),
		"app/extra.yaml":   fluxConfigMap("extra", "good"),
		"app/needed.yaml":  fluxConfigMap("needed", "good"),
		"app/stays.yaml":   fluxApp("Deployment", "stays", "1", "configmap/needed", "optional/extra"),
		"app/goes.yaml":    fluxApp("Deployment", "goes", "1", "configmap/setting"),
	})
	uses := []string{"deployment/stays configmap/needed", "deployment/stays configmap/extra"}
	f.wantTruth(t, append(uses, "deployment/goes configmap/setting")...)
	before := f.Counts()
	f.sync(t, "an application less", map[string]string{"app/setting.yaml": "", "app/goes.yaml": ""})
	for _, object := range []string{"deployment/goes", "configmap/setting"} {
		if _, err := f.TryGet(object); err == nil {
			t.Errorf("%s is still there", object)
		}
	}
	f.Unchanged(before)

	f.push(t, "an optional ConfigMap less", map[string]string{"app/extra.yaml": ""})
	f.WantRolls(before, harness.Rolls{"deployment/stays": 1})
	f.synced(t)
	f.wantTruth(t, uses...) // "absent"

	before = f.Counts()
	f.sync(t, "a ConfigMap less that is needed", map[string]string{"app/needed.yaml": ""})
	f.WantNote("deployment/stays", "SourceMissing")
	f.Unchanged(before)
	f.sync(t, "it is back", map[string]string{"app/needed.yaml": fluxConfigMap("needed", "good")})
	f.Unchanged(before)
	f.wantTruth(t, uses...)
	f.wantAsGit(t)
	f.wantNoFight(t)
}

// Two Kustomizations, of which the one with the workloads depends on the one with their ConfigMap.
// Flux looks at the second some seconds after the first is ready: 5 here, 30 by default. By then
// the ConfigMap has settled, so a commit that changes both makes two rollouts.
func testFluxDependsOn(t *testing.T) {
	files := func(setting, version string) map[string]string {
		return map[string]string{
			"config/setting.yaml": fluxConfigMap("setting", setting),
			"workloads/web.yaml":  fluxApp("Deployment", "web", version, "configmap/setting"),
		}
	}
	f := newFluxed(t, map[string]map[string]any{
		"config": nil, "workloads": {"dependsOn": []any{map[string]any{"name": "NAMESPACE-config"}}},
	}, files("good-0", "1"))
	f.wantTruth(t, "deployment/web configmap/setting")
	before := f.Counts()
	f.push(t, "the ConfigMap alone", files("good-1", "1"))
	f.WantRolls(before, harness.Rolls{"deployment/web": 1})
	f.synced(t)
	before = f.Counts()
	pushed := time.Now()
	f.sync(t, "both", files("good-2", "2"))
	f.wantTruth(t, "deployment/web configmap/setting")
	f.Quiet()
	written := map[string]time.Time{}
	for _, q := range requests(t, pushed, func(q request) bool { return q.Namespace == f.Namespace && q.Agent == fluxAgent && q.writes() }) {
		written[q.Resource] = q.At
	}
	between := written["deployments"].Sub(written["configmaps"])
	rolled := f.Counts()["deployment/web"].Rolls - before["deployment/web"].Rolls
	t.Logf("Flux wrote the Deployment %s after the ConfigMap: %d rollouts", between, rolled)
	if between < 0 || rolled < 1 || rolled > 2 || between < settle && rolled != 1 || between > settle+3*time.Second && rolled != 2 {
		t.Errorf("Flux wrote the Deployment %s after the ConfigMap, and it rolled %d times", between, rolled)
	}
	f.wantNoFight(t)
}

// fluxPlugin runs kubectl configstamp.
func fluxPlugin(t *testing.T) func(args ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kubectl-configstamp")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/kubectl-configstamp").CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, text)
	}
	return func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), binary, append(args, "--configstamp-namespace="+harness.OwnNamespace)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+run.Kubeconfig())
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl configstamp %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		t.Logf("$ kubectl configstamp %s\n%s", strings.Join(args, " "), out)
		return string(out)
	}
}

// The Namespace is in Git, and somebody pauses it. Flux takes back what kubectl has written on an
// object that it applies; what other field managers have, stays, unless Git says otherwise.
func testFluxPause(t *testing.T) {
	configstamp := fluxPlugin(t)
	setting := "good-0"
	files := func(pause string) map[string]string {
		annotations := `configstamp.dev/min-interval: 1ms`
		if pause != "" {
			annotations += fmt.Sprintf(", configstamp.dev/pause: %q", pause)
		}
		return map[string]string{
			"app/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE, labels: {configstamp.dev/inject: enabled}, annotations: {" + annotations + "}}\n",
			"app/setting.yaml":   fluxConfigMap("setting", setting),
			"app/web.yaml":       fluxApp("Deployment", "web", "1", "configmap/setting"),
		}
	}
	shop := newFluxed(t, map[string]map[string]any{"app": nil}, files(""))
	shop.wantTruth(t, "deployment/web configmap/setting")
	annotate := func(t *testing.T, args ...string) {
		t.Helper()
		kubectl(t, append([]string{"annotate", "--overwrite", "namespace", shop.Namespace}, args...)...)
	}
	for i, story := range []struct {
		name string
		git  string // before and during the pause
		on   func(t *testing.T)
		stay string // what the annotation is some syncs later
		off  func(t *testing.T)
	}{
		{"ByThePlugin", "", func(*testing.T) { configstamp("pause", "-A", "--reason", "INC-42") }, "true", func(*testing.T) { configstamp("unpause", "-A") }},
		{"ByKubectl", "", func(t *testing.T) { annotate(t, "configstamp.dev/pause=true") }, "", func(*testing.T) {}},
		{"ByKubectlUnderAnotherName", "", func(t *testing.T) { annotate(t, "--field-manager=oncall", "configstamp.dev/pause=true") }, "true",
			func(t *testing.T) { annotate(t, "--field-manager=oncall", "configstamp.dev/pause-") }},
		{"InGit", "true", func(*testing.T) {}, "true", func(t *testing.T) { shop.in(t).sync(t, "the end of the pause", files("")) }},
		{"ByThePluginAgainstGit", "false", func(*testing.T) { configstamp("pause", "-A") }, "false", func(t *testing.T) { shop.in(t).sync(t, "no word of a pause", files("")) }},
	} {
		t.Run(story.name, func(t *testing.T) {
			f := shop.in(t)
			f.sync(t, "what Git says of a pause", files(story.git))
			before := f.Counts()
			story.on(t)
			time.Sleep(3 * fluxInterval)
			if got := f.Get("namespace/" + f.Namespace).GetAnnotations()["configstamp.dev/pause"]; got != story.stay {
				t.Errorf("after three syncs the pause is %q, want %q\n%s", got, story.stay, kubectl(t, "get", "namespace", f.Namespace, "-o=yaml", "--show-managed-fields"))
			}
			if story.stay == "false" {
				f.WantNote("namespace/"+f.Namespace, "PauseTakenBack: somebody took back the pause of ")
			}
			setting = fmt.Sprintf("good-%d", i+1)
			if f.sync(t, "an edit", files(story.git)); story.stay == "true" {
				f.Unchanged(before)
				story.off(t)
			}
			f.WantRolls(before, harness.Rolls{"deployment/web": 1})
			if story.stay != "true" {
				story.off(t)
			}
			f.wantTruth(t, "deployment/web configmap/setting")
		})
	}
}
