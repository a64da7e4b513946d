package rollouts

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/faults/judge"
	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/rollouts/timeline"
)

// source is what all of a fleet read, by envFrom.
const source = "configmap/setting"

// fleet is workloads, of two replicas mostly, that read one ConfigMap, each behind
// a Service of its own, in a namespace of their own. They are called as kubectl
// does: deployment/app-00.
type fleet struct {
	*faults.Trial
	// space knows events; t is that of the test that has the fleet.
	space *harness.Space
	t     *testing.T
	names []string
	ill   []string // of names: those that never run
	edits *int
	// began is the moment at which all of it served, and since that before the
	// last edit.
	began, since timeline.Since
	// heard is when the events begin that count now.
	heard time.Time
	// retold tells that events may be said more than once: a new leader does not
	// know what the old one has said.
	retold bool
	// steady is how long a rollout has to stay well, so how long a step takes at least.
	steady time.Duration
	// serves tells by its object whether one serves as well as it can.
	serves func(*unstructured.Unstructured) bool
}

// member is one workload of a fleet.
type member struct {
	// kind is Deployment when it is empty; spec is what decides how it rolls.
	kind, spec string
	// manner is the app's; see e2e/rollouts/app. One that it does not know never runs.
	manner string
	// probe adds a readiness probe.
	probe    bool
	minReady int
	order    string
	// grace is for how many seconds its Pods may end; 0: one.
	grace int
	// seat is a resource of which each of its Pods wants one (giveSeats).
	seat string
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
	f := &fleet{Trial: court.Trial(t), t: t, edits: new(int), steady: soak, serves: timeline.RolledOut}
	f.space = court.Run.Existing(t, f.Namespace)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.report())
		}
	})
	// Several edits within ten minutes are what these tests are made of, and most need no first soak.
	f.annotate("namespace/"+f.Namespace, "min-interval", "1ms")
	f.annotate("namespace/"+f.Namespace, "soak", soak.String())
	harness.Must(t, f.Set(source, content("good-0")))
	f.space.WaitServiceAccount()
	return f
}

// fill makes the workloads and waits until all of them serve that can.
func (f *fleet) fill(size int, like func(i int) member) {
	f.t.Helper()
	for i := range size {
		app, m := fmt.Sprintf("app-%02d", i), like(i)
		f.serve(app)
		f.steady = max(f.steady, time.Duration(m.minReady)*time.Second)
		object := m.manifest(f.t, app)
		harness.Must(f.t, f.Create(object))
		f.names = append(f.names, judge.Name(object))
		if m.manner == ill {
			f.ill = append(f.ill, judge.Name(object))
		}
	}
	f.wantServing()
	f.began = f.now()
	f.since = f.began
}

// keepFirstSoak has the first soak count. It is called before fill.
func (f *fleet) keepFirstSoak() {
	f.t.Helper()
	f.annotate("namespace/"+f.Namespace, "soak", "")
}

// annotate writes one of configstamp's settings on an object; "" removes it.
func (f *fleet) annotate(name, setting, value string) {
	f.t.Helper()
	text := "null"
	if value != "" {
		text = strconv.Quote(value)
	}
	harness.Must(f.t, f.Patch(name, fmt.Sprintf(`{"metadata":{"annotations":{"configstamp.dev/%s":%s}}}`, setting, text)))
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

// content is what the source holds: a word that the app looks at.
func content(word string) map[string]string {
	return map[string]string{"SETTING": judge.Marker + "-" + word}
}

// kinds are the specs of workloads that can roll without an outage.
var kinds = map[string]string{
	"Deployment":  "replicas: 2",
	"StatefulSet": "replicas: 2, serviceName: none",
	"DaemonSet":   "updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
}

func (m member) manifest(t *testing.T, app string) *unstructured.Unstructured {
	t.Helper()
	probe, annotations, resources, spec := "", "", "", m.spec
	if m.kind == "" {
		m.kind = "Deployment"
	}
	if spec == "" {
		spec = kinds[m.kind]
	}
	if m.minReady > 0 {
		spec += fmt.Sprintf(", minReadySeconds: %d", m.minReady)
	}
	if m.probe {
		// A busy machine that answers late is no outage.
		probe = "readinessProbe: {httpGet: {path: /, port: 3000}, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 20}"
	}
	if m.order != "" {
		annotations = fmt.Sprintf("configstamp.dev/order: %q", m.order)
	}
	if m.seat != "" {
		resources = fmt.Sprintf("resources: {limits: {%s: \"1\"}},", m.seat)
	}
	text := fmt.Sprintf(`
apiVersion: apps/v1
kind: %[6]s
metadata: {name: %[1]s, annotations: {%[4]s}}
spec: {%[7]s, selector: {matchLabels: {app: %[1]s}}, template: {
  metadata: {labels: {app: %[1]s}},
  spec: {
    terminationGracePeriodSeconds: %[8]d,
    automountServiceAccountToken: false,
    containers: [{
      name: app, image: %[5]s, imagePullPolicy: Never, args: [%[2]s],
      envFrom: [{configMapRef: {name: setting}}],
      %[9]s
      %[3]s
    }]
  }
}}
`, app, m.manner, probe, annotations, appImage, m.kind, spec, max(1, m.grace), resources)
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
	*f.edits++
	f.since, f.heard = f.now(), time.Now()
	harness.Must(f.t, f.Set(source, content(fmt.Sprintf("%s-%d", word, *f.edits))))
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
