package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/follow/fakeapi"
	"github.com/configstamp/configstamp/internal/podtruth"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/shortlist"
	"github.com/configstamp/configstamp/internal/workload"
)

// still is a store in which every source has one content that nobody edits.
type still struct {
	content *checksum.Content
	written time.Time
	listed  atomic.Int64
	behind  time.Duration
}

func (s *still) Content(string, checksum.Source) *checksum.Content { return s.content }
func (s *still) Written(string, checksum.Source) (written, created time.Time) {
	return s.written, s.written
}
func (s *still) Listed(string, checksum.Kind) time.Time { return time.Unix(s.listed.Load(), 0) }
func (s *still) LastProgress() time.Time                { return time.Now().Add(-s.behind) }

func testRing(t testing.TB) *checksum.Ring {
	t.Helper()
	key, err := checksum.NewKey([]byte(strings.Repeat("k", checksum.KeySize)))
	if err != nil {
		t.Fatal(err)
	}
	return checksum.NewRing(key)
}

// house is a room, and what it asks.
type house struct {
	*Room
	store  *still
	ring   *checksum.Ring
	mu     sync.Mutex
	wanted map[string]bool
	served bool
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{store: &still{content: contentOf("1"), written: time.Now().Add(-time.Hour)}, ring: testRing(t), wanted: map[string]bool{"shop": true}, served: true}
	h.Room = New(Options{
		Sources: h.store, Ring: func() *checksum.Ring { return h.ring }, Kinds: workload.Builtin(), Clock: clock.RealClock{}, Settle: 2 * time.Second,
		Wanted: func(namespace string) bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.wanted[namespace]
		},
		Policy: func([]workload.Ref) (checksum.Policy, bool) { return checksum.DefaultPolicy(), h.served },
	})
	return h
}

func contentOf(value string) *checksum.Content {
	return checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: map[string]string{"a": value, "b": "1"}})
}

// aPod runs since a while, with true stamps.
func (h *house) aPod(namespace string, number int) *corev1.Pod {
	yes, began := true, metav1.NewTime(time.Now().Add(-30*time.Minute).Truncate(time.Second))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("web-7d9-", number), UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", number)), CreationTimestamp: began,
			Labels: map[string]string{"pod-template-hash": "7d9"}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d9", Controller: &yes}}},
		Spec:   *spec(),
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	pod.Spec.Containers = pod.Spec.Containers[:3] // all but files that are refreshed
	for _, selection := range checksum.Selections(checksum.References(&pod.Spec), checksum.DefaultPolicy()) {
		pod.Annotations[checksum.StampKey(selection.Source)] = h.ring.Digest(namespace, selection, h.store.content)
	}
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}})
	}
	return pod
}

func (h *house) arrive(t testing.TB, pod *corev1.Pod) *arrived {
	t.Helper()
	message, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	object, err := h.message(message)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*arrived)
}

func (h *house) counted(namespace string) string {
	h.count(time.Now())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Room.mu.Lock()
	defer h.Room.mu.Unlock()
	if h.counts[namespace] == nil {
		return "nothing"
	}
	return fmt.Sprint(*h.counts[namespace])
}

// What is not to be counted is not kept.
func TestRoom_Keeps(t *testing.T) {
	for sentence, c := range map[string]struct {
		of   func(*corev1.Pod)
		want bool
	}{
		"a pod that runs":                {func(*corev1.Pod) {}, true},
		"one of another namespace":       {func(p *corev1.Pod) { p.Namespace = "other" }, false},
		"one that is being deleted":      {func(p *corev1.Pod) { p.DeletionTimestamp = &p.CreationTimestamp }, false},
		"one that has ended":             {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, false},
		"one that has failed":            {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"one of nobody":                  {func(p *corev1.Pod) { p.OwnerReferences = nil }, false},
		"one of a kind that is not ours": {func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Node" }, false},
		"one that uses nothing":          {func(p *corev1.Pod) { p.Spec = corev1.PodSpec{} }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHouse(t)
			h.begin(true)
			pod := h.aPod("shop", 1)
			h.told(h.arrive(t, pod), false)
			c.of(pod)
			h.told(h.arrive(t, pod), false)
			if kept := len(h.pods["shop"]) == 1; kept != c.want && pod.Namespace == "shop" {
				t.Errorf("kept: %t, want %t", kept, c.want)
			}
			if len(h.pods["other"]) > 0 {
				t.Error("it is kept")
			}
		})
	}
}

func TestRoom_Counts(t *testing.T) {
	h := newHouse(t)
	h.begin(true)
	h.told(h.arrive(t, h.aPod("shop", 1)), false)
	if got := h.counted("shop"); got != "[1 0 0 0]" {
		t.Fatalf("one that has all: %s", got)
	}
	edit := func(value string) {
		h.store.content, h.store.written = contentOf(value), time.Now()
		for _, source := range []string{"s0", "s1", "s2"} {
			h.Edited("shop", checksum.Source{Kind: checksum.ConfigMap, Name: source}, nil)
		}
	}
	edit("2")
	if got := h.counted("shop"); got != "[0 1 0 0]" {
		t.Fatalf("after an edit: %s", got)
	}
	edit("1")
	if got := h.counted("shop"); got != "[1 0 0 0]" {
		t.Fatalf("taken back: %s", got)
	}
	h.store.listed.Store(time.Now().Add(time.Second).Unix())
	if got := h.counted("shop"); got != "[1 0 0 0]" {
		t.Fatalf("after a gap, what was proven is gone: %s", got)
	}
	h.served = false
	if got := h.counted("shop"); got != "nothing" {
		t.Fatalf("not served: %s", got)
	}
	h.served, h.wanted["shop"] = true, false
	if h.counted("shop"); len(h.pods) > 0 || h.groups.len() > 0 || len(h.sources) > 0 {
		t.Fatalf("not opted in any more, and kept: %v, %d groups, %v", h.pods, h.groups.len(), h.sources)
	}
}

// While a watch tells nothing, nothing is known.
func TestRoom_Silence(t *testing.T) {
	h := newHouse(t)
	h.begin(true)
	h.told(h.arrive(t, h.aPod("shop", 1)), false)
	h.count(time.Now().Add(-silentAfter - time.Second))
	if got := *h.counts["shop"]; got != (Counts{podtruth.Unknown: 1}) {
		t.Errorf("it counts %v", got)
	}
}

// Pods of one template share what they have in common, and what is forgotten is forgotten.
func TestRoom_Shares(t *testing.T) {
	h := newHouse(t)
	h.begin(true)
	for i := range 100 {
		h.told(h.arrive(t, h.aPod("shop", i)), false)
	}
	h.counted("shop")
	proofs := map[*proof]bool{}
	for _, pod := range h.pods["shop"] {
		proofs[pod.proof] = true
	}
	if h.groups.len() != 1 || len(proofs) != 1 || proofs[nil] {
		t.Errorf("%d groups, proofs %v", h.groups.len(), proofs)
	}
	restarted := h.aPod("shop", 1)
	restarted.Status.ContainerStatuses[0].RestartCount = 1
	restarted.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.Now()
	h.told(h.arrive(t, restarted), false)
	if p := h.pods["shop"][uidOf([]byte(restarted.UID))].proof; p == nil || len(p.uses()) != 2 {
		t.Errorf("after a restart of one container is proven: %+v", p)
	}
	h.replace("", []*arrived{h.arrive(t, h.aPod("shop", 7))})
	if len(h.pods["shop"]) != 1 {
		t.Errorf("%d pods after a list of one", len(h.pods["shop"]))
	}
	h.begin(false)
	if len(h.pods)+len(h.sources)+h.groups.len() > 0 {
		t.Error("it does not forget")
	}
	if h.counted("shop") != "nothing" {
		t.Error("it counts without leading")
	}
}

func TestUID(t *testing.T) {
	a, b := uidOf([]byte("5d3f1f0e-0000-4000-8000-000000000000")), uidOf([]byte("5d3f1f0e00004000800000000000000z"))
	if fmt.Sprintf("%x", a) != "5d3f1f0e000040008000000000000000" || a == b || b == uidOf([]byte("")) {
		t.Errorf("%x %x", a, b)
	}
}

func TestMetrics(t *testing.T) {
	h := newHouse(t)
	h.begin(true)
	h.wanted["bank"] = true
	h.told(h.arrive(t, h.aPod("shop", 1)), false)
	h.told(h.arrive(t, h.aPod("bank", 2)), false)
	h.counted("shop")
	for sentence, c := range map[string]struct {
		names func() shortlist.Names
		want  []string
	}{
		"all together": {nil, []string{`namespace="",state="current"} 2`, `namespace="",state="old"} 0`, `namespace="",state="mixed"} 0`, `namespace="",state="unknown"} 0`}},
		"some":         {func() shortlist.Names { return shortlist.Names{"shop": true} }, []string{`namespace="shop",state="current"} 1`, `namespace="(others)",state="current"} 1`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			registry.MustRegister(Metrics{Room: h.Room, Names: c.names})
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			var text []string
			for _, metric := range families[0].GetMetric() {
				text = append(text, fmt.Sprintf("namespace=%q,state=%q} %v", metric.GetLabel()[0].GetValue(), metric.GetLabel()[1].GetValue(), metric.GetGauge().GetValue()))
			}
			for _, want := range c.want {
				if !slices.Contains(text, want) {
					t.Errorf("no %s in\n%s", want, text)
				}
			}
		})
	}
}

// Whatever the API server sends, and however often a namespace changes its mind.
func TestFollower(t *testing.T) {
	server := fakeapi.New(t)
	h := newHouse(t)
	server.Put("pods", h.aPod("shop", 1))
	server.Put("pods", h.aPod("late", 2))
	follower, err := NewFollower(server.Config(), h.Room)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		follower.Run(ctx)
	}()
	known := func(namespace string, n int) func() bool {
		return func() bool {
			h.Room.mu.Lock()
			defer h.Room.mu.Unlock()
			return len(h.pods[namespace]) == n
		}
	}
	fakeapi.Eventually(t, "the first is known", known("shop", 1))
	server.Put("pods", h.aPod("shop", 3))
	fakeapi.Eventually(t, "another is known", known("shop", 2))
	server.Delete("pods", "shop", "web-7d9-1")
	fakeapi.Eventually(t, "it is gone", known("shop", 1))
	if !known("late", 0)() {
		t.Error("a pod of a namespace that is not opted in is kept")
	}
	h.NamespaceChanged("late")
	if len(h.passed.anew) != 0 {
		t.Error("a namespace that is not opted in has all listed anew")
	}
	if !slices.ContainsFunc(server.Requests(), func(request string) bool { return strings.Contains(request, "status.phase%21%3DSucceeded") }) {
		t.Errorf("pods that have ended are asked for: %q", server.Requests())
	}
	cancel()
	<-ended
	if !known("shop", 0)() {
		t.Error("it does not forget when it ends")
	}
}

// A namespace that is opted in later has its pods listed.
func TestRoom_OptedInLater(t *testing.T) {
	h := newHouse(t)
	h.begin(true)
	h.passed.begin()
	h.NamespaceChanged("shop")
	if len(h.passed.anew) != 0 {
		t.Error("a namespace whose pods are known has all listed anew")
	}
	h.told(h.arrive(t, h.aPod("late", 1)), false)
	h.wanted["late"] = true
	h.NamespaceChanged("late")
	h.NamespaceChanged("late")
	h.NamespaceChanged("shop")
	if len(h.passed.anew) != 1 {
		t.Errorf("%d lists are asked for, want 1", len(h.passed.anew))
	}
}

// An edit proves what containers had that were not looked at before it.
func TestRoom_ProvesBeforeAnEdit(t *testing.T) {
	h := newHouse(t)
	h.begin(true)
	h.told(h.arrive(t, h.aPod("shop", 1)), false)
	h.counted("shop")
	restarted := h.aPod("shop", 2) // it says by itself nothing of what it had before the edit
	for i := range restarted.Status.ContainerStatuses {
		restarted.Status.ContainerStatuses[i].RestartCount = 1
	}
	h.told(h.arrive(t, restarted), false)
	late := h.aPod("shop", 3)
	for i := range late.Status.ContainerStatuses { // it may have started after the edit
		late.Status.ContainerStatuses[i].State.Running.StartedAt = metav1.Now()
	}
	h.told(h.arrive(t, late), false)
	h.store.content, h.store.written = contentOf("2"), time.Now()
	for _, source := range []string{"s0", "s1", "s2"} {
		h.Edited("shop", checksum.Source{Kind: checksum.ConfigMap, Name: source}, nil)
	}
	if got := h.counted("shop"); got != "[0 1 1 1]" { // of all keys it is not known
		t.Errorf("after an edit: %s", got)
	}
}

// Nothing is proven by a watch that is behind, nor of a pod whose node does not answer.
func TestRoom_ProvesNothing(t *testing.T) {
	for sentence, of := range map[string]func(*house, *corev1.Pod){
		"the watch of sources is behind": func(h *house, _ *corev1.Pod) { h.store.behind = 2 * time.Minute },
		"its node does not answer": func(_ *house, p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionUnknown}}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHouse(t)
			h.begin(true)
			pod := h.aPod("shop", 1)
			began := metav1.NewTime(time.Now().Add(-time.Minute - 50*time.Second).Truncate(time.Second))
			for i := range pod.Status.ContainerStatuses {
				pod.Status.ContainerStatuses[i].State.Running.StartedAt = began
			}
			of(h, pod)
			h.told(h.arrive(t, pod), false)
			h.counted("shop")
			if p := h.pods["shop"][uidOf([]byte(pod.UID))].proof; p != nil {
				t.Errorf("proven: %+v", p)
			}
		})
	}
}

// An optional source that was deleted was there.
func TestRoom_Deleted(t *testing.T) {
	h := newHouse(t)
	h.begin(true)
	source := checksum.Source{Kind: checksum.ConfigMap, Name: "s0"}
	selection := checksum.Selection{Source: source, All: true}
	facts := func() podtruth.Source {
		return h.facts(h.ring, &group{namespace: "shop"}, &selection, h.memory(rollout.SourceRef{Namespace: "shop", Source: source}))
	}
	h.store.content, h.store.written = nil, time.Time{}
	if !facts().Unwritten {
		t.Error("a source that was never there was written")
	}
	h.store.content = contentOf("1")
	h.Edited("shop", source, nil)
	h.store.content = nil
	h.Edited("shop", source, nil)
	if facts().Unwritten {
		t.Error("a source that was deleted was never there")
	}
}

// A pod that names snapshots is counted by its stamps, for the sources that they are of.
func TestRoom_Pinned(t *testing.T) {
	h := newHouse(t)
	h.begin(true)
	pod := h.aPod("shop", 1)
	names := map[checksum.Source]string{}
	for _, reference := range checksum.References(&pod.Spec) {
		names[reference.Source] = reference.Source.Name + "-0123456789abcdef0123"
	}
	spec, err := pod.Spec.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for i := range pod.Spec.Containers {
		pin(&pod.Spec.Containers[i], names)
	}
	for i := range pod.Spec.Volumes {
		if of := pod.Spec.Volumes[i].ConfigMap; of != nil {
			of.Name = names[checksum.Source{Kind: checksum.ConfigMap, Name: of.Name}]
		}
	}
	if now, err := pod.Spec.Marshal(); err != nil || string(now) == string(spec) {
		t.Fatalf("nothing is pinned: %v", err)
	}
	pod.Annotations[checksum.PinnedAnnotation] = checksum.FormatBaseline(names)
	h.told(h.arrive(t, pod), false)
	if got := h.counted("shop"); got != "[1 0 0 0]" {
		t.Fatalf("with true stamps: %s", got)
	}
	h.store.content, h.store.written = contentOf("2"), time.Now()
	for source := range names {
		h.Edited("shop", source, nil)
	}
	if got := h.counted("shop"); got != "[0 1 0 0]" {
		t.Fatalf("after an edit: %s", got)
	}
}

func pin(container *corev1.Container, names map[checksum.Source]string) {
	name := func(is string) string { return names[checksum.Source{Kind: checksum.ConfigMap, Name: is}] }
	for i := range container.EnvFrom {
		if of := container.EnvFrom[i].ConfigMapRef; of != nil {
			of.Name = name(of.Name)
		}
	}
	for i := range container.Env {
		if from := container.Env[i].ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
			from.ConfigMapKeyRef.Name = name(from.ConfigMapKeyRef.Name)
		}
	}
}
