package neighbours

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/configstamp/configstamp/e2e/harness"
)

// argoUsers are the workloads that Argo CD keeps, with what they read: all of a source, or keys.
var argoUsers = map[string]map[string][]string{
	"deployment/first":  {"configmap/setting": nil},
	"deployment/second": {"configmap/setting": {"SETTING"}, "secret/token": {"token"}},
	"statefulset/state": {"configmap/setting": nil, "secret/token": {"token"}},
	"daemonset/each":    {"configmap/files": nil},
}

// argoWorkload is one in Git. first goes first, and crashes by a bad SETTING.
func argoWorkload(kind, name, manner, order, spec, container, pod string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: %s
metadata: {name: %s, annotations: {configstamp.dev/order: %q}}
spec:
  %s
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      terminationGracePeriodSeconds: 1
      automountServiceAccountToken: false
      containers:
      - name: app
        image: %[5]s
        imagePullPolicy: Never
        args: [%[6]s]
        readinessProbe: {httpGet: {path: /, port: 3000}, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 20}
%[7]s%[8]s`, kind, name, order, spec, app, manner, container, pod)
}

const (
	argoEnvFrom = "        envFrom: [{configMapRef: {name: setting}}]\n"
	argoToken   = "        - {name: TOKEN, valueFrom: {secretKeyRef: {name: token, key: token}}}\n"
)

func argoFirst(version string) string {
	return argoWorkload("Deployment", "first", "strict", "1", "replicas: 2", argoEnvFrom+"        env: [{name: VERSION, value: \""+version+"\"}]\n", "")
}

func argoSetting(word string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: setting}\ndata: {SETTING: %q}\n", word)
}

func argoFiles(word string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: files}\ndata: {a.conf: %q, b.conf: same}\n", word)
}

func argoSecret(word string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: token}\ndata: {token: %s}\n", base64.StdEncoding.EncodeToString([]byte(word)))
}

func argoNamespace(name, annotations string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n  labels: {configstamp.dev/inject: enabled}\n  annotations: {configstamp.dev/min-interval: 1ms%s}\n", name, annotations)
}

// argoShop is a namespace of which everything is in Git, the Namespace too.
type argoShop struct {
	*argoApplication
	space *harness.Space
	git   *repository
	// setting is SETTING in Git; edits counts words.
	setting string
	edits   int
	// asksWebhooks tells that Argo CD compares with what webhooks would make of an object.
	asksWebhooks bool
	// syncs and rolls are how many were wanted so far; steps is what was done.
	syncs, steps int
	rolls        harness.Rolls
	began        time.Time
}

func (a *argo) openShop(t *testing.T, options argoOptions) *argoShop {
	t.Helper()
	namespace := "shop-" + rand.String(5)
	s := &argoShop{setting: "good-" + namespace, asksWebhooks: strings.Contains(options.compare, "IncludeMutationWebhook"), space: run.Existing(t, namespace), rolls: harness.Rolls{}, began: time.Now()}
	s.git = newRepository(t, map[string]string{
		"namespace.yaml": argoNamespace(namespace, ""), "setting.yaml": argoSetting(s.setting), "files.yaml": argoFiles("1"), "token.yaml": argoSecret("1"),
		"first.yaml": argoFirst("1"),
		"second.yaml": argoWorkload("Deployment", "second", "lenient", "2", "replicas: 2",
			"        env:\n        - {name: SETTING, valueFrom: {configMapKeyRef: {name: setting, key: SETTING}}}\n"+argoToken, ""),
		"state.yaml": argoWorkload("StatefulSet", "state", "lenient", "3", "replicas: 1\n  serviceName: none", argoEnvFrom+"        env:\n"+argoToken, ""),
		"each.yaml": argoWorkload("DaemonSet", "each", "lenient", "4", "updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
			"        volumeMounts: [{name: files, mountPath: /files}]\n", "      volumes: [{name: files, configMap: {name: files}}]\n"),
	})
	s.argoApplication = a.keep(t, namespace, s.git.URL, options)
	argoGoes(t, namespace)
	s.wantSynced(s.head())
	s.wantHealth("Healthy", 5*time.Minute)
	s.syncs = len(argoSyncs(s.moments(0)))
	s.space.Settled(slices.Collect(maps.Keys(argoUsers))...)
	s.space.Unchanged(s.space.Counts())
	return s
}

func (s *argoShop) head() string {
	s.t.Helper()
	return s.git.head(s.t)
}

// word is one that was never there, here or elsewhere: equal ConfigMaps of several namespaces would be
// one change.
func (s *argoShop) word() string {
	s.edits++
	return fmt.Sprintf("%s-%d", s.space.Namespace, s.edits)
}

// step is something that somebody does, and what must follow: rollouts, what may be out of sync, and syncs.
type argoStep struct {
	what    string
	rolls   harness.Rolls
	back    bool // to templates that were there
	differs []string
	syncs   int
	prunes  bool // Argo CD syncs again and again while something goes
}

func (s *argoShop) step(step argoStep, do func()) {
	s.t.Helper()
	before, since, start := s.space.Counts(), len(s.moments(0)), time.Now()
	do()
	s.refresh()
	s.space.EventuallyIn(5*time.Minute, step.what+": waiting for rollouts", func() error {
		now := s.space.Counts()
		for workload, times := range step.rolls {
			if done := now[workload].Rolls - before[workload].Rolls; done < times {
				return fmt.Errorf("%s rolled %d times, want %d", workload, done, times)
			}
		}
		return nil
	})
	s.wantSynced(s.head())
	if step.back {
		s.space.WantRollsBack(before, step.rolls)
	} else {
		s.space.WantRolls(before, step.rolls)
	}
	s.judge(step, since, start)
}

// judge looks at what the Application has said since, and counts.
func (s *argoShop) judge(step argoStep, since int, start time.Time) {
	s.t.Helper()
	moments, late := s.moments(since), 0
	for _, m := range moments {
		for _, object := range m.OutOfSync {
			switch {
			case slices.Contains(step.differs, object):
			case s.asksWebhooks && step.rolls[object] > 0:
				// It asks the API server what an apply would make of the object now, and compares that with
				// the object as it has last seen it: what was stamped in between differs, for a moment.
				late++
			default:
				s.t.Errorf("%s: %s is out of sync, and nobody has changed it\n%s", step.what, object, s.report())
			}
		}
	}
	s.steps++
	most := s.syncs + step.syncs
	for workload, times := range step.rolls {
		s.rolls[workload] += times
		if late > 0 {
			most += times
		}
	}
	all := len(argoSyncs(s.moments(0)))
	if all < s.syncs+step.syncs || all > most && !step.prunes {
		s.t.Errorf("%s: there were %d syncs in all, want %d to %d\n%s", step.what, all, s.syncs+step.syncs, most, s.report())
	}
	s.t.Logf("%s: rolled %v, %d syncs, %d states, %d of them out of sync by a stamp, within %s", step.what, step.rolls, all-s.syncs, len(moments), late,
		time.Since(start).Round(time.Second))
	s.syncs = all
}

// wantTruth checks stamps, by the harness's own arithmetic, and that the cluster holds what Git says.
func (s *argoShop) wantTruth(image string, users map[string]map[string][]string) {
	s.t.Helper()
	for workload, sources := range users {
		for source, keys := range sources {
			if got, want := s.space.Stamp(workload, source), s.space.Digest(source, keys...); got != want {
				s.t.Errorf("%s: the stamp of %s is %q, want %q", workload, source, got, want)
			}
		}
	}
	if got := kubectl(s.t, "get", "configmap", "-n", s.name, "setting", "-o", "jsonpath={.data.SETTING}"); got != s.setting {
		s.t.Errorf("SETTING is %q in the cluster, and %q in Git", got, s.setting)
	}
	if got := kubectl(s.t, "get", "deployment", "-n", s.name, "first", "-o", "jsonpath={.spec.template.spec.containers[0].image} {.spec.replicas}"); got != image+" 2" {
		s.t.Errorf("first is %q in the cluster, and %q in Git", got, image+" 2")
	}
}

// wantNoFight counts what was written: no object more often than what was done to it calls for.
func (s *argoShop) wantNoFight() {
	s.t.Helper()
	all := requests(s.t, s.began, func(q request) bool { return q.Namespace == s.name || q.Resource == "namespaces" && q.Name == s.name })
	s.t.Logf("%d steps, %d syncs, %d states of the Application, rollouts %v; requests:\n%s", s.steps, s.syncs, len(s.moments(0)), s.rolls,
		strings.Join(tally(all), "\n"))
	writes := map[[2]string]int{}
	for _, q := range all {
		if q.writes() && q.Subresource == "" {
			writes[[2]string{q.Agent, q.Resource + "/" + q.Name}]++
		}
	}
	programs := []string{"argo-cd", "argocd-application-controller"}
	argoWrites := 0
	for who, times := range writes {
		most := 0
		switch agent, object := who[0], who[1]; {
		case slices.Contains(programs, agent):
			argoWrites += times
			most = s.syncs + 1 // each sync may apply everything once
		case agent == "configstamp-controller":
			rolled := 0
			for workload, n := range s.rolls {
				kind, name, _ := strings.Cut(workload, "/")
				if object == kind+"s/"+name {
					rolled = n
				}
			}
			most = rolled + 2
		default:
			continue
		}
		if times > most {
			s.t.Errorf("%s wrote %s %d times, want %d at most: they fight", who[0], who[1], times, most)
		}
	}
	if argoWrites == 0 {
		s.t.Error("the audit log knows of no write of Argo CD: this proves nothing")
	}
	for _, agent := range append(programs, "configstamp-controller") {
		object, times := busiest(all, agent)
		s.t.Logf("%s wrote %s most often, %d times", agent, object, times)
	}
}

// People edit in Git and beside it, and Argo CD syncs and heals by every way that it has.
func argoPeople(t *testing.T, a *argo) {
	for name, options := range map[string]argoOptions{
		"ClientSide":     {},
		"ServerSide":     {sync: []string{"ServerSideApply=true"}},
		"ServerSideDiff": {compare: "ServerSideDiff=true"},
		"ServerSideAll":  {sync: []string{"ServerSideApply=true"}, compare: "ServerSideDiff=true"},
		"WithWebhooks":   {sync: []string{"ServerSideApply=true"}, compare: "ServerSideDiff=true,IncludeMutationWebhook=true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := a.openShop(t, options)
			until := time.Now().Add(*long)
			for round := 0; round == 0 || time.Now().Before(until); round++ {
				s.edit()
				s.handiwork()
				s.drift()
			}
			s.badEdit()
			left := maps.Clone(argoUsers)
			delete(left, "daemonset/each")
			s.step(argoStep{what: "a ConfigMap and its user go", differs: []string{"configmap/files", "daemonset/each"}, syncs: 1, prunes: true}, func() {
				s.git.push(t, "less", map[string]string{"files.yaml": "", "each.yaml": ""})
			})
			for _, gone := range []string{"configmap/files", "daemonset/each"} {
				if _, err := s.space.TryGet(gone); err == nil {
					t.Errorf("%s is there, and not in Git", gone)
				}
			}
			s.wantHealth("Healthy", 2*time.Minute)
			s.wantTruth(app, left)
			s.wantNoFight()
		})
	}
}

// edit is what people do in Git.
func (s *argoShop) edit() {
	s.t.Helper()
	users := harness.Rolls{"deployment/first": 1, "deployment/second": 1, "statefulset/state": 1}
	s.step(argoStep{what: "an edit", differs: []string{"configmap/setting"}, syncs: 1, rolls: users}, func() {
		s.setting = s.word()
		s.git.push(s.t, "setting", map[string]string{"setting.yaml": argoSetting(s.setting)})
	})
	s.step(argoStep{
		what: "edits of a ConfigMap and of a template in one commit", differs: []string{"configmap/setting", "deployment/first"}, syncs: 1, rolls: users,
	}, func() {
		s.setting = s.word()
		s.git.push(s.t, "both", map[string]string{"setting.yaml": argoSetting(s.setting), "first.yaml": argoFirst(s.word())})
	})
	s.step(argoStep{
		what: "edits of a Secret and of files in one commit", differs: []string{"secret/token", "configmap/files"}, syncs: 1,
		rolls: harness.Rolls{"deployment/second": 1, "statefulset/state": 1, "daemonset/each": 1},
	}, func() {
		s.git.push(s.t, "token", map[string]string{"token.yaml": argoSecret(s.word()), "files.yaml": argoFiles(s.word())})
	})
	s.step(argoStep{what: "a commit without an edit"}, func() {
		s.git.push(s.t, "nothing", map[string]string{"setting.yaml": "# " + s.word() + "\n" + argoSetting(s.setting)})
	})
}

// handiwork is what people do to workloads beside Git.
func (s *argoShop) handiwork() {
	s.t.Helper()
	image := harness.Rolls{"deployment/second": 2}
	s.step(argoStep{what: "an image by hand", back: true, differs: []string{"deployment/second"}, syncs: 1, rolls: image}, func() {
		s.space.Kubectl("set", "image", "deployment/second", "app=rollouts-app:by-hand")
	})
	s.step(argoStep{what: "replicas by hand", differs: []string{"deployment/first"}, syncs: 1}, func() {
		before := len(argoSyncs(s.moments(0)))
		s.space.Kubectl("scale", "deployment/first", "--replicas=3")
		s.healed(before)
	})
}

// healed waits until one more sync is done than before.
func (s *argoShop) healed(before int) {
	s.t.Helper()
	eventually(s.t, "Argo CD heals", 2*time.Minute, func() error {
		if is := len(argoSyncs(s.moments(0))); is <= before {
			return fmt.Errorf("there were %d syncs, as before", is)
		}
		return nil
	}, s.report)
}

// drift is a ConfigMap that somebody edits beside Git. Its users roll to that content and back, or,
// when Argo CD was faster than the settling of the edit, not at all.
func (s *argoShop) drift() {
	s.t.Helper()
	before, since, start := s.space.Counts(), len(s.moments(0)), time.Now()
	syncs := len(argoSyncs(s.moments(0)))
	s.space.Edit("configmap/setting", "SETTING", s.word())
	s.healed(syncs)
	s.wantSynced(s.head())
	users := []string{"deployment/first", "deployment/second", "statefulset/state"}
	s.space.EventuallyIn(5*time.Minute, "waiting for the users of what was healed", func() error {
		for _, workload := range users {
			source := argoUsers[workload]["configmap/setting"]
			if got, want := s.space.Stamp(workload, "configmap/setting"), s.space.Digest("configmap/setting", source...); got != want {
				return fmt.Errorf("%s: the stamp is %q, want %q", workload, got, want)
			}
		}
		return nil
	})
	s.space.Quiet()
	now, rolled := s.space.Counts(), harness.Rolls{}
	for workload := range now {
		done := now[workload].Rolls - before[workload].Rolls
		if done != 0 && done != 2 || done != 0 && !slices.Contains(users, workload) {
			s.t.Errorf("%s rolled %d times by an edit that was taken back", workload, done)
		}
		if done != 0 {
			rolled[workload] = done
		}
	}
	s.judge(argoStep{what: "a ConfigMap by hand", differs: []string{"configmap/setting"}, syncs: 1, rolls: rolled}, since, start)
	if got := kubectl(s.t, "get", "configmap", "-n", s.name, "setting", "-o", "jsonpath={.data.SETTING}"); got != s.setting {
		s.t.Errorf("SETTING was healed to %q, want %q", got, s.setting)
	}
}

// badEdit is an edit that the first user does not survive: the others stay as they are, and Git's
// revert repairs it.
func (s *argoShop) badEdit() {
	s.t.Helper()
	s.step(argoStep{what: "a bad edit", differs: []string{"configmap/setting"}, syncs: 1, rolls: harness.Rolls{"deployment/first": 1}}, func() {
		s.git.push(s.t, "bad", map[string]string{"setting.yaml": argoSetting("bad-" + s.word())})
	})
	s.space.WantNote("configmap/setting", "ChangeHalted")
	since, before, start := len(s.moments(0)), s.space.Counts(), time.Now()
	time.Sleep(2 * argoResync) // comparisons while the change is halted
	s.space.Unchanged(before)
	s.judge(argoStep{what: "a change that is halted"}, since, start)
	s.step(argoStep{what: "its revert", back: true, differs: []string{"configmap/setting"}, syncs: 1, rolls: harness.Rolls{"deployment/first": 1}}, func() {
		s.git.push(s.t, "good again", map[string]string{"setting.yaml": argoSetting(s.setting)})
	})
}
