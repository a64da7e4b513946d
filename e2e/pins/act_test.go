package pins

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/pins/process"
)

// What befalls pods.
const (
	deleted = "deleted"
	evicted = "evicted"
	scaled  = "scaled"
	killed  = "killed" // its container, and not the pod
)

var operations = []string{deleted, evicted, scaled, killed}

// atOnce is how many members something befalls at a time.
const atOnce = 6

// befall has each operation happen so often to pods of the held members, by chance, and
// checks after each that all pods of that member have read the word, in all ways.
func (r *room) befall(count int, word string, held []member) {
	r.t.Helper()
	dice := rand.New(rand.NewPCG(*seed, uint64(len(held))))
	work := make([][]string, len(held)) // by member
	for _, operation := range operations {
		for range count {
			at := dice.IntN(len(held))
			for operation == scaled && held[at].kind == "DaemonSet" {
				at = dice.IntN(len(held))
			}
			work[at] = append(work[at], operation)
		}
	}
	// What is killed twice in a row waits, and a new pod does not.
	for at := range work {
		dice.Shuffle(len(work[at]), func(i, j int) { work[at][i], work[at][j] = work[at][j], work[at][i] })
	}
	var mu sync.Mutex
	read := map[string]int{}
	next := make(chan int)
	var working sync.WaitGroup
	for range atOnce {
		working.Go(func() {
			for at := range next {
				for _, operation := range work[at] {
					looked, err := r.act(&held[at], operation, word)
					mu.Lock()
					read[operation] += looked
					mu.Unlock()
					if err != nil {
						r.t.Errorf("a pod of %s was %s: %v", held[at].name(), operation, err)
						break
					}
				}
			}
		})
	}
	for at := range held {
		next <- at
	}
	close(next)
	working.Wait()
	for _, operation := range operations {
		r.t.Logf("%d times a pod was %s: %d containers looked at", count, operation, read[operation])
	}
}

// act has an operation happen to a member, and checks what its pods have read then. It says
// how many it has looked at.
func (r *room) act(m *member, operation, word string) (looked int, err error) {
	look := func(count int) error {
		read, err := r.settled(m, count)
		if err == nil {
			looked += len(read)
			err = untrue(read, word)
		}
		return err
	}
	if operation == scaled {
		for _, count := range []int{2, 1} {
			if err := r.scale(m, count); err != nil {
				return looked, err
			}
			if err := look(count); err != nil {
				return looked, err
			}
		}
		return looked, nil
	}
	pods, err := r.pods(m)
	if err != nil || len(pods) == 0 {
		return 0, fmt.Errorf("there is no pod: %w", err)
	}
	was := pods[0]
	if err := r.end(&was, operation); err != nil {
		return 0, err
	}
	err = r.wait(func() error {
		pods, err := r.running(m, 1)
		if err != nil {
			return err
		}
		if containerID(&pods[0], "app") == containerID(&was, "app") {
			return fmt.Errorf("container app of %s still runs", was.Name)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return looked, look(1)
}

// end ends a pod, or its container.
func (r *room) end(pod *corev1.Pod, operation string) error {
	ctx, pods := context.Background(), run.Client.CoreV1().Pods(r.space.Namespace)
	switch operation {
	case deleted:
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{})
	case evicted:
		return pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}})
	}
	first := process.First()[containerID(pod, "app")]
	if first == "" {
		return fmt.Errorf("%s: %w", pod.Name, errUnread)
	}
	return first.Kill()
}

// scale gives a Deployment or StatefulSet so many replicas, as an autoscaler does.
func (r *room) scale(m *member, replicas int) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	var err error
	if m.kind == "Deployment" {
		_, err = run.Client.AppsV1().Deployments(r.space.Namespace).Patch(context.Background(), m.app, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	} else {
		_, err = run.Client.AppsV1().StatefulSets(r.space.Namespace).Patch(context.Background(), m.app, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	}
	return err
}

// wantPinned checks which of a member's pods say that they are pinned.
func (r *room) wantPinned(m *member, pinned bool) {
	r.t.Helper()
	pods, err := r.pods(m)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range pods {
		text, is := pods[i].Annotations["configstamp.dev/pinned"]
		if is != pinned || is && !strings.Contains(text, source) {
			r.t.Errorf("%s has configstamp.dev/pinned=%q, want it pinned: %t", pods[i].Name, text, pinned)
		}
	}
}

// without are the members but one.
func without(members []member, app string) []member {
	return slices.DeleteFunc(slices.Clone(members), func(m member) bool { return m.app == app })
}
