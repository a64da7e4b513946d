package rollouts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/faults/judge"
	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/rollouts/timeline"
)

// source is what all Deployments of a fleet read, by envFrom.
const source = "configmap/setting"

// fleet is Deployments of two replicas that read one ConfigMap, each behind a
// Service of its own, in a namespace of their own.
type fleet struct {
	*faults.Trial
	// space knows events; t is that of the test that has the fleet.
	space *harness.Space
	t     *testing.T
	names []string
	ill   []string // of names: those that never run
	edits int
	// began is the moment at which all of it served, and since that before the
	// last edit.
	began, since timeline.Since
	// heard is when the events begin that count now.
	heard time.Time
	// retold tells that events may be said more than once: a new leader does not
	// know what the old one has said.
	retold bool
}

// member is one Deployment of a fleet.
type member struct {
	// manner is the app's; see e2e/rollouts/app. One that it does not know never runs.
	manner string
	// probe adds a readiness probe.
	probe    bool
	minReady int
	order    string
}

// ill is the manner of an app that never runs.
const ill = "ill"

// strict is an app as it should be.
func strict(int) member { return member{manner: "strict", probe: true} }

// newFleet makes a fleet and waits until all of it serves.
func newFleet(t *testing.T, size int, like func(i int) member) *fleet {
	t.Helper()
	f := openFleet(t)
	f.fill(size, like)
	return f
}

// openFleet makes a fleet of nothing yet.
func openFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{Trial: court.Trial(t), t: t}
	f.space = court.Run.Existing(t, f.Namespace)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.report())
		}
	})
	// Several edits within ten minutes are what these tests are made of.
	harness.Must(t, f.Patch("namespace/"+f.Namespace, `{"metadata":{"annotations":{"configstamp.dev/min-interval":"1ms"}}}`))
	harness.Must(t, f.Set(source, content("good-0")))
	f.space.WaitServiceAccount()
	return f
}

// fill makes the Deployments and waits until all of them serve that can.
func (f *fleet) fill(size int, like func(i int) member) {
	f.t.Helper()
	for i := range size {
		name, m := fmt.Sprintf("app-%02d", i), like(i)
		f.names = append(f.names, name)
		if m.manner == ill {
			f.ill = append(f.ill, name)
		}
		f.serve(name)
		harness.Must(f.t, f.Create(deployment(f.t, name, m)))
	}
	f.wantServing()
	f.began = f.now()
	f.since = f.began
}

// in gives the same fleet to a subtest.
func (f *fleet) in(t *testing.T) *fleet {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.report())
		}
	})
	same := *f
	same.t, same.space = t, f.space.In(t)
	return &same
}

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// content is what the source holds: a word that the app looks at.
func content(word string) map[string]string {
	return map[string]string{"SETTING": judge.Marker + "-" + word}
}

func deployment(t *testing.T, name string, m member) *unstructured.Unstructured {
	t.Helper()
	probe, annotations := "", ""
	if m.probe {
		probe = "readinessProbe: {httpGet: {path: /, port: 3000}, periodSeconds: 1}"
	}
	if m.order != "" {
		annotations = fmt.Sprintf("configstamp.dev/order: %q", m.order)
	}
	text := fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, annotations: {%[5]s}}
spec:
  replicas: 2
  minReadySeconds: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      automountServiceAccountToken: false
      containers:
      - name: app
        image: %[6]s
        imagePullPolicy: Never
        args: [%[2]s]
        envFrom: [{configMapRef: {name: setting}}]
        %[4]s
`, name, m.manner, m.minReady, probe, annotations, appImage)
	object := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSON([]byte(text))
	harness.Must(t, err)
	harness.Must(t, object.UnmarshalJSON(encoded))
	return object
}

// serve makes a Service for the Pods of an app.
func (f *fleet) serve(app string) {
	f.t.Helper()
	_, err := court.Run.Client.CoreV1().Services(f.Namespace).Create(f.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 3000}}},
	}, metav1.CreateOptions{})
	harness.Must(f.t, err)
}

// edit gives the source new content. The app does not like what "bad" is in.
// Who is touched, and how it rolls, is judged from then on.
func (f *fleet) edit(word string) {
	f.t.Helper()
	f.edits++
	f.since, f.heard = f.now(), time.Now()
	harness.Must(f.t, f.Set(source, content(fmt.Sprintf("%s-%d", word, f.edits))))
}

// takeBack undoes edits. It is judged together with the last of them.
func (f *fleet) takeBack() {
	f.t.Helper()
	f.heard = time.Now()
	harness.Must(f.t, f.Set(source, content("good-0")))
}

// now is the present moment.
func (f *fleet) now() timeline.Since {
	f.t.Helper()
	list, err := court.Run.Client.CoreV1().ConfigMaps(f.Namespace).List(context.Background(), metav1.ListOptions{})
	harness.Must(f.t, err)
	var version int64
	_, err = fmt.Sscan(list.ResourceVersion, &version)
	harness.Must(f.t, err)
	return timeline.Since(version)
}

// seen is all that was seen of the namespace so far.
func (f *fleet) seen() timeline.Events {
	f.t.Helper()
	events, _, err := court.Witness.Events(f.Namespace)
	harness.Must(f.t, err)
	return events
}

// patience is how long something may take that needs many Pods.
const patience = 2 * time.Minute

// wantServing waits until every Deployment is rolled out.
func (f *fleet) wantServing() {
	f.t.Helper()
	f.space.EventuallyIn(patience, "waiting for the fleet to be rolled out", func() error {
		list, err := court.Run.Dynamic.Resource(deployments).Namespace(f.Namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			list.Items[i].SetKind("Deployment")
			if !timeline.RolledOut(&list.Items[i]) && !slices.Contains(f.ill, list.Items[i].GetName()) {
				return fmt.Errorf("%s is not: %v", list.Items[i].GetName(), list.Items[i].Object["status"])
			}
		}
		return nil
	})
	harness.Must(f.t, court.Witness.CatchUp(f.t.Context(), f.Namespace))
}

// touched are the workloads that are not as they were before the last edit.
func (f *fleet) touched() map[string][]string { return f.seen().Touched(f.since) }

// wantHalt waits until the change halts because one more Deployment than those
// that failed already has, and checks that this is all that happened since the
// last edit, and all that happens. It returns the one that failed.
func (f *fleet) wantHalt(already ...string) string {
	f.t.Helper()
	failed := f.wantFailed(already...)
	f.wantEvents(failed, already...)
	f.wantStill(append(slices.Clone(already), failed)...)
	return failed
}

// wantFailed waits until a Deployment has failed, and no other is touched.
func (f *fleet) wantFailed(already ...string) string {
	f.t.Helper()
	failed := ""
	f.space.EventuallyIn(patience, "waiting for a rollout that fails", func() error {
		touched := f.touched()
		if len(touched) > len(already)+1 {
			f.t.Fatalf("the bad edit reached %d Deployments, want %d:\n%s", len(touched), len(already)+1, listing(touched))
		}
		for name := range touched {
			if name = f.app(name); !slices.Contains(already, name) {
				failed = name
			}
		}
		if failed == "" {
			return fmt.Errorf("none rolls")
		}
		return f.says("deployment/"+failed, "RolloutFailed", "")
	})
	return failed
}

// app is the name of a Deployment, of its name in the whole cluster.
func (f *fleet) app(workload string) string {
	return strings.TrimPrefix(workload, f.Namespace+"/deployment/")
}

// wantEvents checks what people are told when a rollout failed.
func (f *fleet) wantEvents(failed string, already ...string) {
	f.t.Helper()
	f.wantSaid(source, "ChangeHalted", failed)
	f.wantSaid("deployment/"+failed, "RolloutFailed", "")
	for _, name := range f.names {
		if name != failed && !slices.Contains(already, name) {
			f.wantSaid("deployment/"+name, "RolloutHalted", failed)
		}
	}
}

// wantSaid waits for an event that names something, and checks that it is said
// once.
func (f *fleet) wantSaid(about, reason, naming string) {
	f.t.Helper()
	f.space.Eventually("waiting for an event", func() error { return f.says(about, reason, naming) })
	if times := f.times(about, reason); times != 1 && !f.retold {
		f.t.Errorf("%s was said %d times about %s, want once:\n%s", reason, times, about, strings.Join(f.space.Notes(about), "\n"))
	}
}

// wantUnsaid checks that an event was not said.
func (f *fleet) wantUnsaid(about, reason string) {
	f.t.Helper()
	if times := f.times(about, reason); times > 0 {
		f.t.Errorf("%s was said %d times about %s:\n%s", reason, times, about, strings.Join(f.space.Notes(about), "\n"))
	}
}

// says reports whether there is an event that counts and names something.
func (f *fleet) says(about, reason, naming string) error {
	for _, event := range f.events(about, reason) {
		if strings.Contains(event.Note, naming) {
			return nil
		}
	}
	return fmt.Errorf("no event %s about %s that names %q since %s; there are:\n%s", reason, about, naming,
		f.heard.Format(time.TimeOnly), strings.Join(f.space.Notes(about), "\n"))
}

// times is how often a reason was given, counted up or not.
func (f *fleet) times(about, reason string) int {
	times := 0
	for _, event := range f.events(about, reason) {
		times++
		if event.Series != nil {
			times += int(event.Series.Count) - 1
		}
	}
	return times
}

func (f *fleet) events(about, reason string) []eventsv1.Event {
	return slices.DeleteFunc(f.space.Events(about), func(event eventsv1.Event) bool {
		last := event.EventTime
		if event.Series != nil {
			last = event.Series.LastObservedTime
		}
		return event.Reason != reason || last.Time.Before(f.heard)
	})
}

// wantStill checks that nothing happens for longer than the next step would take,
// and that, since the last edit, nothing but some Deployments was touched.
func (f *fleet) wantStill(but ...string) {
	f.t.Helper()
	time.Sleep(settle + soak + time.Second)
	f.wantUntouched(but...)
}

func (f *fleet) wantUntouched(but ...string) {
	f.t.Helper()
	harness.Must(f.t, court.Witness.CatchUp(f.t.Context(), f.Namespace))
	touched := f.touched()
	maps.DeleteFunc(touched, func(name string, _ []string) bool { return slices.Contains(but, f.app(name)) })
	if len(touched) > 0 {
		f.t.Fatalf("%d Deployments were touched beside %v:\n%s", len(touched), but, listing(touched))
	}
}

// wantCrashing checks that a Deployment has Pods of the last edit, and that they
// crash.
func (f *fleet) wantCrashing(name string) {
	f.t.Helper()
	if pods, ok := f.seen().Crashed(f.since, f.Namespace+"/deployment/"+name); !ok {
		f.t.Errorf("the new Pods of %s, %v, do not all crash", name, pods)
	}
}

// wantServed checks that every Service has had a ready endpoint at every moment
// since before the first edit, but for those of some apps.
func (f *fleet) wantServed(but ...string) {
	f.t.Helper()
	harness.Must(f.t, court.Witness.CatchUp(f.t.Context(), f.Namespace))
	var services []string
	for _, name := range f.names {
		if !slices.Contains(but, name) && !slices.Contains(f.ill, name) {
			services = append(services, f.Namespace+"/"+name)
		}
	}
	for _, span := range f.seen().Unserved(f.began, services...) {
		f.t.Errorf("no ready endpoint: %s", span)
	}
}

// slack is what the times of two watches may differ by, on a busy machine.
const slack = 700 * time.Millisecond

// wantRolledOut waits until the last edit has reached every Deployment, and checks
// that it did so once, and in growing steps, and that people were told.
func (f *fleet) wantRolledOut() {
	f.t.Helper()
	f.space.EventuallyIn(patience, "waiting for every Deployment to roll", func() error {
		if times := f.seen().Rolls(f.since, soak).Times(); len(times) < len(f.names) {
			return fmt.Errorf("%d of %d have", len(times), len(f.names))
		}
		return nil
	})
	f.wantServing()
	f.wantSaid(source, "ChangeRolledOut", "")
	f.wantSteps()
}

// wantSteps checks that the rollouts since the last edit came in growing steps,
// and reached every Deployment once.
func (f *fleet) wantSteps() {
	f.t.Helper()
	harness.Must(f.t, court.Witness.CatchUp(f.t.Context(), f.Namespace))
	rolls := f.seen().Rolls(f.since, soak-slack)
	times := rolls.Times()
	for _, name := range f.names {
		if times[f.Namespace+"/deployment/"+name] != 1 {
			f.t.Errorf("%s rolled %d times, want once", name, times[f.Namespace+"/deployment/"+name])
		}
	}
	for _, text := range rolls.TooEarly(soak - slack) {
		f.t.Errorf("too early: %s", text)
	}
	most := rolls.MostAtOnce(0)
	f.t.Logf("%d rollouts in %.0fs, at most %d not rolled out at once, %d not healthy", len(rolls),
		rolls[len(rolls)-1].Begun.Sub(rolls[0].Begun).Seconds(), len(most), len(rolls.MostAtOnce(soak-slack)))
	if len(most) > maxUnsettled-1 {
		f.t.Errorf("%d at once:\n%s", len(most), most)
	}
	if f.t.Failed() {
		f.t.Logf("all rollouts:\n%s", rolls)
	}
}

// wantTruth is the judge's verdict on the whole history (I1 to I6): it must be
// true at its end.
func (f *fleet) wantTruth() {
	f.t.Helper()
	untrue, err := f.Converge(f.t.Context(), patience)
	harness.Must(f.t, err)
	found, err := f.Verdict(f.t.Context())
	harness.Must(f.t, err)
	for _, violation := range append(untrue, found...) {
		f.t.Error(violation)
	}
}

func listing(touched map[string][]string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(touched)) {
		lines = append(lines, name+": "+strings.Join(touched[name], "; "))
	}
	return strings.Join(lines, "\n")
}

// report is what a person wants to see of a failure.
func (f *fleet) report() string {
	var text strings.Builder
	fmt.Fprintf(&text, "rollouts since the last edit:\n%s\n", f.seen().Rolls(f.since, soak))
	for _, about := range append([]string{source}, f.names...) {
		if !strings.Contains(about, "/") {
			about = "deployment/" + about
		}
		for _, note := range f.space.Notes(about) {
			fmt.Fprintf(&text, "event about %s: %s\n", about, note)
		}
	}
	text.WriteString(court.Run.Product.Logs(40, f.Namespace, `"level":"ERROR"`, "Leading"))
	return text.String()
}
