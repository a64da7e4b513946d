package records

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// A snapshot is a copy of all that its source holds, made once for all workloads and used
// again when the content comes back. Dry runs make none.
func TestSnapshots_AreMadeOnceForEachContent(t *testing.T) {
	t.Parallel()
	s := space(t)
	s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: web-message, labels: {argocd.argoproj.io/instance: app}, annotations: {owner: me}},
		data: {MESSAGE: hello world}, binaryData: {logo: AAEC}}`)
	s.DryCreate(manifest("Deployment", "web-app", ""))
	if found := snapshots(t, s); len(found) != 0 {
		t.Errorf("a dry run made %v", found)
	}
	s.Create(manifest("Deployment", "web-app", "") + manifest("StatefulSet", "db", "") + manifest("DaemonSet", "agent", ""))
	before := s.Settled(web, "statefulset/db", "daemonset/agent")
	name := wantPin(t, s, web)
	for _, other := range []string{"statefulset/db", "daemonset/agent"} {
		if got := wantPin(t, s, other); got != name {
			t.Errorf("%s is pinned to %s, web-app to %s", other, got, name)
		}
	}
	found := snapshots(t, s)
	first, is := found[name]
	if len(found) != 1 || !is {
		t.Fatalf("there are %v, want %s alone", found, name)
	}
	if first.Immutable == nil || !*first.Immutable || first.Data["MESSAGE"] != "hello world" || string(first.BinaryData["logo"]) != "\x00\x01\x02" ||
		len(first.Labels) != 1 || len(first.Annotations) != 2 || first.Annotations["configstamp.dev/of"] != source || len(first.OwnerReferences) != 0 {
		t.Errorf("the snapshot is %+v", first)
	}

	s.Edit(source, "MESSAGE", "hello KodeKloud")
	s.WantRolls(before, rolls{web: 1, "statefulset/db": 1, "daemonset/agent": 1})
	second := wantPin(t, s, web)
	if found := snapshots(t, s); second == name || found[second].Data["MESSAGE"] != "hello KodeKloud" || found[name].UID != first.UID {
		t.Errorf("after an edit there are %v, and web-app is pinned to %s", found, second)
	}
	before = s.Counts()
	s.Edit(source, "MESSAGE", "hello world")
	s.WantRollsBack(before, rolls{web: 1, "statefulset/db": 1, "daemonset/agent": 1})
	if again := wantPin(t, s, web); again != name || snapshots(t, s)[name].UID != first.UID {
		t.Errorf("the content came back, and web-app is pinned to %s, not to %s", again, name)
	}
}

// Who does not pin is not pinned: a workload, a source, or all where nobody says so.
func TestSnapshots_ArePolicy(t *testing.T) {
	t.Parallel()
	s := space(t)
	s.Set(source, "MESSAGE", "hello world")
	s.Create(manifest("Deployment", "web-app", "") + manifest("Deployment", "out", `configstamp.dev/pin: "false"`) + manifest("Deployment", "odd", `configstamp.dev/pin: "yes"`))
	before := s.Settled(web, "deployment/out", "deployment/odd")
	wantPin(t, s, web)
	for _, name := range []string{"deployment/out", "deployment/odd"} {
		if pinned, _ := pinOf(s, name); pinned != "" {
			t.Errorf("%s is pinned to %s", name, pinned)
		}
	}
	// Whoever changes the policy restarts nothing; from the next rollout on it counts.
	s.SetPolicy(source, map[string]string{"pin": "false"})
	s.SetPolicy("deployment/out", map[string]string{"pin": "true"})
	s.Unchanged(before)
	before = s.Counts()
	s.Edit(source, "MESSAGE", "hello KodeKloud")
	s.WantRolls(before, rolls{web: 1, "deployment/out": 1, "deployment/odd": 1}) // one that cannot be read holds nothing
	if pinned, _ := pinOf(s, web); pinned != "" {
		t.Errorf("a source says that it is not pinned, and web-app is pinned to %s", pinned)
	}
}

// The Pods of a workload that pins name the snapshot; a lost one must not be read as empty.
// Other Pods, and copies, keep the names that they have.
func TestPods_NameTheSnapshot(t *testing.T) {
	t.Parallel()
	s := space(t)
	s.Set(source, "MESSAGE", "hello world")
	s.Create(manifest("Deployment", "web-app", "") + manifest("Deployment", "out", `configstamp.dev/pin: "false"`))
	s.Settled(web, "deployment/out")
	name := wantPin(t, s, web)
	pod := podOf(t, s, "web-app")
	from := pod.Spec.Containers[0].EnvFrom[0].ConfigMapRef
	if from.Name != name || from.Optional == nil || *from.Optional || pod.Spec.Volumes[0].ConfigMap.Name != name {
		t.Errorf("the Pod reads %+v and %+v, want %s, not optional", from, pod.Spec.Volumes[0].ConfigMap, name)
	}
	if pinned := pod.Annotations["configstamp.dev/pinned"]; pinned != fmt.Sprintf(`{%q:%q}`, source, name) {
		t.Errorf("configstamp.dev/pinned is %s", pinned)
	}
	if out := podOf(t, s, "out"); out.Spec.Volumes[0].ConfigMap.Name != "web-message" {
		t.Errorf("a Pod of a workload that does not pin reads %s", out.Spec.Volumes[0].ConfigMap.Name)
	}
}

func podOf(t *testing.T, s *harness.Space, app string) (pod corev1.Pod) {
	t.Helper()
	s.Eventually("waiting for a Pod of "+app, func() error {
		list, err := run.Client.CoreV1().Pods(s.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
		if err == nil && len(list.Items) == 0 {
			err = fmt.Errorf("there is none")
		}
		if err == nil {
			pod = list.Items[0]
		}
		return err
	})
	return pod
}

// P2: what nothing names goes, but the newest; what a revision names stays, and is made
// again if somebody deletes it; if it cannot be, people are told.
func TestCollection(t *testing.T) {
	t.Parallel()
	s := space(t)
	s.Set(source, "MESSAGE", "0")
	// Old revisions go when a rollout is complete, which it is without Pods.
	s.Create(strings.Replace(manifest("Deployment", "web-app", ""), "revisionHistoryLimit: 3", "replicas: 0, revisionHistoryLimit: 3", 1))
	s.Settled(web)
	names := []string{wantPin(t, s, web)}
	for i := 1; i <= 6; i++ { // three revisions are kept
		before := s.Counts()
		s.Edit(source, "MESSAGE", fmt.Sprint(i))
		s.WantRolls(before, rolls{web: 1})
		names = append(names, wantPin(t, s, web))
	}
	s.EventuallyIn(time.Minute, "waiting for collection", func() error {
		if found := snapshots(t, s); len(found) != 4 {
			return fmt.Errorf("there are %d snapshots, want those of four revisions", len(found))
		}
		return nil
	})
	time.Sleep(3 * grace / 2)
	found := snapshots(t, s)
	for i, name := range names {
		if _, is := found[name]; is != (i >= 3) {
			t.Errorf("%d snapshots are left; the one of edit %d is there: %t", len(found), i, is)
		}
	}

	// Somebody cleans up.
	maps := run.Client.CoreV1().ConfigMaps(s.Namespace)
	last := names[len(names)-1]
	harness.Must(t, maps.Delete(t.Context(), last, metav1.DeleteOptions{}))
	s.EventuallyIn(time.Minute, "waiting for what was deleted", func() error {
		_, err := maps.Get(t.Context(), last, metav1.GetOptions{})
		return err
	})
	s.SetPolicy("namespace", map[string]string{"pause": "true"})
	time.Sleep(time.Second)
	s.Edit(source, "MESSAGE", "other")
	harness.Must(t, maps.Delete(t.Context(), last, metav1.DeleteOptions{}))
	s.EventuallyIn(time.Minute, "waiting for SnapshotLost", func() error {
		if !slices.ContainsFunc(s.Notes(web), func(note string) bool { return strings.HasPrefix(note, "SnapshotLost: ") }) {
			return fmt.Errorf("there is none: %q", s.Notes(web))
		}
		return nil
	})
	if _, err := maps.Get(t.Context(), last, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the lost snapshot: %v, want none", err)
	}
}

// Whoever restores by kubectl, label and all, gets a source, not a snapshot.
func TestCollection_ARestoredSourceIsASource(t *testing.T) {
	t.Parallel()
	s := space(t)
	s.Set(source, "MESSAGE", "hello world")
	s.Create(manifest("Deployment", "web-app", ""))
	before := s.Settled(web)
	name := wantPin(t, s, web)
	s.Edit(source, "MESSAGE", "a mistake")
	s.WantRolls(before, rolls{web: 1})
	before = s.Counts()
	text := s.Kubectl("get", "configmap", name, "-o", "yaml").Stdout
	s.KubectlInput(strings.ReplaceAll(text, "name: "+name, "name: web-message"), "replace", "--force", "-f", "-")
	s.WantRollsBack(before, rolls{web: 1})
	if again := wantPin(t, s, web); again != name {
		t.Errorf("the content is back, and web-app is pinned to %s, not to %s", again, name)
	}
	s.WantNote(source, "SnapshotLabelMisplaced: ")
}
