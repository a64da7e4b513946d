package neighbours

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// fluxConfigMap and fluxSecret are sources, fluxApp a workload, as Git has them.
func fluxConfigMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: NAMESPACE}\ndata: {SETTING: %q}\n", name, value)
}

func fluxSecret(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: NAMESPACE}\nstringData: {PASSWORD: %q}\n", name, value)
}

// fluxApp reads ConfigMaps and Secrets whole: configmap/setting, or secret/password.
func fluxApp(kind, name, version string, reads ...string) string {
	var from []string
	for _, source := range reads {
		kind, name, _ := strings.Cut(source, "/")
		field := map[string]string{"configmap": "configMapRef", "secret": "secretRef", "optional": "configMapRef"}[kind]
		from = append(from, fmt.Sprintf("{%s: {name: %s, optional: %t}}", field, name, kind == "optional"))
	}
	more := map[string]string{"StatefulSet": "serviceName: none, ", "Deployment": ""}[kind]
	return fmt.Sprintf(`apiVersion: apps/v1
kind: %[1]s
metadata: {name: %[2]s, namespace: NAMESPACE, labels: {app: %[2]s}}
spec:
  {%[5]sreplicas: 1, selector: {matchLabels: {app: %[2]s}}, template: {
    metadata: {labels: {app: %[2]s}},
    spec: {
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      containers: [{
        name: app, image: %[6]s, imagePullPolicy: Never, args: [strict],
        envFrom: [%[4]s],
        env: [{name: VERSION, value: %[3]q}],
        readinessProbe: {httpGet: {path: /, port: 3000}, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 20}
      }]
    }
  }}
`, kind, name, version, strings.Join(from, ", "), more, app)
}

// fluxShop is what people edit in TestFlux.
type fluxShop struct {
	*fluxed
	edits                      int
	setting, password, version string
}

func (s *fluxShop) next(word string) string {
	s.edits++
	return fmt.Sprintf("%s-%d", word, s.edits)
}

func (s *fluxShop) files() map[string]string {
	return map[string]string{
		"app/setting.yaml":  fluxConfigMap("setting", s.setting),
		"app/password.yaml": fluxSecret("password", s.password),
		"app/web.yaml":      fluxApp("Deployment", "web", s.version, "configmap/setting", "secret/password"),
		"app/api.yaml":      fluxApp("Deployment", "api", s.version, "configmap/setting"),
		"app/db.yaml":       fluxApp("StatefulSet", "db", "1", "secret/password"),
		"app/idle.yaml":     fluxApp("Deployment", "idle", "1"),
	}
}

var fluxUses = []string{
	"deployment/web configmap/setting", "deployment/web secret/password", "deployment/api configmap/setting", "statefulset/db secret/password",
}

// What a team does in Git and by hand for a while, and what follows from it, each thing once.
func testFluxEdits(t *testing.T) {
	shop := &fluxShop{setting: "good-0", password: "secret-0", version: "1"}
	shop.fluxed = newFluxed(t, map[string]map[string]any{"app": nil}, shop.files())
	shop.Settled("deployment/web", "deployment/api", "statefulset/db", "deployment/idle")
	shop.wantTruth(t, fluxUses...)
	begin, rounds := time.Now(), 0
	for ; rounds == 0 || time.Since(begin) < *long; rounds++ {
		for _, step := range []struct {
			name string
			do   func(*testing.T, *fluxShop)
		}{
			{"AConfigMapInGit", editConfigMap},
			{"ASecretInGit", editSecret},
			{"ConfigAndTemplateInOneCommit", editBoth},
			{"NothingInGit", editNothing},
			{"TheConfigMapByHand", driftConfigMap},
			{"TheTemplateByHand", driftTemplate},
			{"TheReplicasByHand", driftReplicas},
			{"ARestartByHand", driftRestart},
		} {
			t.Run(step.name, func(t *testing.T) {
				same := *shop
				same.fluxed = shop.in(t)
				step.do(t, &same)
				shop.edits, shop.setting, shop.password, shop.version = same.edits, same.setting, same.password, same.version
				shop.wantTruth(t, fluxUses...)
				shop.wantAsGit(t)
			})
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d rounds in %s, %+v", rounds, time.Since(begin).Round(time.Second), shop.Counts())
	shop.wantNoFight(t)
}

func editConfigMap(t *testing.T, shop *fluxShop) {
	before := shop.Counts()
	shop.setting = shop.next("good")
	shop.push(t, "another setting", shop.files())
	shop.WantRolls(before, harness.Rolls{"deployment/web": 1, "deployment/api": 1})
	shop.synced(t)
}

func editSecret(t *testing.T, shop *fluxShop) {
	before := shop.Counts()
	shop.password = shop.next("secret")
	shop.push(t, "another password", shop.files())
	shop.WantRolls(before, harness.Rolls{"deployment/web": 1, "statefulset/db": 1})
	shop.synced(t)
}

// A release: the template and the ConfigMap that goes with it.
func editBoth(t *testing.T, shop *fluxShop) {
	before := shop.Counts()
	shop.setting, shop.version = shop.next("good"), shop.next("release")
	shop.push(t, "a release", shop.files())
	shop.WantRolls(before, harness.Rolls{"deployment/web": 1, "deployment/api": 1})
	shop.synced(t)
}

// Flux asks about each object every interval. Nobody writes a workload.
func editNothing(t *testing.T, shop *fluxShop) {
	shop.synced(t)
	before, since := shop.Counts(), time.Now()
	time.Sleep(4 * fluxInterval)
	shop.Unchanged(before)
	asked := map[string]int{}
	for _, q := range requests(t, since, func(q request) bool { return q.Namespace == shop.Namespace && q.Subresource == "" }) {
		switch {
		case q.Agent == fluxAgent && q.dry():
			asked[strings.TrimSuffix(q.Resource, "s")+"/"+q.Name]++
		case q.writes() && (q.Resource == "deployments" || q.Resource == "statefulsets" || q.Resource == "configmaps" || q.Resource == "secrets"):
			t.Errorf("while nobody changed anything: %s %s by %s (%s)", q.Verb, q.object(), q.Agent, q.URI)
		}
	}
	t.Logf("dry runs in %s: %v", time.Since(since).Round(time.Second), asked)
	for _, object := range []string{"deployment/web", "deployment/api", "deployment/idle", "statefulset/db", "configmap/setting", "secret/password"} {
		if asked[object] < 3 {
			t.Errorf("Flux asked about %s %d times in four intervals: this has shown nothing", object, asked[object])
		}
	}
}

// Somebody edits the ConfigMap. Flux puts it right within its interval. What has rolled to the
// wrong content by then rolls back, and the rest never rolls.
func driftConfigMap(t *testing.T, shop *fluxShop) {
	shop.heals["configmap/setting"]++
	before, since := shop.Counts(), time.Now()
	kubectl(t, "--namespace="+shop.Namespace, "patch", "configmap", "setting", "--patch", `{"data":{"SETTING":"good-by-hand"}}`)
	eventually(t, "Flux heals the ConfigMap", 2*time.Minute, shop.asGit, shop.status)
	drifted := time.Since(since)
	shop.wantTruth(t, fluxUses...)
	shop.Quiet()
	after, rolled := shop.Counts(), 0
	for workload := range after {
		times := after[workload].Rolls - before[workload].Rolls
		if workload != "deployment/web" && workload != "deployment/api" && times != 0 || times != 0 && times != 2 {
			t.Errorf("%s rolled %d times for an edit that was taken back after %s", workload, times, drifted)
		}
		rolled += times
	}
	t.Logf("the ConfigMap was otherwise for %s: %d rollouts", drifted.Round(time.Second/10), rolled)
	if drifted > settle+4*time.Second && rolled == 0 || drifted < settle && rolled != 0 {
		t.Errorf("the ConfigMap was otherwise for %s, and there were %d rollouts", drifted, rolled)
	}
}

// Somebody changes a template, which rolls it; Flux changes it back, which rolls it again.
func driftTemplate(t *testing.T, shop *fluxShop) {
	shop.heals["deployment/api"]++
	before := shop.Counts()
	kubectl(t, "--namespace="+shop.Namespace, "set", "env", "deployment/api", "VERSION=by-hand")
	shop.WantRollsBack(before, harness.Rolls{"deployment/api": 2})
}

func driftReplicas(t *testing.T, shop *fluxShop) {
	shop.heals["deployment/api"]++
	before := shop.Counts()
	kubectl(t, "--namespace="+shop.Namespace, "scale", "deployment/api", "--replicas=2")
	eventually(t, "Flux heals the replicas", 2*time.Minute, shop.asGit, shop.status)
	shop.Unchanged(before)
}

// Flux takes back what kubectl rollout restart writes in the template. So that is two rollouts,
// with configstamp or without.
func driftRestart(t *testing.T, shop *fluxShop) {
	shop.heals["deployment/api"]++
	before := shop.Counts()
	kubectl(t, "--namespace="+shop.Namespace, "rollout", "restart", "deployment/api")
	shop.WantRollsBack(before, harness.Rolls{"deployment/api": 2})
}
