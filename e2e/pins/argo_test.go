package pins

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/harness"
)

// The module that e2e/argo builds, and the label that its controller writes on Pods.
const (
	argoRollouts = "github.com/argoproj/argo-rollouts"
	argoHash     = "rollouts-pod-template-hash"
)

// An Argo Rollout with its own controller: the canary reads the new content, and stable pods that start meanwhile read the
// old content. After an abort all pods read the old content, and the fix rolls. After a promotion all read the new content.
// No other test runs beside it, because the first build and the large definitions keep the machine busy.
func TestArgoRollout(t *testing.T) {
	startArgo(t)
	t.Run("abort", func(t *testing.T) {
		t.Parallel()
		first, second, third := "first of "+t.Name(), "second of "+t.Name(), "third of "+t.Name() // else the two would be copies
		r, m := newCanary(t, first)
		r.write(second)
		r.wantCanary(m, first, second)
		stable, _ := r.sides(m)
		r.replaceEach(m, stable, func() { r.wantCanary(m, first, second) })

		r.order(m, `{"status":{"abort":true}}`)
		r.wantStable(m, first)
		stable, _ = r.sides(m)
		r.replaceEach(m, stable, func() { r.wantStable(m, first) })
		r.wantPinned(m, true)

		r.write(third)
		r.wantCanary(m, first, third)
	})
	t.Run("promote", func(t *testing.T) {
		t.Parallel()
		first, second := "first of "+t.Name(), "second of "+t.Name()
		r, m := newCanary(t, first)
		r.write(second)
		r.wantCanary(m, first, second)
		r.order(m, `{"status":{"pauseConditions":null}}`)
		r.wantStable(m, second)
		stable, _ := r.sides(m)
		r.replaceEach(m, stable, func() { r.wantStable(m, second) })
		r.wantPinned(m, true)
	})
}

// startArgo installs the kinds of Argo Rollouts and runs its controller until the end of the test.
func startArgo(t *testing.T) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "-C", "../argo", "list", "-m", "-f", "{{.Dir}}", argoRollouts).Output()
	harness.Must(t, err)
	definitions := filepath.Join(strings.TrimSpace(string(dir)), "manifests", "crds")
	kubectl := func(args ...string) {
		t.Helper()
		if said, err := run.Kubectl("", args...); err != nil || said.Code != 0 {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, said.Stderr)
		}
	}
	kubectl("create", "-k", definitions)
	t.Cleanup(func() { kubectl("delete", "-k", definitions) })
	kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=1m")
	run.Beside(t, "e2e/argo", argoRollouts+"/cmd/rollouts-controller",
		"--kubeconfig="+run.Kubeconfig(), "--leader-elect=false", "--metricsPort=0", "--healthzPort=0")
}

// newCanary makes a room with a Rollout of three pods, which have read the word.
func newCanary(t *testing.T, word string) (*room, *member) {
	t.Helper()
	r, m := newRoom(t, word), &member{kind: "Rollout", app: "web", ways: ways}
	r.space.Create(m.manifest())
	r.wantStable(m, word)
	return r, m
}

// order waits until a Rollout is paused, and patches its status as the kubectl plugin of Argo Rollouts does. An earlier
// promotion would have no effect.
func (r *room) order(m *member, patch string) {
	r.t.Helper()
	r.space.Kubectl("wait", m.name(), "--for=jsonpath={.status.phase}=Paused", "--timeout=2m")
	r.space.Kubectl("patch", m.name(), "--subresource=status", "--type=merge", "--patch="+patch)
}

// sides waits until three pods run, and returns those of the stable ReplicaSet and those of the canary.
func (r *room) sides(m *member) (stable, canary []corev1.Pod) {
	r.t.Helper()
	harness.Must(r.t, r.wait(func() (err error) {
		stable, canary, err = r.trySides(m)
		return err
	}))
	return stable, canary
}

func (r *room) trySides(m *member) (stable, canary []corev1.Pod, err error) {
	pods, err := r.running(m, 3)
	if err != nil {
		return nil, nil, err
	}
	hash, _, err := unstructured.NestedString(r.space.Get(m.name()).Object, "status", "stableRS")
	if err != nil || hash == "" {
		return nil, nil, fmt.Errorf("%s has no stable ReplicaSet: %w", m.name(), err)
	}
	for i := range pods {
		if pods[i].Labels[argoHash] == hash {
			stable = append(stable, pods[i])
		} else {
			canary = append(canary, pods[i])
		}
	}
	return stable, canary, nil
}

// wantCanary waits until one of three pods is a canary and each side has read its word.
func (r *room) wantCanary(m *member, stable, canary string) {
	r.t.Helper()
	r.wantSides(m, 1, stable, canary)
}

// wantStable waits until three pods run, all of them stable, and have read the word.
func (r *room) wantStable(m *member, word string) {
	r.t.Helper()
	r.wantSides(m, 0, word, "")
}

func (r *room) wantSides(m *member, canaries int, stable, canary string) {
	r.t.Helper()
	err := r.wait(func() error {
		old, young, err := r.trySides(m)
		if err == nil && len(young) != canaries {
			err = fmt.Errorf("%d pods are canaries, want %d", len(young), canaries)
		}
		if err != nil {
			return err
		}
		for word, pods := range map[string][]corev1.Pod{stable: old, canary: young} {
			read, err := m.words(pods)
			if err == nil {
				err = untrue(read, word)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", m.name(), err, r.space.Report())
	}
}

// replaceEach deletes pods one by one. Each time it waits for the next pod, and calls check.
func (r *room) replaceEach(m *member, pods []corev1.Pod, check func()) {
	r.t.Helper()
	for i := range pods {
		harness.Must(r.t, r.end(&pods[i], deleted))
		harness.Must(r.t, r.wait(func() error {
			running, err := r.running(m, 3)
			if err == nil && slices.ContainsFunc(running, func(p corev1.Pod) bool { return p.UID == pods[i].UID }) {
				err = fmt.Errorf("%s is still there", pods[i].Name)
			}
			return err
		}))
		check()
	}
}
