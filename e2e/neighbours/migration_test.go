package neighbours

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Reloader and wave themselves, and the way from each to configstamp that docs/migration.md tells,
// step by step. Their modules are not on the proxy, so their programs are built elsewhere
// (docs/performance.md says how) and named by flags.
var (
	reloaderProgram = flag.String("reloader", "", "the program of stakater/Reloader; without it TestReloader is skipped")
	waveProgram     = flag.String("wave", "", "the program of wave-k8s/wave; without it TestWave is skipped")
)

// former is a product that has rolled workloads until today.
type former struct {
	program     string
	args        []string
	environment []string
	optIn       string // the annotation
	mark        string // is in the name of all that it writes
	// webhooks are the paths of those that it serves at its port, by resource.
	webhooks map[string]string
}

func TestReloader(t *testing.T) {
	reloader := func(args ...string) former {
		return former{program: *reloaderProgram, args: args, optIn: "reloader.stakater.com/auto", mark: "stakater"}
	}
	tellAll(t, "reloader", *reloaderProgram, []story{
		{"Variables", reloader().migrate},
		{"Annotations", reloader("--reload-strategy=annotations").migrate},
		{"ManyUsers", reloader().isLate},
		{"RemovedWhileItPauses", reloader().pauses},
	})
}

func TestWave(t *testing.T) {
	wave := func() former {
		return former{program: *waveProgram, optIn: "wave.pusher.com/update-on-config-change", mark: "wave.pusher.com"}
	}
	tellAll(t, "wave", *waveProgram, []story{
		{"WithoutWebhooks", wave().migrate},
		{"WithWebhooks", func(t *testing.T) { wave().withWebhooks(t).migrate(t) }},
		{"RemovedWhileASourceIsMissing", func(t *testing.T) { wave().withWebhooks(t).disables(t) }},
		{"WhatOlderVersionsLeft", wave().cleansUp},
	})
}

type story struct {
	name string
	tell func(*testing.T)
}

// tellAll runs stories one after the other: the product serves the whole cluster.
func tellAll(t *testing.T, name, program string, stories []story) {
	t.Helper()
	needs(t, name, program, "docs/performance.md", len(stories))
	for _, one := range stories {
		t.Run(one.name, one.tell)
	}
}

// needs skips so many tests, loudly, if no flag names their program.
func needs(t *testing.T, name, program, page string, tests int) {
	t.Helper()
	if program == "" {
		fmt.Printf("SKIPPED (%d tests): %s: no program is named by -%s=PATH; %s says how to build it\n", tests, t.Name(), name, page)
		t.SkipNow()
	}
}

// wavePort cannot be chosen there.
const wavePort = "9443"

// withWebhooks is wave with what its chart installs if it is asked to.
func (f former) withWebhooks(t *testing.T) former {
	t.Helper()
	f.webhooks = map[string]string{"deployments": "/mutate-apps-v1-deployment", "statefulsets": "/mutate-apps-v1-statefulset"}
	f.args = append(f.args, "--enable-webhooks")
	temporary := t.TempDir() // below which it looks for its certificate
	f.environment = append(f.environment, "TMPDIR="+temporary)
	dir := filepath.Join(temporary, "k8s-webhook-server", "serving-certs")
	certificate, key, err := run.Authority.Pair(time.Now().Add(24 * time.Hour))
	harness.Must(t, errors.Join(err, os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)))
	return f
}

// agent is what the audit log calls it.
func (f former) agent() string { return filepath.Base(f.program) }

// start runs the product; the returned function removes it, as its uninstallation does.
func (f former) start(t *testing.T) (remove func()) {
	t.Helper()
	p := launch(t, f.program, f.environment, f.args...)
	if len(f.webhooks) == 0 {
		return p.stop
	}
	const name = "wave-mutating-webhook-configuration"
	configuration := "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: " + name + "}\nwebhooks:\n"
	for resource, path := range f.webhooks {
		configuration += fmt.Sprintf(`- name: %[1]s.wave.pusher.com
  admissionReviewVersions: [v1]
  clientConfig: {url: "https://%[2]s:%[3]s%[4]s", caBundle: %[5]s}
  failurePolicy: Ignore
  sideEffects: NoneOnDryRun
  rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [%[1]s]}]
`, resource, run.HostAddress(), wavePort, path, run.Authority.Base64())
	}
	kubectlInput(t, configuration, "apply", "-f", "-")
	unhook := func() { kubectl(t, "delete", "--ignore-not-found", "mutatingwebhookconfiguration", name) }
	t.Cleanup(unhook)
	return func() {
		p.stop()
		unhook()
	}
}

// migration is a namespace on the way from a former product to configstamp.
type migration struct {
	*harness.Space
	former
	t     *testing.T
	uses  map[string]string // the source of each workload that is opted in
	edits int
	since time.Time
}

// newMigration makes a namespace, in which configstamp is not known. No process of it runs.
func (f former) newMigration(t *testing.T) *migration {
	t.Helper()
	harness.Must(t, run.Product.Stop())
	t.Cleanup(func() { harness.Must(t, run.Product.Restart(bounded(), options())) })
	m := &migration{Space: run.PlainSpace(t), former: f, t: t, uses: map[string]string{}, since: time.Now()}
	m.SetPolicy("namespace", map[string]string{"min-interval": "1ms"}) // many edits within ten minutes
	m.Set("configmap/setting", "SETTING", "good-0")
	m.Set("secret/password", "PASSWORD", "good-0")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(m.Report())
		}
	})
	return m
}

// create makes a workload with annotations. The users of sources are those with the opt-in.
func (m *migration) create(workload, source string, annotations map[string]string) {
	kind, name, _ := strings.Cut(workload, "/")
	kind = map[string]string{"deployment": "Deployment", "statefulset": "StatefulSet"}[kind]
	text, err := json.Marshal(annotations)
	harness.Must(m.t, err)
	manifest := strings.ReplaceAll(fluxApp(kind, name, "1", source), "NAMESPACE", m.Namespace)
	m.Create(strings.Replace(manifest, "labels: {app: "+name+"}}\nspec", "labels: {app: "+name+"}, annotations: "+string(text)+"}\nspec", 1))
	if annotations[m.optIn] != "" {
		m.uses[workload] = source
	}
}

// edit changes both sources.
func (m *migration) edit() error {
	m.edits++
	value := fmt.Sprintf("good-%d", m.edits)
	_, err := run.Client.CoreV1().ConfigMaps(m.Namespace).Patch(context.Background(), "setting", types.MergePatchType,
		[]byte(`{"data":{"SETTING":"`+value+`"}}`), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("editing the ConfigMap: %w", err)
	}
	_, err = run.Client.CoreV1().Secrets(m.Namespace).Patch(context.Background(), "password", types.MergePatchType,
		[]byte(`{"stringData":{"PASSWORD":"`+value+`"}}`), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("editing the Secret: %w", err)
	}
	return nil
}

// step does something, and somebody edits at any moment around it. Each user rolls once, and
// nothing else does.
func (m *migration) step(what string, do func()) {
	m.t.Helper()
	before, begin, edited := m.Counts(), time.Now(), make(chan error, 1)
	after := rand.N(1500 * time.Millisecond) // #nosec G404 -- any moment
	go func() {
		time.Sleep(after)
		edited <- m.edit()
	}()
	time.Sleep(500 * time.Millisecond)
	do()
	did := time.Since(begin)
	harness.Must(m.t, <-edited)
	m.wantOnce(before)
	m.t.Logf("%s took from 0.5 s to %.1f s, the edit came at %.1f s, and %v rolled once by %.1f s", what, did.Seconds(), after.Seconds(),
		slices.Sorted(maps.Keys(m.uses)), time.Since(begin).Seconds())
}

// wantOnce waits until each user has rolled once since before.
func (m *migration) wantOnce(before harness.Counts) {
	m.t.Helper()
	once := harness.Rolls{}
	for workload := range m.uses {
		once[workload] = 1
	}
	m.WantRolls(before, once)
}

// wantTruth waits until what is on record of each user is what its source holds now.
func (m *migration) wantTruth() {
	m.t.Helper()
	for workload, source := range m.uses {
		m.Eventually("waiting for the record of "+workload, func() error {
			if is, want := m.Record(workload, source), m.Digest(source); is != want {
				return fmt.Errorf("it is %q, want %q", is, want)
			}
			return nil
		})
	}
}

// serves waits until the former product rolls for an edit, and has nothing left to do.
func (m *migration) serves() {
	m.t.Helper()
	eventually(m.t, "the former product rolls", 2*time.Minute, func() error {
		harness.Must(m.t, m.edit())
		time.Sleep(5 * time.Second)
		for workload := range m.uses {
			if m.Counts()[workload].Rolls == 0 {
				return errors.New(workload + " has not rolled")
			}
		}
		return nil
	})
	m.calm()
}

// calm waits until nothing is written for a while.
func (m *migration) calm() {
	m.t.Helper()
	eventually(m.t, "nothing is written", 2*time.Minute, func() error {
		before := m.Counts()
		time.Sleep(settle + 3*time.Second)
		if !maps.Equal(before, m.Counts()) {
			return errors.New("something was")
		}
		return nil
	})
}

// install starts configstamp, as step 1 of the page says, and waits for its records.
func (m *migration) install() {
	m.t.Helper()
	dialects := []string{"--dialects=reloader,wave"}
	run.Product.Set(harness.Options{Settle: settle, Webhook: dialects, Controller: append(dialects, "--step=1", "--soak=2s")})
	harness.Must(m.t, run.Product.Start(m.t.Context()))
	m.wantTruth()
}

// migrate follows the page from its first step to its last.
func (f former) migrate(t *testing.T) {
	m := f.newMigration(t)
	remove := f.start(t)
	m.create("deployment/web", "configmap/setting", map[string]string{f.optIn: "true"})
	m.create("deployment/api", "configmap/setting", map[string]string{f.optIn: "true"})
	m.create("statefulset/db", "secret/password", map[string]string{f.optIn: "true"})
	m.create("deployment/never", "configmap/setting", nil)
	m.create("deployment/out", "configmap/setting", nil)
	m.serves()

	m.step("nothing, before all", func() {})
	m.step("installing configstamp", m.install)
	begin := time.Now()
	m.step("nothing, with both", func() {})
	m.wantTruth()
	if ours := m.rollings(begin); len(ours) > 0 {
		t.Errorf("configstamp rolled %v, which the former product does at once", ours)
	}
	m.step("removing the former product", remove)
	m.wantTruth()
	begin = time.Now()
	m.step("nothing, with configstamp alone", func() {})
	m.wantTruth()
	if ours := m.rollings(begin); len(ours) != len(m.uses) {
		t.Errorf("configstamp rolled %v, want %d workloads", ours, len(m.uses))
	}

	if got := m.page("kubectl --namespace shop get deployments,"); got != "Deployment/never\nDeployment/out\n" {
		t.Errorf("the page's command names %q, want the two that were never annotated", got)
	}
	before := m.Counts()
	m.Kubectl("label", "deployment/out", "configstamp.dev/inject=disabled")
	m.Unchanged(before)
	harness.Must(t, m.edit()) // which nobody sees for the one that is not opted in yet
	m.Label("enabled")
	m.wantOnce(before)
	m.uses["deployment/never"] = "configmap/setting"
	m.wantTruth()
	m.step("removing the annotations", func() {
		m.Kubectl("annotate", "deployments,statefulsets", "--all", f.optIn+"-")
	})
	m.wantTruth()

	if left := m.left(); left == "" {
		t.Error("the former product has left nothing: there is nothing to take out")
	}
	before = m.Counts()
	harness.Must(t, m.edit()) // a release brings both
	m.takeOut()
	m.wantOnce(before)
	m.wantTruth()
	if left := m.left(); left != "" {
		t.Errorf("this is left of the former product:\n%s", left)
	}
	m.wantWell()
	m.wantNoFight()
}

// rollings are the workloads that configstamp asked to roll.
func (m *migration) rollings(since time.Time) (workloads []string) {
	m.t.Helper()
	for _, q := range requests(m.t, since, func(q request) bool {
		return q.Agent == controller && q.Verb == "patch" && q.Namespace == m.Namespace && q.parameter("fieldManager") == "configstamp" && !q.dry()
	}) {
		workloads = append(workloads, q.object())
	}
	return workloads
}

// page runs the command of docs/migration.md that begins so, in this namespace.
func (m *migration) page(begin string) string {
	m.t.Helper()
	text, err := os.ReadFile("../../docs/migration.md")
	harness.Must(m.t, err)
	_, command, found := strings.Cut(string(text), "   "+begin)
	command, _, ended := strings.Cut(command, "```\n")
	if !found || !ended {
		m.t.Fatalf("docs/migration.md has no command %q", begin)
	}
	shell := exec.CommandContext(m.t.Context(), "bash", "-c", strings.ReplaceAll(begin+command, "shop", m.Namespace))
	shell.Env = append(os.Environ(), "KUBECONFIG="+run.Kubeconfig(), "PATH="+run.Programs()+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := shell.CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s%s: %v\n%s", begin, command, err, out)
	}
	return string(out)
}

// left is every line of the namespace's objects that the former product wrote.
func (m *migration) left() (lines string) {
	m.t.Helper()
	for line := range strings.Lines(m.Kubectl("get", "deployments,statefulsets,configmaps,secrets", "-o=yaml").Stdout) {
		if strings.Contains(strings.ToLower(line), m.mark) {
			lines += line
		}
	}
	return lines
}

// takeOut takes what the former product wrote out of pod templates.
func (m *migration) takeOut() {
	m.t.Helper()
	for workload := range m.uses {
		object := m.Get(workload)
		annotations := map[string]any{}
		for key := range harness.TemplateAnnotations(object) {
			if strings.Contains(key, m.mark) {
				annotations[key] = nil
			}
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		harness.Must(m.t, err)
		for _, each := range containers {
			container, _ := each.(map[string]any)
			variables, _ := container["env"].([]any)
			container["env"] = slices.DeleteFunc(variables, func(each any) bool {
				variable, _ := each.(map[string]any)
				return strings.HasPrefix(fmt.Sprint(variable["name"]), "STAKATER_")
			})
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{"containers": containers},
		}}})
		harness.Must(m.t, err)
		m.Patch(workload, string(patch))
	}
}

// wantWell checks that all pods serve, and that no container was ever restarted.
func (m *migration) wantWell() {
	m.t.Helper()
	m.Eventually("waiting until all pods serve", func() error {
		pods, err := run.Client.CoreV1().Pods(m.Namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			for _, status := range pod.Status.ContainerStatuses {
				if status.RestartCount > 0 {
					m.t.Errorf("pod %s was restarted %d times", pod.Name, status.RestartCount)
				}
			}
			if pod.DeletionTimestamp != nil || len(pod.Status.ContainerStatuses) == 0 || !pod.Status.ContainerStatuses[0].Ready {
				return errors.New(pod.Name + " does not")
			}
		}
		return nil
	})
}

// wantNoFight compares how often both wrote an object with how often one of them was to.
func (m *migration) wantNoFight() {
	m.t.Helper()
	all := requests(m.t, m.since, func(q request) bool {
		return q.Namespace == m.Namespace && (q.Agent == m.agent() || q.Agent == controller) && q.Subresource == ""
	})
	_, theirs := busiest(all, m.agent())
	_, ours := busiest(all, controller)
	m.t.Logf("%d edits in %s; the most writes to one object: %d by %s, %d by configstamp\n%s", m.edits, time.Since(m.since).Round(time.Second),
		theirs, m.agent(), ours, strings.Join(tally(all), "\n"))
	if theirs == 0 || ours == 0 {
		m.t.Error("one of them wrote nothing: this compares nothing")
	}
	counts := map[string]int{}
	for _, q := range all {
		if q.writes() && q.Code < 400 {
			counts[q.object()]++
		}
	}
	for object, times := range counts {
		if most := m.edits + 1; times > most { // one of them rolls for each edit, and configstamp records once
			m.t.Errorf("both wrote %s %d times, want at most %d", object, times, most)
		}
	}
}

// Reloader asks for five things a second. It comes to the last of many users of a source when
// configstamp has rolled some of them, and rolls them again. A pause prevents this, and loses nothing.
func (f former) isLate(t *testing.T) {
	m := f.newMigration(t)
	m.install()
	remove, configstamp := f.start(t), fluxPlugin(t)
	const users = 40
	for i := range users {
		m.create(fmt.Sprintf("deployment/web-%02d", i), "configmap/setting", map[string]string{f.optIn: "true"})
	}
	m.Kubectl("scale", "deployments", "--all", "--replicas=0") // such as have no step to wait for
	m.serves()

	before := m.Counts()
	harness.Must(t, m.edit())
	m.calm()
	times := map[int]int{}
	for workload, now := range m.Counts() {
		times[now.Rolls-before[workload].Rolls]++
	}
	t.Logf("one edit with both: %d of %d users rolled once, %d twice", times[1], users, times[2])
	if times[1]+times[2] != users || times[2] == 0 {
		t.Errorf("by how often they rolled there are so many users: %v, want once or twice", times)
	}
	m.wantTruth()

	configstamp("pause", "-A")
	before = m.Counts()
	harness.Must(t, m.edit())
	m.wantOnce(before)
	remove()
	before = m.Counts()
	harness.Must(t, m.edit())
	m.Unchanged(before)
	configstamp("unpause", "-A")
	m.wantOnce(before)
	m.wantTruth()
}

// Reloader pauses a Deployment after each rollout, if it is told to. When it is removed meanwhile,
// the Deployment stays paused.
func (f former) pauses(t *testing.T) {
	m := f.newMigration(t)
	m.install()
	remove := f.start(t)
	m.create("deployment/other", "configmap/setting", map[string]string{f.optIn: "true"})
	m.serves()
	m.create("deployment/web", "configmap/setting", map[string]string{f.optIn: "true", "deployment.reloader.stakater.com/pause-period": "1h"})
	before := m.Settled("deployment/web")
	harness.Must(t, m.edit())
	m.Eventually("waiting for the pause", func() error {
		paused, _, _ := unstructured.NestedBool(m.Get("deployment/web").Object, "spec", "paused")
		if rolls := m.Counts()["deployment/web"].Rolls; !paused || rolls == 0 {
			return fmt.Errorf("it is paused: %t, and %d times it has another template", paused, rolls)
		}
		return nil
	})
	remove()
	m.Quiet()
	if now := m.Counts()["deployment/web"]; now.Revisions != before["deployment/web"].Revisions {
		t.Errorf("a paused Deployment has %d new revisions", now.Revisions-before["deployment/web"].Revisions)
	}
	if got, want := m.page(leftBehind), m.Namespace+" Deployment/web deployment.reloader.stakater.com/paused-at\n"; got != want {
		t.Errorf("the page's command names %q, want %q", got, want)
	}
	m.wantDoctor("Reloader has paused it")
	m.page("kubectl --namespace shop rollout resume deployment/web")
	m.wantOnce(before)
	m.wantTruth()
	m.wantWell()
	if got := m.page(leftBehind); got != "" {
		t.Errorf("the page's command still names %q", got)
	}
}

// wantDoctor has the plugin's doctor find what the former product has left behind. It is no
// Deployment here, so that doctor never sees it run.
func (m *migration) wantDoctor(words string) {
	m.t.Helper()
	out, _ := exec.CommandContext(m.t.Context(), "go", "run", "../../cmd/kubectl-configstamp", "doctor", "--namespace="+m.Namespace,
		"--kubeconfig="+run.Kubeconfig(), "--configstamp-namespace="+harness.OwnNamespace, "-o", "json").CombinedOutput() // what it finds is an exit code
	if !strings.Contains(string(out), words) {
		m.t.Errorf("doctor does not say %q:\n%s", words, out)
	}
}

// leftBehind is how the page's command begins that finds what only the former product undoes.
const leftBehind = "kubectl get deployments,statefulsets,daemonsets --all-namespaces"

// wave's webhook has no pod scheduled while a source is missing. When wave is removed meanwhile, they
// never are.
func (f former) disables(t *testing.T) {
	m := f.newMigration(t)
	m.install()
	remove := f.start(t)
	m.create("deployment/other", "configmap/setting", map[string]string{f.optIn: "true"})
	m.serves()
	m.create("deployment/web", "configmap/late", map[string]string{f.optIn: "true"})
	before := m.Settled("deployment/web")
	remove()
	m.Set("configmap/late", "SETTING", "good")
	m.wantTruth() // it is recorded
	m.Unchanged(before)
	if got, want := m.page(leftBehind), m.Namespace+" Deployment/web wave.pusher.com/scheduling-disabled\n"; got != want {
		t.Errorf("the page's command names %q, want %q", got, want)
	}
	m.wantDoctor("wave has taken its scheduler away")
	m.page("kubectl --namespace shop patch deployment/web")
	m.WantRolls(before, harness.Rolls{"deployment/web": 1})
	m.wantTruth()
	m.wantWell()
	if got := m.page(leftBehind); got != "" {
		t.Errorf("the page's command still names %q", got)
	}
}

// Older versions of wave had a finalizer on workloads and were owners of sources. The present one
// takes both away, and rolls nothing for it.
func (f former) cleansUp(t *testing.T) {
	m := f.newMigration(t)
	m.install()
	remove := f.start(t)
	m.create("deployment/web", "configmap/setting", map[string]string{f.optIn: "true"})
	m.serves()
	remove()
	before := m.Counts()
	web := m.Get("deployment/web")
	m.Patch("deployment/web", `{"metadata":{"finalizers":["wave.pusher.com/finalizer"]}}`)
	m.Patch("configmap/setting", fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":%q,"controller":false,"blockOwnerDeletion":true}]}}`, web.GetUID()))
	if got, want := m.page(leftBehind), m.Namespace+" Deployment/web wave.pusher.com/finalizer\n"; got != want {
		t.Errorf("the page's command names %q, want %q", got, want)
	}
	m.wantDoctor("an older wave has left a finalizer")
	remove = f.start(t)
	m.Eventually("waiting until wave has cleaned up", func() error {
		return cmp.Or(
			none("finalizers", m.Get("deployment/web").GetFinalizers()),
			none("owners", m.Get("configmap/setting").GetOwnerReferences()))
	})
	remove()
	m.Unchanged(before)
	m.Delete("deployment/web")
	m.Eventually("waiting until the Deployment is gone", func() error {
		if _, err := m.TryGet("deployment/web"); err == nil {
			return errors.New("it is there")
		}
		return nil
	})
	m.Get("configmap/setting")
}

func none[T any](what string, some []T) error {
	if len(some) > 0 {
		return fmt.Errorf("there are %s: %v", what, some)
	}
	return nil
}
