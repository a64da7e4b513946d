package pins

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// A kubelet that starts again touches no container, also when somebody has deleted the
// snapshot that these were started with. The product makes it again, and containers start
// with it. If the source holds something else by now, people are told which pods to delete.
func TestAKubeletStartsAgainWhileSnapshotsAreLost(t *testing.T) {
	run.Exclusive(t)
	r := newRoom(t, "old", each()...)
	was := r.containers()
	r.restartKubelet()
	r.wantContainers(was, "after a restart of the kubelet")

	lost := r.loseSnapshots()
	r.restartKubelet()
	r.space.Eventually("waiting for the snapshots", func() error {
		if now := r.snapshots(); !slices.Equal(now, lost) {
			return fmt.Errorf("there are %q, want %q", now, lost)
		}
		return nil
	})
	r.wantContainers(was, "after snapshots were lost")
	for i := range r.members {
		if _, err := r.act(&r.members[i], killed, "old"); err != nil {
			t.Errorf("%s, of which a container was killed: %v", r.members[i].name(), err)
		}
	}

	r.space.SetPolicy("namespace", map[string]string{"pause": "true"})
	time.Sleep(2 * time.Second)
	r.write("new")
	time.Sleep(3 * time.Second)
	was = r.containers()
	r.loseSnapshots()
	r.restartKubelet()
	for i := range r.members {
		name := r.members[i].name()
		r.space.Eventually("waiting for SnapshotLost", func() error {
			if !slices.ContainsFunc(r.space.Notes(name), func(note string) bool { return strings.HasPrefix(note, "SnapshotLost: ") }) {
				return fmt.Errorf("%s: there is none: %q", name, r.space.Notes(name))
			}
			return nil
		})
	}
	t.Logf("%q", r.space.Notes(r.members[0].name()))
	r.wantContainers(was, "after snapshots were lost for good")
	r.wantStill("old", r.members)

	// A container that ends does not start again, as the event has said: the pod has to go.
	m := &r.members[0]
	pods, err := r.pods(m)
	harness.Must(t, err)
	harness.Must(t, r.end(&pods[0], killed))
	time.Sleep(30 * time.Second) // it was killed before, so it waits 20
	r.wantNoSnapshot(m, lost[0])
	r.replace("new", false)
}

// A node is drained while one webhook ends, as that of a drained node does: every pod comes
// back, and with the content of its template where that is pinned.
func TestADrainedNode(t *testing.T) {
	product := run.Exclusive(t)
	r := newRoom(t, "old", append(each(), member{kind: "Deployment", app: "lax", ways: ways, optional: true}, member{kind: "StatefulSet", app: "store", ways: ways})...)
	plain := &member{kind: "Deployment", app: "plain", ways: ways}
	r.space.Create(strings.Replace(plain.manifest(), "annotations: {", `annotations: {configstamp.dev/pin: "false", `, 1))
	r.want(plain, "old")
	r.space.SetPolicy("namespace", map[string]string{"pause": "true"})
	time.Sleep(2 * time.Second)
	r.write("new")
	time.Sleep(3 * time.Second)

	for _, end := range []func(*harness.Process) error{(*harness.Process).Stop, (*harness.Process).Kill} {
		was := r.podUIDs(plain)
		ended := make(chan error, 1)
		go func() { ended <- end(product.Webhooks[0]) }()
		r.drain()
		harness.Must(t, <-ended)
		for _, m := range append(r.all(), plain) {
			pinned := m != plain
			r.cameBack(m, was, map[bool]string{true: "old", false: "new"}[pinned])
			r.wantPinned(m, pinned)
		}
		harness.Must(t, product.Start(t.Context()))
	}
	events, err := run.Client.CoreV1().Events(r.space.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedCreate"})
	harness.Must(t, err)
	for _, event := range events.Items {
		t.Errorf("%s: %s", event.InvolvedObject.Name, event.Message)
	}
}

// all are the members, by reference.
func (r *room) all() (all []*member) {
	for i := range r.members {
		all = append(all, &r.members[i])
	}
	return all
}

// drain evicts all pods of the node, as kubectl drain does and those of DaemonSets too, and
// lets the node have pods again.
func (r *room) drain() {
	r.t.Helper()
	nodes, err := run.Client.CoreV1().Nodes().List(r.t.Context(), metav1.ListOptions{})
	harness.Must(r.t, err)
	node := nodes.Items[0].Name
	defer r.space.Kubectl("uncordon", node)
	r.space.Kubectl("drain", node, "--ignore-daemonsets", "--timeout=1m")
	for _, m := range r.all() {
		if m.kind != "DaemonSet" {
			continue
		}
		pods, err := r.pods(m)
		harness.Must(r.t, err)
		for i := range pods {
			harness.Must(r.t, r.end(&pods[i], evicted))
		}
	}
}

// podUIDs are those of the members' pods and one more's.
func (r *room) podUIDs(other *member) map[string]bool {
	r.t.Helper()
	found := map[string]bool{}
	for _, m := range append(r.all(), other) {
		pods, err := r.pods(m)
		harness.Must(r.t, err)
		for i := range pods {
			found[string(pods[i].UID)] = true
		}
	}
	return found
}

// cameBack waits until a member has another pod than before, which has read a word.
func (r *room) cameBack(m *member, was map[string]bool, word string) {
	r.t.Helper()
	err := r.wait(func() error {
		pods, err := r.running(m, 1)
		if err == nil && was[string(pods[0].UID)] {
			err = fmt.Errorf("%s was not evicted", pods[0].Name)
		}
		return err
	})
	if err != nil {
		r.t.Errorf("%s: %v\n%s", m.name(), err, r.space.Report())
		return
	}
	read, err := r.settled(m, 1)
	if err == nil {
		err = untrue(read, word)
	}
	if err != nil {
		r.t.Errorf("%s: %v", m.name(), err)
	}
}

// restartKubelet kills the kubelet, starts it, and waits until it has started a pod.
func (r *room) restartKubelet() {
	r.t.Helper()
	harness.Must(r.t, run.RestartCluster(r.t.Context(), "kubelet"))
	pods := run.Client.CoreV1().Pods(r.space.Namespace)
	probe, err := pods.Create(r.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64),
			Containers:                    []corev1.Container{{Name: "app", Image: image, ImagePullPolicy: corev1.PullNever, Args: []string{"lenient", "3000"}}},
		},
	}, metav1.CreateOptions{})
	harness.Must(r.t, err)
	err = r.wait(func() error {
		now, err := pods.Get(r.t.Context(), probe.Name, metav1.GetOptions{})
		if err == nil && now.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("%s is %s", probe.Name, now.Status.Phase)
		}
		return err
	})
	harness.Must(r.t, err)
	harness.Must(r.t, pods.Delete(r.t.Context(), probe.Name, metav1.DeleteOptions{}))
	time.Sleep(6 * time.Second) // it looks at every pod each five
}

// containers are those of all pods of the members, by pod: their identity, and how often
// they were started again.
func (r *room) containers() map[string]string {
	r.t.Helper()
	found := map[string]string{}
	for _, m := range r.all() {
		pods, err := r.running(m, 1)
		harness.Must(r.t, err)
		found[pods[0].Name] = fmt.Sprintf("%s, restarted %d times", containerID(&pods[0], "app"), pods[0].Status.ContainerStatuses[0].RestartCount)
	}
	return found
}

func (r *room) wantContainers(was map[string]string, when string) {
	r.t.Helper()
	if is := r.containers(); !maps.Equal(is, was) {
		r.t.Errorf("%s there are %v, and were %v", when, is, was)
	}
}

// snapshots are the names of all snapshots, sorted.
func (r *room) snapshots() (names []string) {
	r.t.Helper()
	list, err := run.Client.CoreV1().ConfigMaps(r.space.Namespace).List(r.t.Context(), metav1.ListOptions{LabelSelector: "configstamp.dev/snapshot=true"})
	harness.Must(r.t, err)
	for _, one := range list.Items {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	return names
}

// loseSnapshots deletes all of them, as somebody does who cleans up.
func (r *room) loseSnapshots() []string {
	r.t.Helper()
	lost := r.snapshots()
	if len(lost) == 0 {
		r.t.Fatal("there are no snapshots to lose")
	}
	r.space.Kubectl("delete", "configmaps", "-l", "configstamp.dev/snapshot=true")
	return lost
}

// wantNoSnapshot checks that the container of a member's pod does not run, and that the
// kubelet says which ConfigMap is not there.
func (r *room) wantNoSnapshot(m *member, lost string) {
	r.t.Helper()
	pods, err := r.pods(m)
	harness.Must(r.t, err)
	// The pod's status may lag: a kubelet that waits for a volume writes none.
	if read, err := m.words(pods); !errors.Is(err, errUnread) {
		r.t.Errorf("container app of %s runs, and has read %v: %v", pods[0].Name, read, err)
	}
	events, err := run.Client.CoreV1().Events(r.space.Namespace).List(r.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + pods[0].Name})
	harness.Must(r.t, err)
	if !slices.ContainsFunc(events.Items, func(event corev1.Event) bool {
		return strings.Contains(event.Message, `"`+lost+`" not found`)
	}) {
		r.t.Errorf("no event of %s says that %s is not there", pods[0].Name, lost)
	}
}
