package neighbours

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What docs/rollouts.md, rollouts-rules.md and workloads.md promise of Argo Rollouts, with its real controller.
func TestRollouts(t *testing.T) {
	a := startRollouts(t)
	for name, test := range map[string]func(*canaries, *testing.T){
		"AnEditIsOneRevisionOfEach":               (*canaries).anEdit,
		"APausedCanaryIsNotWaitedFor":             (*canaries).aPausedCanary,
		"AnAbortHaltsTheChange":                   (*canaries).anAbort,
		"ABadEditHaltsAtOneCanary":                (*canaries).aBadEdit,
		"ABadEditHaltsAtOneBlueGreen":             (*canaries).aBadEditOfBlueGreen,
		"ABadEditHaltsAtOneWorkloadRef":           (*canaries).aBadEditOfRefs,
		"ACanaryThatCrashesAtItsPauseHasFailed":   (*canaries).aLateCrash,
		"AWorkloadRefRollsOnce":                   (*canaries).aWorkloadRef,
		"AnUndoAndARestartCauseNothing":           (*canaries).anUndo,
		"AFailedAnalysisHaltsTheChange":           (*canaries).anAnalysis,
		"ABlueGreenThatWaitsForAPersonIsPromoted": (*canaries).aBlueGreen,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(a, t)
		})
	}
}

func (a *canaries) anEdit(t *testing.T) {
	f := a.newTeam(t, member{name: "web"}, member{name: "stepped", strategy: stepped}, member{name: "stepless", strategy: stepless}, member{name: "blue", strategy: blueGreen})
	before, steps, since := f.Counts(), len(a.story(f.Namespace, "stepped")), time.Now()
	f.edit(setting, "good")
	f.settled()
	f.rolled(before, onceEach("web", "stepped", "stepless", "blue"))
	f.sayBusiest(f.writes(since))
	if story := a.story(f.Namespace, "stepped")[steps:]; !slices.Contains(story, "Paused 1") || story[len(story)-1] != "Healthy 2" {
		t.Errorf("the steps of the canary were not taken: %v", story)
	}
	f.WantNote(setting, "ChangeRolledOut")
	for _, m := range f.members {
		f.WantNote(m.workload(), "ConfigChanged: configmap/setting changed: rolling out")
	}
	f.WantNoNote(setting, "ChangeHalted")
}

func (a *canaries) aPausedCanary(t *testing.T) {
	f := a.newTeam(t, member{name: "canary", strategy: byHand, order: "1"}, member{name: "web"}, member{name: "api"}, member{name: "blue", strategy: blueGreen})
	before := f.Counts()
	f.edit(setting, "good")
	f.becomes("canary", "Paused")
	f.settled("web", "api", "blue")
	f.rolled(before, onceEach("canary", "web", "api", "blue"))
	if phase := f.phase("canary"); phase != "Paused" {
		t.Errorf("the canary is %s, and nobody has promoted it", phase)
	}
	f.WantNoNote(setting, "ChangeRolledOut")
	f.WantNoNote(setting, "ChangeHalted")

	// Another edit while the canary stands: it is that canary's fix, and reaches it once too.
	f.edit(setting, "good")
	f.settled("web", "api", "blue")
	f.Eventually("waiting until the canary has the second edit", func() error {
		if is, want := f.Stamp("rollout/canary", setting), f.Digest(setting); is != want {
			return fmt.Errorf("it carries %s, want %s", is, want)
		}
		return nil
	})
	f.becomes("canary", "Paused")
	f.people("promote", "canary")
	f.settled()
	f.WantNote(setting, "ChangeRolledOut")
	f.rolled(before, harness.Rolls{"canary": 2, "web": 2, "api": 2, "blue": 2})
}

func (a *canaries) anAbort(t *testing.T) {
	f := a.newTeam(t, member{name: "canary", strategy: byHand, order: "1"}, member{name: "web"}, member{name: "second", strategy: stepped})
	held := []string{"deployment/web", "rollout/second"}
	pause := func() {
		for _, name := range held {
			f.SetPolicy(name, map[string]string{"pause": "true"})
		}
	}
	goOn := func() {
		for _, name := range held {
			f.DropPolicy(name, map[string]string{"pause": ""})
		}
	}
	pause() // else they would have rolled before somebody aborts
	before := f.Counts()
	f.edit(setting, "good")
	f.becomes("canary", "Paused")
	f.people("abort", "canary")
	f.becomes("canary", "Degraded")
	f.WantNote("rollout/canary", "RolloutFailed")
	goOn()
	f.still()
	f.WantNote(setting, "ChangeHalted")
	for _, name := range held {
		f.WantNote(name, "RolloutHalted")
	}
	f.rolled(before, onceEach("canary"))

	// A person tries again, and is content: the change goes on.
	f.people("retry", "rollout", "canary")
	f.becomes("canary", "Paused")
	f.people("promote", "canary")
	f.settled()
	f.rolled(before, onceEach("canary", "web", "second"))
	f.WantNote(setting, "ChangeResumed")

	// Aborted again, and mended by another edit.
	pause()
	f.edit(setting, "worse")
	f.becomes("canary", "Paused")
	f.people("abort", "canary")
	f.becomes("canary", "Degraded")
	goOn()
	f.still()
	f.edit(setting, "good")
	f.settled("web", "second")
	f.becomes("canary", "Paused")
	f.people("promote", "canary")
	f.settled()
	f.rolled(before, harness.Rolls{"canary": 3, "web": 2, "second": 2})
}

// aBadEdit is one with which the app of a canary does not start.
func (a *canaries) aBadEdit(t *testing.T) {
	f := a.newTeam(t, member{name: "canary", strategy: stepped, manner: "strict", order: "1"},
		member{name: "second", strategy: stepped, manner: "strict"}, member{name: "stepless", strategy: stepless, manner: "strict"}, member{name: "web", manner: "strict"})
	f.haltsAt("canary")
}

func (a *canaries) aBadEditOfBlueGreen(t *testing.T) {
	f := a.newTeam(t, member{name: "blue", strategy: blueGreen, manner: "strict", order: "1"},
		member{name: "second", strategy: blueByHand, manner: "strict"}, member{name: "web", manner: "strict"})
	f.haltsAt("blue")
}

// aBadEditOfRefs is of Rollouts whose templates, and stamps, are those of Deployments without pods.
func (a *canaries) aBadEditOfRefs(t *testing.T) {
	f := a.newTeam(t, member{name: "canary", strategy: stepped, byRef: true, manner: "strict", order: "1"},
		member{name: "second", strategy: stepless, byRef: true, manner: "strict"}, member{name: "web", manner: "strict"})
	f.haltsAt("canary")
}

// haltsAt has a bad edit halt at one member, takes it back, and mends another one by an edit.
func (f *team) haltsAt(first string) {
	f.t.Helper()
	holder, good := f.member(first).holder(), f.Get(setting)
	data, _, _ := unstructured.NestedString(good.Object, "data", "SETTING")
	before := f.Counts()
	f.edit(setting, "bad")
	f.WantNote(holder, "RolloutFailed")
	f.WantNote(setting, "ChangeHalted")
	f.still()
	f.rolled(before, onceEach(first))
	f.served()

	f.Set(setting, "SETTING", data) // taken back
	f.settled()
	f.Quiet()
	now := f.Counts()
	if revisions := "rollout/" + first; now[holder].Rolls != before[holder].Rolls+2 || now[revisions].Revisions != before[revisions].Revisions+1 {
		f.t.Errorf("%s has gone back with %+v, and had %+v", first, now, before)
	}
	for _, m := range f.members {
		if m.name != first && now[m.holder()].Rolls != before[m.holder()].Rolls {
			f.t.Errorf("%s has rolled", m.name)
		}
	}

	between := f.Counts()
	f.edit(setting, "bad")
	f.Eventually("waiting until "+first+" fails again", func() error {
		if n := f.times(holder, "RolloutFailed"); n < 2 {
			return fmt.Errorf("it was said to fail %d times", n)
		}
		return nil
	})
	f.edit(setting, "good")
	for _, m := range f.members {
		if m.strategy == blueByHand {
			f.becomes(m.name, "Paused")
			f.people("promote", m.name)
		}
	}
	f.settled()
	want := harness.Rolls{}
	for _, m := range f.members {
		want[m.name] = 1
	}
	want[first] = 2
	f.rolled(between, want)
}

// times is how often something was said about an object.
func (f *team) times(name, reason string) (n int) {
	for _, event := range f.Events(name) {
		if event.Reason == reason {
			n++
			if event.Series != nil {
				n += int(event.Series.Count) - 1
			}
		}
	}
	return n
}

// served checks that two pods of each member are ready: none but the first has tried the content with which the app
// does not start, and the strategy of that one keeps its old pods. Some lack the one that was their canary.
func (f *team) served(lacking ...string) {
	f.t.Helper()
	for _, m := range f.members {
		want := 2
		if slices.Contains(lacking, m.name) {
			want = 1
		}
		if ready := f.ready(m.name); ready < want {
			f.t.Errorf("%s has %d ready pods", m.name, ready)
		}
	}
}

// aLateCrash is of an app that starts, so that its canary comes to its pause, and crashes then.
func (a *canaries) aLateCrash(t *testing.T) {
	late := func(name string) member {
		return member{name: name, strategy: byHand, manner: "late", noProbe: true}
	}
	first := late("first")
	first.order = "1"
	f := a.newTeam(t, first, late("second"), late("third"))
	before := f.Counts()
	f.edit(setting, "bad")
	f.WantNote("rollout/first", "RolloutFailed")
	f.WantNote(setting, "ChangeHalted")
	f.still()
	f.rolled(before, onceEach("first"))
	f.served("first")

	f.edit(setting, "good")
	for _, m := range f.members {
		f.EventuallyIn(2*time.Minute, "waiting until "+m.name+" has the fix", func() error {
			if is, want := f.Stamp(m.workload(), setting), f.Digest(setting); is != want {
				return fmt.Errorf("it carries %s, want %s", is, want)
			}
			return nil
		})
		f.becomes(m.name, "Paused")
		f.people("promote", m.name)
	}
	f.settled()
	f.rolled(before, harness.Rolls{"first": 2, "second": 1, "third": 1})
}

func (a *canaries) aWorkloadRef(t *testing.T) {
	f := a.newTeam(t, member{name: "ref", strategy: stepped, byRef: true}, member{name: "web"})
	f.Eventually("waiting until the Deployment is scaled down", func() error {
		if n, _, _ := unstructured.NestedInt64(f.Get("deployment/ref").Object, "spec", "replicas"); n != 0 {
			return fmt.Errorf("it has %d replicas", n)
		}
		return nil
	})
	before := f.Counts()
	f.edit(setting, "good")
	f.settled()
	f.rolled(before, onceEach("ref", "web"))
	if stamps := harness.Stamps(f.Get("rollout/ref")); len(stamps) > 0 {
		t.Errorf("the Rollout, which has no template, has stamps %v", stamps)
	}
}

func (a *canaries) anUndo(t *testing.T) {
	f := a.newTeam(t, member{name: "canary", strategy: stepless}, member{name: "web"})
	f.edit(setting, "good")
	f.settled()
	f.Quiet()
	before, were := f.Counts(), f.pods("canary")
	// To a template that differs by its stamp, and in that the API server's defaults are written out: Argo makes no
	// revision of it.
	f.people("undo", "canary")
	f.settled()
	f.Quiet()
	if now := f.Counts(); now["rollout/canary"].Rolls != before["rollout/canary"].Rolls+1 || now["rollout/canary"].Revisions != before["rollout/canary"].Revisions {
		t.Errorf("the canary has %+v after an undo, and had %+v", now["rollout/canary"], before["rollout/canary"])
	}
	if are := f.pods("canary"); !slices.Equal(are, were) {
		t.Errorf("an undo has restarted pods: %v, then %v", were, are)
	}

	before = f.Counts()
	f.Patch("rollout/canary", `{"spec":{"template":{"metadata":{"labels":{"version":"2"}}}}}`)
	f.settled()
	f.edit(setting, "good")
	f.settled()
	f.rolled(before, harness.Rolls{"canary": 2, "web": 1})
	f.people("undo", "canary", "--to-revision=2") // today's content, without the label
	f.settled()
	f.rolled(before, harness.Rolls{"canary": 3, "web": 1})

	before, were = f.Counts(), f.pods("canary")
	since := time.Now()
	f.people("restart", "canary")
	f.Eventually("waiting until the pods are others", func() error {
		for _, pod := range f.pods("canary") {
			if slices.Contains(were, pod) {
				return fmt.Errorf("%s is still there", pod)
			}
		}
		return nil
	})
	f.settled()
	f.rolled(before, nil)
	if ours := requests(t, since, func(q request) bool {
		return q.Namespace == f.Namespace && q.writes() && q.Agent == controller && q.Resource != "events"
	}); len(ours) > 0 {
		t.Errorf("a restart by Argo has us write: %v", tally(ours))
	}
}

// anAnalysis asks a server of quality, which does not like worse content.
func (a *canaries) anAnalysis(t *testing.T) {
	f := a.newTeam(t, member{name: "web"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		word, _, _ := unstructured.NestedString(f.Get(setting).Object, "data", "SETTING")
		fmt.Fprintf(w, `{"data":{"good":%t}}`, !strings.HasPrefix(word, "worse"))
	}))
	t.Cleanup(server.Close)
	f.Apply(fmt.Sprintf(`
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: quality}
spec: {metrics: [{name: quality, successCondition: result.good == true, provider: {web: {url: %q, jsonPath: "{$.data}"}}}]}
`, server.URL))
	analysed := member{name: "analysed", strategy: analysed, order: "1"}
	f.Apply(analysed.manifest())
	f.members = append(f.members, analysed)
	f.settled()
	before := f.Counts()
	f.edit(setting, "good")
	f.settled()
	f.rolled(before, onceEach("analysed", "web"))

	f.edit(setting, "worse")
	f.becomes("analysed", "Degraded")
	f.WantNote("rollout/analysed", "RolloutFailed")
	f.WantNote(setting, "ChangeHalted")
	f.WantNote("deployment/web", "RolloutHalted")
	f.still()
	f.rolled(before, harness.Rolls{"analysed": 2, "web": 1})

	f.edit(setting, "good")
	f.settled()
	f.rolled(before, harness.Rolls{"analysed": 3, "web": 2})
}

func (a *canaries) aBlueGreen(t *testing.T) {
	f := a.newTeam(t, member{name: "blue", strategy: blueByHand, order: "1"}, member{name: "web"})
	before, active := f.Counts(), f.selected("blue-active")
	f.edit(setting, "good")
	f.becomes("blue", "Paused")
	f.settled("web")
	if is := f.selected("blue-active"); is != active {
		t.Errorf("the active Service has another selector, %q", is)
	}
	f.WantNoNote(setting, "ChangeRolledOut")
	f.people("promote", "blue")
	f.settled()
	if is := f.selected("blue-active"); is == active {
		t.Error("the active Service has the selector that it had before the promotion")
	}
	f.WantNote(setting, "ChangeRolledOut")
	f.rolled(before, onceEach("blue", "web"))
}
