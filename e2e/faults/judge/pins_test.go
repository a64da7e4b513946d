package judge

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/configstamp/configstamp/e2e/harness"
)

const (
	pinned    = "configmap/c"
	namespace = "n"
)

func (s *story) snapshotName(value string) string {
	return harness.SnapshotName([]byte("key"), namespace, "c", map[string][]byte{"k": []byte(value), "other": []byte("x")}, nil)
}

// snapshotOf is the copy of what the source holds with a value.
func (s *story) snapshotOf(value string) map[string]any {
	return map[string]any{
		"kind": "ConfigMap", "immutable": true, "data": map[string]any{"k": value, "other": "x"},
		"metadata": map[string]any{
			"name": s.snapshotName(value), "uid": "snapshot-" + value,
			"labels": map[string]any{snapshotLabel: "true"}, "annotations": map[string]any{ofAnnotation: pinned},
		},
	}
}

func (s *story) snapshot(value string) *story { return s.event(watch.Added, s.snapshotOf(value)) }

// pins are the annotations of a template that is stamped with, and pinned to, a value.
func (s *story) pins(value string) map[string]any {
	annotations := s.stamp(value)
	annotations[pinsAnnotation] = `{"configmap/c":"` + s.snapshotName(value) + ` startup,live"}`
	return annotations
}

// pinning is the Deployment with pins of a value; declined is what has been sent back, if
// it is not empty.
func (s *story) pinning(image, value, declined string) map[string]any {
	var annotations map[string]any
	if declined != "" {
		annotations = map[string]any{declinedAnnotation: `{"configmap/c":"` + s.digest(declined) + `"}`}
	}
	return s.deployment("d", image, s.pins(value), annotations)
}

// pod is one whose template names the snapshot of a value, and that reads another name.
func (s *story) pod(value, reads string) map[string]any {
	annotations := s.pins(value)
	if reads != "c" {
		annotations[pinnedAnnotation] = `{"configmap/c":"` + s.snapshotName(value) + `"}`
	}
	return map[string]any{"kind": "Pod", "metadata": map[string]any{
		"name": "p", "annotations": annotations,
		"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "d-1", "uid": "r", "controller": true}},
	}, "spec": map[string]any{"containers": []any{map[string]any{
		"name": "app", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": reads}}},
	}}}}
}

// needs has a Pod need a key.
func needs(pod map[string]any, key string) map[string]any {
	containers, _, _ := unstructured.NestedSlice(pod, "spec", "containers")
	one := containers[0].(map[string]any)
	from := one["envFrom"].([]any)[0].(map[string]any)["configMapRef"].(map[string]any)["name"]
	one["env"] = []any{map[string]any{"name": "K", "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": from, "key": key}}}}
	_ = unstructured.SetNestedSlice(pod, containers, "spec", "containers")
	return pod
}

// pinnedStory has the Deployment pinned to a, then to b.
func pinnedStory() *story {
	s := tell().snapshot("a")
	s.user(s.pinning("1", "a", ""), Write{What: "put", Unserved: true})
	return s.set("b").snapshot("b").event(watch.Modified, s.pinning("1", "b", ""))
}

// undoneStory goes on with an undo to a.
func undoneStory() *story {
	s := pinnedStory()
	carries := map[string]string{}
	for key, value := range s.pins("a") {
		carries[key], _ = value.(string)
	}
	return s.user(s.pinning("1", "a", "b"), Write{What: "undo", Undo: true, Carries: carries})
}

func (s *story) remove(value string) *story { return s.event(watch.Deleted, s.snapshotOf(value)) }

func (s *story) byUser(value string) *story {
	s.h.Removed = map[types.UID]bool{types.UID("snapshot-" + value): true}
	return s
}

func (s *story) noted(about, reason string) *story {
	s.h.Notes = append(s.h.Notes, Note{About: about, Reason: reason, Text: "text"})
	return s
}

func TestWhatIsRightWithPinsIsNotJudged(t *testing.T) {
	for name, s := range map[string]*story{
		"pinned, and rolled":                   pinnedStory(),
		"a Pod reads the snapshot":             pinnedStory().event(watch.Added, tell().pod("b", tell().snapshotName("b"))),
		"a Pod of an older revision":           pinnedStory().event(watch.Added, tell().pod("a", tell().snapshotName("a"))),
		"its snapshot was deleted by a user":   pinnedStory().remove("a").byUser("a").event(watch.Added, tell().pod("a", tell().snapshotName("a"))),
		"a Pod that nothing pins":              pinnedStory().noted("replicaset/d-1", "NotPinned").event(watch.Added, tell().pod("b", "c")),
		"what nothing names is collected":      pinnedStory().remove("a"),
		"an undo":                              undoneStory(),
		"an undo, and the source is mended":    undoneStory().set("c").snapshot("c").event(watch.Modified, tell().pinning("1", "c", "b")),
		"an undo, and the old content is back": undoneStory().set("a"),
		"an undo, and somebody accepts":        undoneStory().user(tell().pinning("1", "b", ""), Write{What: "accept", Accepts: true, Asked: true}),
		"an undo, and another image":           undoneStory().user(tell().pinning("2", "b", ""), Write{What: "set image"}),
	} {
		if found := s.h.Judge(); len(found) > 0 {
			t.Errorf("%s: %v\n%s", name, found, s.h)
		}
		if _, unpinned := s.h.Pins(); len(unpinned) > 0 {
			t.Errorf("%s: %v\n%s", name, unpinned, s.h)
		}
	}
	if counts, _ := undoneStory().h.Pins(); counts.Undone != 1 || counts.Asked != 1 {
		t.Errorf("%s", counts)
	}
}

func TestEachPromiseOfPinsIsSeenToBeBroken(t *testing.T) {
	other := func(change func(map[string]any)) *story { // another snapshot under the name of that of b
		s := tell()
		copied := s.snapshotOf("b")
		change(copied)
		s.set("b").event(watch.Added, copied).user(s.pinning("1", "b", ""), Write{What: "put"})
		return s.event(watch.Added, s.pod("b", s.snapshotName("b")))
	}
	for name, test := range map[string]struct {
		s               *story
		invariant, says string
	}{
		"a forged snapshot":                    {other(func(o map[string]any) { o["data"] = map[string]any{"k": "z"} }), "P1", "its name is not"},
		"one that can change":                  {other(func(o map[string]any) { delete(o, "immutable") }), "P1", "immutable"},
		"one of another source":                {other(func(o map[string]any) { o["metadata"].(map[string]any)["annotations"] = nil }), "P1", "no snapshot of"},
		"content that never was":               {pinnedStory().snapshot("z").event(watch.Added, tell().pod("z", tell().snapshotName("z"))), "P1", "has never held"},
		"another content than that of stamps":  {pinnedStory().event(watch.Added, mixedPod(tell())), "P1", "stamped with"},
		"another snapshot than that of pins":   {pinnedStory().event(watch.Added, otherPod(tell())), "P1", "its template names"},
		"it says so, and is not":               {pinnedStory().event(watch.Added, unreadPod(tell())), "P1", "reads nothing"},
		"it is, and does not say so":           {pinnedStory().event(watch.Added, silentPod(tell())), "P1", "does not say so"},
		"what a ReplicaSet names is collected": {replicaSetOf(pinnedStory(), "a").remove("a"), "P2", "replicaset/d-1 names it"},
		"what a Pod names is collected":        {pinnedStory().event(watch.Added, tell().pod("a", tell().snapshotName("a"))).remove("a"), "P2", "pod/p names it"},
		"a Pod waits for what nobody deleted":  {tell().set("b").event(watch.Added, tell().pod("b", tell().snapshotName("b"))), "P4", "does not exist"},
		"a Pod waits for what we deleted":      {pinnedStory().remove("a").event(watch.Added, tell().pod("a", tell().snapshotName("a"))), "P4", "does not exist"},
		"a Pod waits for a key":                {pinnedStory().event(watch.Added, needs(tell().pod("b", tell().snapshotName("b")), "more")), "P4", "lacks"},
		"a Pod is not made":                    {pinnedStory().noted("replicaset/d-1", "FailedCreate"), "P4", "could not be created"},
		"an undo is rolled forward":            {undoneStory().event(watch.Modified, tell().pinning("1", "b", "b")), "P5", "nobody asked for"},
		"a restart takes it forward":           {undoneStory().user(restarted(), Write{What: "restart"}), "P5", "nobody asked for"},
		"content is declined by nobody":        {pinnedStory().set("c").event(watch.Modified, tell().pinning("1", "b", "c")), "P5", "there was no undo"},
		"older content without an undo":        {pinnedStory().event(watch.Modified, tell().pinning("1", "a", "")), "I3", "older content"},
		"pins come by themselves":              {tell().snapshot("a").event(watch.Modified, tell().pinning("1", "a", "")), "I2", "no content has changed"},
	} {
		found := test.s.h.Judge()
		seen := false
		for _, violation := range found {
			seen = seen || violation.Invariant == test.invariant && strings.Contains(violation.Text, test.says)
		}
		if !seen {
			t.Errorf("%s: want %s (%s), found %v\n%s", name, test.invariant, test.says, found, test.s.h)
		}
	}
	s := pinnedStory().event(watch.Added, tell().pod("b", "c"))
	if _, unpinned := s.h.Pins(); len(unpinned) != 1 {
		t.Errorf("a Pod is not pinned, and nobody said why: %v", unpinned)
	}
}

func annotated(pod map[string]any, changes map[string]any) map[string]any {
	for key, value := range changes {
		pod["metadata"].(map[string]any)["annotations"].(map[string]any)[key] = value
	}
	return pod
}

func mixedPod(s *story) map[string]any {
	return annotated(s.pod("b", s.snapshotName("b")), s.stamp("a"))
}

func otherPod(s *story) map[string]any {
	return annotated(s.pod("b", s.snapshotName("b")), map[string]any{pinsAnnotation: s.pins("a")[pinsAnnotation]})
}

func unreadPod(s *story) map[string]any {
	return annotated(s.pod("b", "c"), map[string]any{pinnedAnnotation: `{"configmap/c":"` + s.snapshotName("b") + `"}`})
}

func silentPod(s *story) map[string]any {
	pod := s.pod("b", s.snapshotName("b"))
	delete(pod["metadata"].(map[string]any)["annotations"].(map[string]any), pinnedAnnotation)
	return pod
}

// replicaSetOf has a ReplicaSet of the Deployment that names the snapshot of a value.
func replicaSetOf(s *story, value string) *story {
	return s.event(watch.Added, map[string]any{
		"kind": "ReplicaSet", "metadata": map[string]any{"name": "d-1", "uid": "r"},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": s.pins(value)}}},
	})
}

// restarted is a restart that takes today's content.
func restarted() map[string]any {
	object := tell().pinning("1", "b", "b")
	_ = unstructured.SetNestedField(object, "now", "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
	return object
}
