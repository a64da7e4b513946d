package neighbours

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Argo Rollouts: its controller, and its plugin, which promotes, aborts and undoes as people do.

const argoRollouts neighbour = "rollouts"

const (
	rolloutsController = "github.com/argoproj/argo-rollouts/cmd/rollouts-controller"
	rolloutsPlugin     = "github.com/argoproj/argo-rollouts/cmd/kubectl-argo-rollouts"
)

// canaries is Argo Rollouts that runs.
type canaries struct {
	plugin string // the path
	log    *program

	mu   sync.Mutex
	went map[string][]string // namespace/name of a Rollout: its phases with their steps, such as "Paused 1"
}

func startRollouts(t *testing.T) *canaries {
	t.Helper()
	a := &canaries{plugin: argoRollouts.build(t, rolloutsPlugin), went: map[string][]string{}}
	definitions, err := filepath.Glob(filepath.Join(argoRollouts.files(t, "github.com/argoproj/argo-rollouts"), "manifests", "crds", "*-crd.yaml"))
	harness.Must(t, err)
	if len(definitions) < 5 {
		t.Fatalf("its module has definitions %v", definitions)
	}
	install(t, definitions...)
	harness.Must(t, run.Recorder.Follow(t.Context(), run.Dynamic, "rollout"))
	rollouts := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	informer := dynamicinformer.NewDynamicSharedInformerFactory(run.Dynamic, 0).ForResource(rollouts).Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: a.see, UpdateFunc: func(_, now any) { a.see(now) }})
	harness.Must(t, err)
	go informer.RunWithContext(t.Context())
	a.log = argoRollouts.start(t, rolloutsController, nil, "--leader-elect=false", "--metricsPort=0", "--healthzPort=0")
	a.log.wait(t, "Started rollout workers")
	return a
}

func (a *canaries) see(found any) {
	o, ok := found.(*unstructured.Unstructured)
	if !ok {
		return
	}
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	step, _, _ := unstructured.NestedInt64(o.Object, "status", "currentStepIndex")
	at, now := o.GetNamespace()+"/"+o.GetName(), fmt.Sprintf("%s %d", phase, step)
	a.mu.Lock()
	defer a.mu.Unlock()
	if all := a.went[at]; phase != "" && (len(all) == 0 || all[len(all)-1] != now) {
		a.went[at] = append(all, now)
	}
}

// story is what a Rollout went through so far.
func (a *canaries) story(namespace, name string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.went[namespace+"/"+name])
}

// team is some workloads in a namespace of their own, that use common sources.
type team struct {
	*harness.Space
	t       *testing.T
	argo    *canaries
	members []member
	began   time.Time
}

// member is a workload: a Deployment, or, with a strategy, a Rollout.
type member struct {
	name, strategy string
	manner         string // the app's; lenient when it is empty
	order          string
	// byRef: the template is that of a Deployment of the same name, which Argo scales to zero.
	byRef   bool
	uses    []string // sources; all of them if it is nil
	noProbe bool
}

func (m member) kind() string {
	if m.strategy == "" {
		return "deployment"
	}
	return "rollout"
}

// workload is what rolls, and holder what has the template.
func (m member) workload() string { return m.kind() + "/" + m.name }

func (m member) holder() string {
	if m.byRef {
		return "deployment/" + m.name
	}
	return m.workload()
}

// The strategies of Rollouts.
const (
	stepped     = "canary: {maxSurge: 1, maxUnavailable: 0, steps: [{setWeight: 50}, {pause: {duration: 3s}}]}"
	stepless    = "canary: {maxSurge: 1, maxUnavailable: 0}"
	byHand      = "canary: {maxSurge: 1, maxUnavailable: 0, steps: [{setWeight: 50}, {pause: {}}]}"
	analysed    = "canary: {maxSurge: 1, maxUnavailable: 0, steps: [{setWeight: 50}, {analysis: {templates: [{templateName: quality}]}}]}"
	blueGreen   = "blueGreen: {activeService: %[1]s-active, previewService: %[1]s-preview, scaleDownDelaySeconds: 1, abortScaleDownDelaySeconds: 1, autoPromotionEnabled: true}"
	blueByHand  = "blueGreen: {activeService: %[1]s-active, previewService: %[1]s-preview, scaleDownDelaySeconds: 1, abortScaleDownDelaySeconds: 1, autoPromotionEnabled: false}"
	setting     = "configmap/setting"
	everySource = "configmap/setting configmap/extra secret/token"
)

func (m member) sources() []string {
	if m.uses != nil {
		return m.uses
	}
	return []string{setting}
}

func (m member) manifest() string {
	manner, annotations, probe := m.manner, "", "readinessProbe: {httpGet: {path: /, port: 3000}, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 20}"
	if manner == "" {
		manner = "lenient"
	}
	if m.order != "" {
		annotations = fmt.Sprintf("configstamp.dev/order: %q", m.order)
	}
	if m.noProbe {
		probe = ""
	}
	var from []string
	for _, source := range m.sources() {
		kind, name, _ := strings.Cut(source, "/")
		from = append(from, fmt.Sprintf("{%sRef: {name: %s}}", map[string]string{"configmap": "configMap", "secret": "secret"}[kind], name))
	}
	template := fmt.Sprintf(`selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {
  terminationGracePeriodSeconds: 1, automountServiceAccountToken: false,
  containers: [{name: app, image: %[2]s, imagePullPolicy: Never, args: [%[3]s], envFrom: [%[4]s], %[5]s}]}}`,
		m.name, app, manner, strings.Join(from, ", "), probe)
	deployment := fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s, annotations: {%s}}\nspec: {replicas: 2, %s}\n", m.name, annotations, template)
	if m.kind() == "deployment" {
		return deployment
	}
	strategy := m.strategy
	if strings.Contains(strategy, "%[1]s") {
		strategy = fmt.Sprintf(strategy, m.name)
	}
	rollout := fmt.Sprintf("apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: %s, annotations: {%s}}\nspec: {replicas: 2, strategy: {%s}, ", m.name, annotations, strategy)
	if m.byRef {
		return deployment + "---\n" + rollout + fmt.Sprintf("workloadRef: {apiVersion: apps/v1, kind: Deployment, name: %s, scaleDown: onsuccess}}\n", m.name)
	}
	return rollout + template + "}\n"
}

// newTeam makes workloads and waits until all of them serve.
func (a *canaries) newTeam(t *testing.T, members ...member) *team {
	t.Helper()
	f := &team{Space: run.Space(t), t: t, argo: a, members: members}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.report())
		}
	})
	f.WaitServiceAccount()
	f.SetPolicy("namespace", map[string]string{"min-interval": "1ms"}) // several edits within ten minutes are what this is about
	for source := range strings.FieldsSeq(everySource) {
		f.edit(source, "good")
	}
	for _, m := range members {
		if strings.Contains(m.strategy, "blueGreen") {
			f.service(m.name + "-active")
			f.service(m.name + "-preview")
		}
		f.Apply(m.manifest())
	}
	f.began = time.Now()
	f.settled()
	return f
}

func (f *team) service(name string) {
	f.t.Helper()
	app, _, _ := strings.Cut(name, "-")
	_, err := run.Client.CoreV1().Services(f.Namespace).Create(f.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 3000}}},
	}, metav1.CreateOptions{})
	harness.Must(f.t, err)
}

// edits are those of all teams: with equal contents, the ConfigMaps of two of them would be copies of each other, and roll
// and halt as one change.
var edits atomic.Int64

// edit gives a source content that nothing ever had.
func (f *team) edit(source, word string) string {
	f.t.Helper()
	_, name, _ := strings.Cut(source, "/")
	value := fmt.Sprintf("%s-%d", word, edits.Add(1))
	f.Set(source, strings.ToUpper(name), value)
	return value
}

// people run the plugin of Argo Rollouts.
func (f *team) people(args ...string) {
	f.t.Helper()
	if out, err := f.plugin(args...); err != nil {
		f.t.Fatalf("kubectl argo rollouts %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (f *team) plugin(args ...string) (string, error) {
	args = append([]string{"--kubeconfig=" + run.Kubeconfig(), "--namespace=" + f.Namespace}, args...)
	out, err := exec.CommandContext(f.t.Context(), f.argo.plugin, args...).CombinedOutput()
	return string(out), err
}

// phase is what a Rollout's controller says of it as it is now.
func (f *team) phase(name string) string {
	f.t.Helper()
	o := f.Get("rollout/" + name)
	observed, _, _ := unstructured.NestedString(o.Object, "status", "observedGeneration")
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	if observed != fmt.Sprint(o.GetGeneration()) {
		return "unobserved"
	}
	return phase
}

// becomes waits until a Rollout's controller says a word of it. For a moment it says Paused of a new generation that
// it has not begun with: who promotes then promotes the revision before, and the new one stands at its own pause.
func (f *team) becomes(name, phase string) {
	f.t.Helper()
	f.EventuallyIn(3*time.Minute, "waiting until "+name+" is "+phase, func() error {
		if is := f.phase(name); is != phase {
			return fmt.Errorf("it is %s", is)
		}
		if phase == "Paused" && !f.begun(f.member(name)) {
			return fmt.Errorf("it is %s, and no pod of its newest revision is ready", phase)
		}
		return nil
	})
}

// begun tells that a pod with the stamps of a member's template is ready.
func (f *team) begun(m member) bool {
	f.t.Helper()
	key := harness.StampKey(m.sources()[0])
	stamp := f.Stamp(m.holder(), m.sources()[0])
	return slices.ContainsFunc(f.list(m.name), func(pod corev1.Pod) bool { return pod.Annotations[key] == stamp && isReady(&pod) })
}

func (f *team) member(name string) member {
	return f.members[slices.IndexFunc(f.members, func(m member) bool { return m.name == name })]
}

// well tells why a workload is not at its newest revision with all its pods.
func (f *team) well(m member) error {
	if m.kind() == "rollout" {
		if phase := f.phase(m.name); phase != "Healthy" {
			return fmt.Errorf("%s is %s", m.name, phase)
		}
		return nil
	}
	d, err := run.Client.AppsV1().Deployments(f.Namespace).Get(context.Background(), m.name, metav1.GetOptions{})
	if err == nil && (d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != 2 || d.Status.AvailableReplicas != 2 || d.Status.Replicas != 2) {
		err = fmt.Errorf("%s has %d replicas, %d new ones, %d available ones", m.name, d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
	}
	return err
}

// untrue tells what is not as the sources are now: stamps of the templates, and of every pod that runs.
func (f *team) untrue(m member) error {
	for _, source := range m.sources() {
		want := f.Digest(source)
		if is := f.Stamp(m.holder(), source); is != want {
			return fmt.Errorf("%s carries %q of %s, want %q", m.holder(), is, source, want)
		}
		pods := f.list(m.name)
		if len(pods) != 2 {
			return fmt.Errorf("%s has %d pods", m.name, len(pods))
		}
		for i := range pods {
			if is := pods[i].Annotations[harness.StampKey(source)]; is != want {
				return fmt.Errorf("pod %s carries %q of %s, want %q", pods[i].Name, is, source, want)
			}
		}
	}
	return nil
}

// settled waits until workloads, or all, are at their newest revision and true.
func (f *team) settled(names ...string) {
	f.t.Helper()
	f.EventuallyIn(5*time.Minute, "waiting until all is rolled out", func() error {
		for _, m := range f.members {
			if len(names) > 0 && !slices.Contains(names, m.name) {
				continue
			}
			if err := f.well(m); err != nil {
				return err
			}
			if err := f.untrue(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// rolled checks how often each workload's template was changed since, and that a revision was made for each time; what
// is not named has not rolled. It waits for what might come.
func (f *team) rolled(before harness.Counts, want harness.Rolls) {
	f.t.Helper()
	f.Quiet()
	now := f.Counts()
	for _, m := range f.members {
		done, made := now[m.holder()].Rolls-before[m.holder()].Rolls, now[m.workload()].Revisions-before[m.workload()].Revisions
		if done != want[m.name] || made != want[m.name] {
			f.t.Errorf("%s has rolled %d times with %d new revisions, want %d", m.name, done, made, want[m.name])
		}
	}
}

// onceEach is that each of some workloads rolls once.
func onceEach(names ...string) harness.Rolls {
	rolls := harness.Rolls{}
	for _, name := range names {
		rolls[name] = 1
	}
	return rolls
}

// still has nothing roll for longer than it takes the next workload to begin.
func (f *team) still() {
	f.t.Helper()
	before := f.Counts()
	time.Sleep(soak + 3*time.Second)
	if now := f.Counts(); fmt.Sprint(now) != fmt.Sprint(before) {
		f.t.Errorf("something rolls that is to wait: %v, then %v", before, now)
	}
}

// ready is how many pods of an app are ready, and pods are the names of all.
func (f *team) ready(name string) (n int) {
	f.t.Helper()
	for _, pod := range f.list(name) {
		if isReady(&pod) {
			n++
		}
	}
	return n
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (f *team) pods(name string) (names []string) {
	f.t.Helper()
	for _, pod := range f.list(name) {
		names = append(names, pod.Name)
	}
	return names
}

func (f *team) list(name string) []corev1.Pod {
	f.t.Helper()
	pods, err := run.Client.CoreV1().Pods(f.Namespace).List(context.Background(), metav1.ListOptions{LabelSelector: "app=" + name})
	harness.Must(f.t, err)
	return pods.Items
}

// selected is which revision a Service sends to.
func (f *team) selected(service string) string {
	f.t.Helper()
	s, err := run.Client.CoreV1().Services(f.Namespace).Get(context.Background(), service, metav1.GetOptions{})
	harness.Must(f.t, err)
	return s.Spec.Selector["rollouts-pod-template-hash"]
}

func (f *team) report() string {
	var text strings.Builder
	for _, m := range f.members {
		fmt.Fprintf(&text, "%s: %s\n", m.workload(), strings.Join(f.argo.story(f.Namespace, m.name), ", "))
		for _, name := range slices.Compact([]string{m.holder(), m.workload()}) {
			fmt.Fprintf(&text, "  %s %v\n", name, f.Counts()[name])
			for _, note := range f.Notes(name) {
				fmt.Fprintln(&text, "  event:", note)
			}
		}
	}
	for source := range strings.FieldsSeq(everySource) {
		for _, note := range f.Notes(source) {
			fmt.Fprintln(&text, source, "event:", note)
		}
	}
	log, err := os.ReadFile(f.argo.log.log)
	if err != nil {
		return text.String()
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, f.Namespace) && strings.Contains(line, "level=error") {
			text.WriteString(line)
		}
	}
	return text.String()
}
