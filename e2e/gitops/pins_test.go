package gitops

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/harness"
)

// statefulSet is manifest as another kind.
var statefulSet = strings.Replace(manifest, "kind: Deployment", "kind: StatefulSet", 1)

// pinned is a namespace that pins.
func pinned(t testing.TB) *harness.Space {
	s := run.Space(t)
	s.SetPolicy("namespace", map[string]string{"pin": "true", "min-interval": "1ms"})
	time.Sleep(time.Second) // every process knows
	return s
}

// pinOf is the snapshot that a workload's template names for configmap/c, "" for none.
func pinOf(t *testing.T, s *harness.Space, workload string) string {
	t.Helper()
	text, is := harness.TemplateAnnotations(s.Get(workload))["configstamp.dev/pins"]
	if !is {
		return ""
	}
	pins := map[string]string{}
	harness.Must(t, json.Unmarshal([]byte(text), &pins))
	name, _, _ := strings.Cut(pins["configmap/c"], " ")
	return name
}

// wantPin checks that a workload is stamped with the present content and pinned to it.
func wantPin(t *testing.T, s *harness.Space, workload string) string {
	t.Helper()
	if got, want := s.Stamp(workload, "configmap/c"), s.Digest("configmap/c"); got != want {
		t.Errorf("the stamp is %q, want %q", got, want)
	}
	name := pinOf(t, s, workload)
	if snapshot, err := s.TryGet("configmap/" + name); name == "" || err != nil {
		t.Errorf("%s is pinned to %q, which is %v: %v", workload, name, snapshot, err)
	}
	return name
}

// wantUndone checks whether a workload declines the present content, and its pin.
func wantUndone(t *testing.T, s *harness.Space, workload, pin string, declines bool) {
	t.Helper()
	if got := pinOf(t, s, workload); got != pin {
		t.Errorf("%s is pinned to %q, want %q", workload, got, pin)
	}
	text := s.Get(workload).GetAnnotations()["configstamp.dev/declined"]
	if is := strings.Contains(text, s.Digest("configmap/c")); is != declines {
		t.Errorf("configstamp.dev/declined=%q of %s holds the present content: %t, want %t", text, workload, is, declines)
	}
}

// wantNoWrites syncs often and checks that the API server stores nothing, once the tool
// has taken over what it may.
func wantNoWrites(t *testing.T, s *harness.Space, by tool, manifest, workload string) {
	t.Helper()
	before := s.Counts()
	by.sync(t, manifest)
	s.Unchanged(before)
	was := s.Get(workload).GetResourceVersion()
	for range 3 {
		by.sync(t, manifest)
	}
	if is := s.Get(workload).GetResourceVersion(); is != was {
		t.Errorf("syncs have written %s: it was version %s, and is %s", workload, was, is)
	}
	s.Unchanged(before)
}

// waysBack are the ways in which a workload goes back to its former content: kubectl rollout undo, and the patch that the
// controller sends for on-failure: return. Here the test sends that patch: a workload can fail only on real containers (e2e/pins).
var waysBack = map[string]func(t *testing.T, s *harness.Space, workload string){
	"undo": func(t *testing.T, s *harness.Space, workload string) {
		t.Helper()
		s.Kubectl("rollout", "undo", workload)
	},
	"return": func(t *testing.T, s *harness.Space, workload string) {
		t.Helper()
		ours, err := dynamic.NewForConfig(run.ConfigOf(t, harness.OwnNamespace, "configstamp", "configstamp-return"))
		harness.Must(t, err)
		object := s.Get(workload)
		_, err = ours.Resource(resource(object)).Namespace(s.Namespace).Patch(t.Context(), object.GetName(), types.MergePatchType, []byte("{}"),
			metav1.PatchOptions{FieldManager: "configstamp-return"})
		harness.Must(t, err)
	},
}

// The life of a workload that pins: it is in sync all the time. An undo by hand stays, a return stays, and so does content
// that was accepted afterwards.
func TestPinsAreNoDrift(t *testing.T) {
	t.Parallel()
	for workload, manifest := range map[string]string{"deployment/d": manifest, "statefulset/d": statefulSet} {
		for way, goBack := range waysBack {
			t.Run(way+" of "+workload, func(t *testing.T) {
				t.Parallel()
				each(t, pinned, func(t *testing.T, s *harness.Space, by tool) {
					s.SetPolicy("namespace", map[string]string{"on-failure": "return"})
					inSync := func(when string) {
						t.Helper()
						if drift := by.drift(t, manifest); drift != "" {
							t.Errorf("%s: out of sync in %s", when, drift)
						}
					}
					by.sync(t, manifest)
					before := s.Settled(workload)
					first := wantPin(t, s, workload)
					inSync("after the first sync")

					s.Edit("configmap/c", "k", "2")
					s.WantRolls(before, rolls{workload: 1})
					second := wantPin(t, s, workload)
					inSync("after a rollout")
					wantNoWrites(t, s, by, manifest, workload)

					before = s.Counts()
					goBack(t, s, workload)
					s.WantRollsBack(before, rolls{workload: 1})
					wantUndone(t, s, workload, first, true)
					inSync("after it went back")
					wantNoWrites(t, s, by, manifest, workload)
					wantUndone(t, s, workload, first, true)
					inSync("after it went back, and syncs")

					before = s.Counts()
					s.Readmit(workload, "configstamp-accept")
					s.WantRollsBack(before, rolls{workload: 1})
					wantUndone(t, s, workload, second, false)
					inSync("after it was accepted")
					wantNoWrites(t, s, by, manifest, workload)
					wantUndone(t, s, workload, second, false)
				})
			})
		}
	}
}

// An undo that changes an image, too, is drift. The tool brings Git's image back, which
// may need the present content, so it gets that, and people are told.
func TestHealingAnUndoneImageTakesThePresentContent(t *testing.T) {
	t.Parallel()
	each(t, pinned, func(t *testing.T, s *harness.Space, by tool) {
		by.sync(t, manifest)
		before := s.Settled("deployment/d")
		first := wantPin(t, s, "deployment/d")
		s.Edit("configmap/c", "k", "2")
		s.WantRolls(before, rolls{"deployment/d": 1})
		second := wantPin(t, s, "deployment/d")
		newer := strings.Replace(manifest, "app:1", "app:2", 1)
		before = s.Counts()
		by.sync(t, newer)
		s.WantRolls(before, rolls{"deployment/d": 1})

		before = s.Counts()
		s.Kubectl("rollout", "undo", "deployment/d", "--to-revision=1")
		s.WantRollsBack(before, rolls{"deployment/d": 1})
		wantUndone(t, s, "deployment/d", first, true)
		// Who asks the server hears of the image, and of what this makes of ours.
		drift := by.drift(t, newer)
		if !strings.Contains(drift, "image") || strings.Contains(drift, "configstamp.dev/declined") != by.asks() {
			t.Errorf("out of sync in %q, and it asks the server: %t", drift, by.asks())
		}

		before = s.Counts()
		by.sync(t, newer)
		s.WantRollsBack(before, rolls{"deployment/d": 1})
		wantUndone(t, s, "deployment/d", second, false)
		s.WantNote("deployment/d", "DeclinedCleared: ")
		if drift := by.drift(t, newer); drift != "" {
			t.Errorf("after it was healed: out of sync in %s", drift)
		}
	})
}

// exported is a manifest with all of our annotations that its workload has now.
func exported(t *testing.T, s *harness.Space, manifest, workload string) string {
	t.Helper()
	of, into := s.Get(workload), map[string]any{}
	harness.Must(t, yaml.Unmarshal([]byte(manifest), &into))
	ours := func(annotations map[string]string) map[string]any {
		found := map[string]any{}
		for key, value := range annotations {
			if strings.Contains(key, "configstamp.dev/") {
				found[key] = value
			}
		}
		return found
	}
	into["metadata"].(map[string]any)["annotations"] = ours(of.GetAnnotations())
	template := into["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)
	template["annotations"] = ours(harness.TemplateAnnotations(of))
	text, err := yaml.Marshal(into)
	harness.Must(t, err)
	for _, key := range []string{"configmap.configstamp.dev/c:", "configstamp.dev/pins:", "configstamp.dev/declined:"} {
		if !strings.Contains(string(text), key) {
			t.Fatalf("the export has no %s, so this proves nothing:\n%s", key, text)
		}
	}
	return string(text)
}

// Whoever exports an undone workload, and keeps stamps, pins and what was declined in Git,
// fights with nobody: no sync rolls it, none writes it, and none takes back what somebody
// accepts.
func TestPinsInGitAreNotBelieved(t *testing.T) {
	t.Parallel()
	const d = "deployment/d"
	each(t, pinned, func(t *testing.T, s *harness.Space, by tool) {
		by.sync(t, manifest)
		before := s.Settled(d)
		first := wantPin(t, s, d)
		s.Edit("configmap/c", "k", "2")
		s.WantRolls(before, rolls{d: 1})
		second := wantPin(t, s, d)
		before = s.Counts()
		s.Kubectl("rollout", "undo", d)
		s.WantRollsBack(before, rolls{d: 1})

		git := exported(t, s, manifest, d)
		wantNoWrites(t, s, by, git, d)
		wantUndone(t, s, d, first, true)
		before = s.Counts()
		s.Readmit(d, "configstamp-accept")
		s.WantRollsBack(before, rolls{d: 1})
		wantNoWrites(t, s, by, git, d)
		wantUndone(t, s, d, second, false)
		if drift := by.drift(t, git); (drift == "") != by.asks() {
			t.Errorf("out of sync in %q, and it asks the server: %t", drift, by.asks())
		}
		before = s.Counts()
		s.Edit("configmap/c", "k", "3")
		s.WantRolls(before, rolls{d: 1})
		wantNoWrites(t, s, by, git, d)
		wantPin(t, s, d)
		// Taken out of Git, they are left alone.
		wantNoWrites(t, s, by, manifest, d)
		wantPin(t, s, d)
		wantNoDrift(t, by, "without them")
	})
}

// A change that an undo of another workload has halted: what is held is in sync, and no
// sync rolls it on.
func TestAHaltedChangeIsNoDrift(t *testing.T) {
	product := run.Exclusive(t)
	steps := options()
	steps.Controller = append(steps.Controller, "--step=1")
	harness.Must(t, product.Restart(t.Context(), steps))
	s := pinned(t)
	s.Set("configmap/c", "k", "1")
	called := func(name string) string {
		return strings.NewReplacer("name: d", "name: "+name, "app: d", "app: "+name).Replace(manifest)
	}
	s.Create(strings.Replace(called("first"), "name: first", "name: first\n  annotations: {configstamp.dev/order: \"-1\"}", 1))
	names := slices.Sorted(maps.Keys(tools()))
	by, all := map[string]tool{}, []string{"deployment/first"}
	for i, name := range names {
		by[name] = tools()[name](s)
		by[name].sync(t, called(fmt.Sprint("d", i)))
		all = append(all, fmt.Sprint("deployment/d", i))
	}
	before := s.Settled(all...)
	first := wantPin(t, s, "deployment/first")
	s.Edit("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/first": 1})
	before = s.Counts()
	s.Kubectl("rollout", "undo", "deployment/first")
	s.Eventually("waiting for the halt", func() error {
		if notes := s.Notes("configmap/c"); !slices.ContainsFunc(notes, func(note string) bool { return strings.HasPrefix(note, "ChangeHalted: ") }) {
			return fmt.Errorf("there is none: %q", notes)
		}
		return nil
	})
	s.WantRollsBack(before, rolls{"deployment/first": 1})
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			manifest, workload := called(fmt.Sprint("d", i)), fmt.Sprint("deployment/d", i)
			if drift := by[name].drift(t, manifest); drift != "" {
				t.Errorf("out of sync in %s", drift)
			}
			wantNoWrites(t, s, by[name], manifest, workload)
			wantUndone(t, s, workload, first, false)
			if drift := by[name].drift(t, manifest); drift != "" {
				t.Errorf("after more syncs: out of sync in %s", drift)
			}
		})
	}
}
