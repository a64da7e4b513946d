package neighbours

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/podtruth/process"
)

// reader is a Deployment of the app that reads one key of one source, as SETTING.
type reader struct {
	space  *harness.Space
	name   string
	source string // configmap/bundle
	key    string
	// replicas are real containers; with none the template is all that there is.
	replicas int
	manner   string // of the app
}

func (r reader) workload() string { return "deployment/" + r.name }

func (r reader) String() string { return r.space.Namespace + "/" + r.name }

func (r reader) create() {
	kind, name, _ := strings.Cut(r.source, "/")
	r.space.Create(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      automountServiceAccountToken: false
      containers:
      - name: app
        image: %[3]s
        imagePullPolicy: Never
        args: [%[4]s]
        env: [{name: SETTING, valueFrom: {%[5]s: {name: %[6]s, key: %[7]s}}}]
        readinessProbe: {httpGet: {path: /, port: 3000}, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 20}
`, r.name, r.replicas, app, r.manner, map[string]string{"configmap": "configMapKeyRef", "secret": "secretKeyRef"}[kind], name, r.key))
}

// readers are those of a test. All may roll as often as they are to.
type readers []reader

// real are those that have containers.
func (all readers) real() readers {
	return slices.DeleteFunc(slices.Clone(all), func(r reader) bool { return r.replicas == 0 })
}

func (all readers) counts() map[string]harness.Count {
	counts, spaces := map[string]harness.Count{}, map[string]harness.Counts{}
	for _, r := range all {
		if spaces[r.space.Namespace] == nil {
			spaces[r.space.Namespace] = r.space.Counts()
		}
		counts[r.String()] = spaces[r.space.Namespace][r.workload()]
	}
	return counts
}

// rolled are those that have rolled since.
func (all readers) rolled(since map[string]harness.Count) readers {
	now := all.counts()
	return slices.DeleteFunc(slices.Clone(all), func(r reader) bool { return now[r.String()].Rolls == since[r.String()].Rolls })
}

// wantRolled waits until each has rolled as often as it is to since before, and checks then, and a
// while later, that none has rolled more often, and that each rollout made a revision.
func (all readers) wantRolled(t *testing.T, before map[string]harness.Count, bound time.Duration, times func(reader) int) {
	t.Helper()
	eventually(t, "waiting for rollouts", bound, func() error {
		now, late := all.counts(), []string{}
		for _, r := range all {
			was, is := before[r.String()], now[r.String()]
			if is.Rolls-was.Rolls < times(r) || is.Revisions-was.Revisions < times(r) {
				late = append(late, r.String())
			}
		}
		if len(late) > 0 {
			return fmt.Errorf("%d of %d have not rolled, such as %v", len(late), len(all), late[:min(5, len(late))])
		}
		return nil
	})
	time.Sleep(settle + 3*time.Second) // in which a second one would come
	now := all.counts()
	for _, r := range all {
		was, is := before[r.String()], now[r.String()]
		if is.Rolls-was.Rolls != times(r) || is.Revisions-was.Revisions != times(r) {
			t.Errorf("%s rolled %d times with %d new revisions, want %d", r, is.Rolls-was.Rolls, is.Revisions-was.Revisions, times(r))
		}
	}
}

// once is what wantRolled wants of each.
func once(reader) int { return 1 }

// wantStill checks that for some time none is written to by anybody, its status aside.
func (all readers) wantStill(t *testing.T, while time.Duration) {
	t.Helper()
	before := all.counts()
	time.Sleep(while)
	for name, now := range all.counts() {
		if now != before[name] {
			t.Errorf("%s was touched while nothing should happen: %+v, then %+v", name, before[name], now)
		}
	}
}

// wantServing waits until the containers of all run with the newest template.
func (all readers) wantServing(t *testing.T, bound time.Duration) {
	t.Helper()
	eventually(t, "waiting until all serve", bound, func() error {
		for _, r := range all.real() {
			d, err := run.Client.AppsV1().Deployments(r.space.Namespace).Get(t.Context(), r.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			n := int32(r.replicas) // #nosec G115 -- a few
			if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas != n || s.AvailableReplicas != n || s.Replicas != n {
				return fmt.Errorf("%s: %+v", r, s)
			}
		}
		return nil
	})
}

// wantServed checks that of each the old containers, or new ones, serve.
func (all readers) wantServed(t *testing.T) {
	t.Helper()
	for _, r := range all.real() {
		d, err := run.Client.AppsV1().Deployments(r.space.Namespace).Get(t.Context(), r.name, metav1.GetOptions{})
		harness.Must(t, err)
		if int(d.Status.AvailableReplicas) < r.replicas {
			t.Errorf("%s has %d available replicas of %d", r, d.Status.AvailableReplicas, r.replicas)
		}
	}
}

// wantTruth checks that the stamps of all are those of what the sources hold now, by the harness's
// own arithmetic.
func (all readers) wantTruth(t *testing.T) {
	t.Helper()
	keys, err := run.Keys()
	harness.Must(t, err)
	for _, r := range all {
		if stamp, want := r.stamp(t), r.digest(t, keys[0].Material); stamp != want {
			t.Errorf("%s has the stamp %q, want %q", r, stamp, want)
		}
	}
}

// wantInTheEnd waits until the stamps of all are true.
func (all readers) wantInTheEnd(t *testing.T, bound time.Duration) {
	t.Helper()
	keys, err := run.Keys()
	harness.Must(t, err)
	for _, r := range all {
		eventually(t, "waiting for the stamp of "+r.String(), bound, func() error {
			if stamp, want := r.stamp(t), r.digest(t, keys[0].Material); stamp != want {
				return fmt.Errorf("it is %q, want %q", stamp, want)
			}
			return nil
		})
	}
	time.Sleep(settle + 3*time.Second) // in which more would come
}

// wantRead waits until the one pod of a reader has read what it is to: "app/SETTING" is a variable of a
// container, as its process has it.
func (r reader) wantRead(t *testing.T, want map[string]string) {
	t.Helper()
	eventually(t, "looking at what "+r.name+" has read", time.Minute, func() error {
		pods, err := run.Client.CoreV1().Pods(r.space.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + r.name})
		if err != nil {
			return err
		}
		pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		if len(pods.Items) != 1 {
			return fmt.Errorf("there are %d pods", len(pods.Items))
		}
		read := map[string]string{}
		for variable := range want {
			container, name, _ := strings.Cut(variable, "/")
			environment, err := environment(&pods.Items[0], container)
			if err != nil {
				return err
			}
			read[variable] = environment[name]
		}
		if !maps.Equal(read, want) {
			return fmt.Errorf("it has read %v, want %v", read, want)
		}
		return nil
	})
}

// environment is that of a container's first process.
func environment(pod *corev1.Pod, container string) (map[string]string, error) {
	for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		_, id, _ := strings.Cut(status.ContainerID, "://")
		if first, ok := process.First()[id]; ok && status.Name == container {
			return first.Environment()
		}
	}
	return nil, fmt.Errorf("the container %s of %s does not run", container, pod.Name)
}

func (r reader) stamp(t *testing.T) string {
	t.Helper()
	d, err := run.Client.AppsV1().Deployments(r.space.Namespace).Get(t.Context(), r.name, metav1.GetOptions{})
	harness.Must(t, err)
	return d.Spec.Template.Annotations[harness.StampKey(r.source)]
}

func (r reader) digest(t *testing.T, key []byte) string {
	t.Helper()
	kind, name, _ := strings.Cut(r.source, "/")
	data, err := held(t.Context(), r.space.Namespace, r.source)
	harness.Must(t, err)
	return harness.Digest(key, kind, r.space.Namespace, name, data, []string{r.key})
}

// held is what a ConfigMap or Secret holds.
func held(ctx context.Context, namespace, source string) (map[string][]byte, error) {
	kind, name, _ := strings.Cut(source, "/")
	if kind == "secret" {
		secret, err := run.Client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", source, err)
		}
		return secret.Data, nil
	}
	configMap, err := run.Client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", source, err)
	}
	data := maps.Clone(configMap.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for name, value := range configMap.Data {
		data[name] = []byte(value)
	}
	return data, nil
}

// isAgain is nil when a source that was deleted is there, as another object.
func isAgain(space *harness.Space, source string, was *unstructured.Unstructured) error {
	is, err := space.TryGet(source)
	if err == nil && is.GetUID() == was.GetUID() {
		err = errors.New("it is still the old one")
	}
	return err
}

// controller is configstamp's, as the audit log calls it.
const controller = "configstamp-controller"

// parameter is one of the request's URI.
func (q request) parameter(name string) string {
	where, err := url.Parse(q.URI)
	if err != nil {
		return ""
	}
	return where.Query().Get(name)
}

// rollings are configstamp's empty patches that may roll, of one workload each.
func (all readers) rollings(t *testing.T, since time.Time) []request {
	t.Helper()
	names := map[string]bool{}
	for _, r := range all {
		names[r.String()] = true
	}
	found := requests(t, since, func(q request) bool {
		return q.Agent == controller && q.Verb == "patch" && q.Resource == "deployments" && names[q.Namespace+"/"+q.Name] &&
			q.parameter("fieldManager") == "configstamp" && q.parameter("dryRun") == ""
	})
	slices.SortFunc(found, func(a, b request) int { return a.At.Compare(b.At) })
	return found
}

// written counts by object how often one agent wrote to objects of a kind, and how many of the
// answers were conflicts or other refusals. Objects of the names that are wanted count.
func written(t *testing.T, since time.Time, agent, resource string, wanted func(request) bool) (objects map[string]int, refused int) {
	t.Helper()
	objects = map[string]int{}
	for _, q := range requests(t, since, func(q request) bool {
		return q.Agent == agent && q.Resource == resource && q.writes() && wanted(q) && q.parameter("dryRun") == ""
	}) {
		objects[q.object()]++
		if q.Code >= 400 {
			refused++
		}
	}
	return objects, refused
}

// spread says how often objects were written: "200 objects, 1 to 3 times, 212 in all".
func spread(objects map[string]int) string {
	if len(objects) == 0 {
		return "no object"
	}
	counts, sum := slices.Collect(maps.Values(objects)), 0
	for _, n := range counts {
		sum += n
	}
	return fmt.Sprintf("%d objects, %d to %d times, %d in all", len(objects), slices.Min(counts), slices.Max(counts), sum)
}

// memory is the heap of configstamp's leader, and what the system gives it, in MiB: the least of
// some moments, as garbage is collected now and then. It is a build with the race detector.
func memory(t *testing.T) (heap, resident float64) {
	t.Helper()
	leader := run.Product.Leader()
	if leader == nil {
		t.Fatal("no controller leads")
	}
	for range 10 {
		values, err := leader.Metrics()
		harness.Must(t, err)
		if now := values["go_memstats_heap_alloc_bytes"] / (1 << 20); heap == 0 || now < heap {
			heap = now
		}
		resident = values["process_resident_memory_bytes"] / (1 << 20)
		time.Sleep(time.Second)
	}
	return heap, resident
}
