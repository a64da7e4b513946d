package rollouts

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// How a halted change goes on.

// resume has a change go on whose failure began before a time.
func (f *fleet) resume(before time.Time) {
	f.t.Helper()
	f.heard = time.Now()
	harness.Must(f.t, f.Patch(source, fmt.Sprintf(`{"metadata":{"annotations":{"configstamp.dev/resume":%q}}}`, before.UTC().Format(time.RFC3339))))
}

// A person takes the responsibility: the next one goes, and halts the change again.
func TestResumeReleasesAHaltedChange(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, strict)
	f.resume(time.Now().Add(-2 * time.Second)) // of another failure, long ago
	f.edit("bad")
	first := f.wantHalt()

	f.resume(time.Now())
	second := f.wantHalt(first)
	f.wantSaid(source, "ChangeResumed", "")
	f.wantServed()

	f.resume(time.Now().Add(-time.Hour))
	f.wantStill(first, second)
	f.takeBack()
	f.wantServing()
	f.wantStill(first, second)
	f.wantServed()
	f.wantTruth()
}

// What the new content needs comes later: the app that crashed for the want of
// it recovers, and the others follow.
func TestARecoveryReleasesAHaltedChange(t *testing.T) {
	t.Parallel()
	f := openFleet(t)
	f.serve("dependency")
	f.fill(4, func(int) member { return member{manner: "needy", probe: true} })
	f.edit("bad")
	f.wantHalt()

	f.heard = time.Now()
	_, err := court.Run.Client.CoreV1().Pods(f.Namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "dependency", Labels: map[string]string{"app": "dependency"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64),
			Containers:                    []corev1.Container{{Name: "app", Image: appImage, ImagePullPolicy: corev1.PullNever, Args: []string{"lenient"}}},
		},
	}, metav1.CreateOptions{})
	harness.Must(t, err)
	f.wantRolledOut()
	f.wantSaid(source, "ChangeResumed", "")
	f.wantServed()
	f.wantTruth()
}

// A Pod that starts while a change is halted reads the new content; when that is
// taken back, people are told which Pods still run it.
func TestPodsThatRunWithdrawnContentAreNamed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, func(i int) member {
		if i == 1 {
			return member{manner: "strict", probe: true, order: "1"}
		}
		return member{manner: "lenient", probe: true}
	})
	// The times of pods and sources are whole seconds: a pod that starts in the second
	// of the edit may have read it, and would be named rightly.
	time.Sleep(2 * time.Second)
	f.edit("bad")
	if failed := f.wantHalt(); failed != "deployment/app-01" {
		t.Fatalf("%s went first, and app-01 alone has an order", failed)
	}
	pods := court.Run.Client.CoreV1().Pods(f.Namespace)
	ofApp := metav1.ListOptions{LabelSelector: "app=app-02"}
	were, err := pods.List(t.Context(), ofApp)
	harness.Must(t, err)
	harness.Must(t, pods.Delete(t.Context(), were.Items[0].Name, metav1.DeleteOptions{}))
	started := ""
	f.space.Eventually("waiting for another Pod of app-02", func() error {
		list, err := pods.List(t.Context(), ofApp)
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			was := slices.ContainsFunc(were.Items, func(other corev1.Pod) bool { return other.Name == pod.Name })
			if !was && pod.Status.Phase == corev1.PodRunning {
				started = pod.Name
				return nil
			}
		}
		return fmt.Errorf("there are %d, and none is new and runs", len(list.Items))
	})

	f.takeBack()
	f.wantSaid("deployment/app-02", "PodsRunWithdrawnContent", started)
	f.wantServing()
	f.wantStill("deployment/app-01", "deployment/app-02")
	for _, name := range []string{"deployment/app-00", "deployment/app-03"} {
		f.wantUnsaid(name, "PodsRunWithdrawnContent")
	}
	f.wantServed()
	f.wantTruth()
}
