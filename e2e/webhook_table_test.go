package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/harness"
)

// The table "What the webhook does" of the design, row by row, for every kind
// that is stamped again after its creation. The controllers are stopped: what
// is seen is the webhook's doing alone.

// tabled is one workload in a namespace of its own.
type tabled struct {
	*harness.Space
	t                *testing.T
	kind, name, full string
}

func newTabled(t *testing.T, kind string, space func(testing.TB) *harness.Space, sources ...string) *tabled {
	t.Helper()
	w := &tabled{Space: space(t), t: t, kind: kind, name: "w", full: strings.ToLower(kind) + "/w"}
	w.Set("configmap/c", "k", "1")
	w.Set("secret/s", "k", "1")
	w.Create(workload(kind, w.name, envFrom(sources...)))
	w.Warnings()
	return w
}

// state is what of an object must not change by itself.
func state(object *unstructured.Unstructured) string {
	return fmt.Sprintf("generation %d, stamps %v, baseline %v", object.GetGeneration(), harness.Stamps(object), harness.Baseline(object))
}

func (w *tabled) wantStamps(object *unstructured.Unstructured, sources ...string) {
	w.t.Helper()
	stamps := harness.Stamps(object)
	for _, source := range sources {
		if got, want := stamps[harness.StampKey(source)], w.Digest(source); got != want {
			w.t.Errorf("stamp of %s is %q, want %q", source, got, want)
		}
	}
	if len(stamps) != len(sources) {
		w.t.Errorf("stamps %v, want those of %v", stamps, sources)
	}
}

func (w *tabled) wantBaseline(object *unstructured.Unstructured, sources ...string) {
	w.t.Helper()
	baseline := harness.Baseline(object)
	for _, source := range sources {
		if got, want := baseline[source], w.Digest(source); got != want {
			w.t.Errorf("baseline of %s is %q, want %q", source, got, want)
		}
	}
	if len(baseline) != len(sources) {
		w.t.Errorf("baseline %v, want that of %v", baseline, sources)
	}
}

func (w *tabled) wantSame(before, after *unstructured.Unstructured) {
	w.t.Helper()
	if was, is := state(before), state(after); was != is {
		w.t.Errorf("went from %s\nto %s", was, is)
	}
}

// wantKept is wantSame without the generation, which an annotation on a
// Deployment's own metadata raises.
func (w *tabled) wantKept(before, after *unstructured.Unstructured) {
	w.t.Helper()
	_, was, _ := strings.Cut(state(before), ",")
	if _, is, _ := strings.Cut(state(after), ","); was != is {
		w.t.Errorf("went from %s\nto %s", was, is)
	}
}

func (w *tabled) wantWarning(text string) {
	w.t.Helper()
	if heard := strings.Join(w.Warnings(), "\n"); strings.Count(heard, text) != 1 {
		w.t.Errorf("warnings %q, want one that says %q", heard, text)
	}
}

// adopted is a workload that existed before its namespace was opted in.
func adopted(t *testing.T, kind string, sources ...string) *tabled {
	t.Helper()
	w := newTabled(t, kind, run.PlainSpace, sources...)
	if stamps := harness.Stamps(w.Get(w.full)); len(stamps) > 0 {
		t.Fatalf("stamped without being opted in: %v", stamps)
	}
	w.Label("enabled")
	w.Eventually("waiting until the API server knows the label", func() error {
		if len(harness.Stamps(w.dryCreate())) == 0 {
			return fmt.Errorf("the webhook is not called")
		}
		return nil
	})
	return w
}

func (w *tabled) dryCreate() *unstructured.Unstructured {
	w.t.Helper()
	return w.DryCreate(workload(w.kind, "try", envFrom("configmap/c")))
}

func (w *tabled) image(tag string) *unstructured.Unstructured {
	w.t.Helper()
	patch := fmt.Sprintf(`{"template":{"spec":{"containers":[{"name":"app","image":"registry.example/app:%s","envFrom":%s}]}}}`, tag, envFromJSON)
	if w.kind == "CronJob" {
		patch = `{"jobTemplate":{"spec":` + patch + `}}`
	}
	return w.Patch(w.full, `{"spec":`+patch+`}`)
}

const envFromJSON = `[{"configMapRef":{"name":"c"}},{"secretRef":{"name":"s"}}]`

func TestWebhookTable(t *testing.T) {
	product := run.ExclusiveInGate(t)
	for _, controller := range product.Controllers {
		harness.Must(t, controller.Stop())
	}
	rows := map[string]func(*testing.T, string){
		"CREATE_StampsEveryReference":                               createStamps,
		"CREATE_StampsInTheManifestAreNotBelieved":                  createDisbelieves,
		"UPDATE_ChangedTemplateStampsWhatIsTrueNowAndDropsBaseline": changedStamps,
		"UPDATE_RecordingWritesBaselinesAndNeverTheTemplate":        recordingRecords,
		"UPDATE_RollingWhatIsTrueChangesNothingAtAll":               rollingTrue,
		"UPDATE_RollingWhatIsUntrueStampsEverything":                rollingUntrue,
		"UPDATE_RollingIsHeldWhileSomethingRequiredIsMissing":       rollingHeld,
		"UPDATE_RollingGivesAnUnrecordedReferenceABaseline":         rollingRecords,
		"UPDATE_AnythingElsePutsStampsAndBaselineBack":              otherwiseRestored,
		"UPDATE_OtherStampsOfOursAreAnsweredWithAWarning":           otherStamps,
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "CronJob"} {
		for name, row := range rows {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				row(t, kind)
			})
		}
	}
}

func createStamps(t *testing.T, kind string) {
	w := newTabled(t, kind, run.Space, "configmap/c", "secret/s", "configmap/later?")
	object := w.Get(w.full)
	w.wantStamps(object, "configmap/c", "secret/s", "configmap/later")
	w.wantBaseline(object)
}

func createDisbelieves(t *testing.T, kind string) {
	w := newTabled(t, kind, run.Space, "configmap/c", "secret/s")
	exported := workload(kind, "copy", envFrom("configmap/c", "secret/s"))
	exported = strings.Replace(exported, "metadata: {name: copy,", `metadata: {annotations: {configstamp.dev/baseline: '{"configmap/c":"v1:absent"}'}, name: copy,`, 1)
	exported = strings.Replace(exported, "metadata: {labels:", `metadata: {annotations: {configmap.configstamp.dev/c: "v1:00000000:all:00000000000000000000000000000000", secret.configstamp.dev/gone: made-up, kept: "1"}, labels:`, 1)
	object := w.Create(exported)[0]
	w.wantStamps(object, "configmap/c", "secret/s")
	w.wantBaseline(object)
	if harness.TemplateAnnotations(object)["kept"] != "1" {
		t.Error("an annotation of somebody else's is gone")
	}
	w.wantWarning("the configstamp annotations in this request are ignored")
}

func changedStamps(t *testing.T, kind string) {
	w := adopted(t, kind, "configmap/c", "secret/s")
	w.wantBaseline(w.Readmit(w.full, "configstamp-record"), "configmap/c", "secret/s")
	w.Set("configmap/c", "k", "2")
	object := w.image("2")
	w.wantStamps(object, "configmap/c", "secret/s")
	w.wantBaseline(object)
	w.Set("configmap/c", "k", "3")
	w.wantStamps(w.image("3"), "configmap/c", "secret/s")
}

func recordingRecords(t *testing.T, kind string) {
	w := adopted(t, kind, "configmap/c", "secret/s")
	template := harness.TemplateAnnotations(w.Get(w.full))
	object := w.Readmit(w.full, "configstamp-record")
	w.wantBaseline(object, "configmap/c", "secret/s")
	if now := harness.TemplateAnnotations(object); len(now) != len(template) {
		t.Errorf("annotations of the template went from %v to %v", template, now)
	}
	w.wantSame(object, w.Readmit(w.full, "configstamp-record")) // nothing is left to record
	// What has a record keeps it, true or not.
	w.Set("configmap/c", "k", "2")
	w.wantSame(object, w.Readmit(w.full, "configstamp-record"))
}

func rollingTrue(t *testing.T, kind string) {
	for _, w := range []*tabled{newTabled(t, kind, run.Space, "configmap/c", "secret/s"), adopted(t, kind, "configmap/c", "secret/s")} {
		w.Readmit(w.full, "configstamp-record")
		w.Set("configmap/c", "k", "1") // the same
		before := w.Get(w.full)
		after := w.Readmit(w.full, "configstamp")
		w.wantSame(before, after)
		if heard := w.Warnings(); len(heard) > 0 {
			t.Errorf("warnings: %q", heard)
		}
	}
}

func rollingUntrue(t *testing.T, kind string) {
	for _, w := range []*tabled{newTabled(t, kind, run.Space, "configmap/c", "secret/s"), adopted(t, kind, "configmap/c", "secret/s")} {
		w.Readmit(w.full, "configstamp-record")
		generation := w.Get(w.full).GetGeneration()
		w.Set("secret/s", "k", "2")
		object := w.Readmit(w.full, "configstamp")
		w.wantStamps(object, "configmap/c", "secret/s")
		w.wantBaseline(object)
		if object.GetGeneration() != generation+1 {
			t.Errorf("the generation went from %d to %d", generation, object.GetGeneration())
		}
	}
}

func rollingHeld(t *testing.T, kind string) {
	w := newTabled(t, kind, run.Space, "configmap/c", "secret/s")
	w.Delete("secret/s")
	w.Set("configmap/c", "k", "2")
	before := w.Get(w.full)
	w.wantSame(before, w.Readmit(w.full, "configstamp"))
	w.wantWarning("secret/s does not exist")
	w.Set("secret/s", "k", "1")
	object := w.Readmit(w.full, "configstamp")
	w.wantStamps(object, "configmap/c", "secret/s")
	if object.GetGeneration() != before.GetGeneration()+1 {
		t.Errorf("the generation went from %d to %d", before.GetGeneration(), object.GetGeneration())
	}
}

func rollingRecords(t *testing.T, kind string) {
	w := newTabled(t, kind, run.Space, "configmap/c", "secret/missing")
	before := w.Get(w.full)
	w.wantStamps(before, "configmap/c")
	w.Set("secret/missing", "k", "1")
	object := w.Readmit(w.full, "configstamp")
	w.wantStamps(object, "configmap/c")
	w.wantBaseline(object, "secret/missing")
}

func otherwiseRestored(t *testing.T, kind string) {
	w := newTabled(t, kind, run.Space, "configmap/c", "secret/missing")
	w.Set("secret/missing", "k", "1")
	w.wantBaseline(w.Readmit(w.full, "configstamp-record"), "secret/missing")
	w.Set("configmap/c", "k", "2") // untrue now, but nobody asked
	before := w.Get(w.full)

	w.wantKept(before, w.Patch(w.full, `{"metadata":{"labels":{"team":"a"},"annotations":{"note":"x"}}}`))
	put := w.Put(workload(kind, w.name, envFrom("configmap/c", "secret/missing"))) // without ours
	w.wantKept(before, put)
	without := `{"metadata":{"annotations":{"configstamp.dev/baseline":null}}}`
	w.wantKept(before, w.Patch(w.full, without))
	w.Warnings()
	if kind == "Deployment" || kind == "StatefulSet" {
		after := w.Patch(w.full, `{"spec":{"replicas":3}}`)
		if harness.Stamps(after)[harness.StampKey("configmap/c")] != harness.Stamps(before)[harness.StampKey("configmap/c")] {
			t.Error("a change of replicas changed a stamp")
		}
	}
}

func otherStamps(t *testing.T, kind string) {
	w := newTabled(t, kind, run.Space, "configmap/c", "secret/s")
	before := w.Get(w.full)
	patch := `{"template":{"metadata":{"annotations":{"configmap.configstamp.dev/c":"v1:absent"}}}}`
	if kind == "CronJob" {
		patch = `{"jobTemplate":{"spec":` + patch + `}}`
	}
	w.wantSame(before, w.Patch(w.full, `{"spec":`+patch+`}`))
	w.wantWarning("the content of a ConfigMap or Secret is not versioned")
}
