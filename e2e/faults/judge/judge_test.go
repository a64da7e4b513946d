package judge

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/configstamp/configstamp/e2e/harness"
)

// story makes a history, one write after the other.
type story struct {
	h       *History
	version int64
	now     time.Time
}

// tell begins with an opted-in namespace, ConfigMap c holding a, and Deployment
// d that reads all of it and carries its stamp.
func tell() *story {
	s := &story{h: &History{Namespace: "n", Writes: map[int64]Write{}, Keys: []harness.Key{{Name: "1", Material: []byte("key")}}}, now: time.Unix(0, 0)}
	s.namespace("enabled")
	s.set("a")
	s.user(s.deployment("d", "1", s.stamp("a"), nil), Write{What: "create", Defaulted: true})
	return s
}

func (s *story) event(kind watch.EventType, object map[string]any) *story {
	s.version++
	s.now = s.now.Add(10 * time.Second)
	o := (&unstructured.Unstructured{Object: object}).DeepCopy()
	o.SetNamespace("n")
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	s.h.Events = append(s.h.Events, Event{Version: s.version, Seen: s.now, Type: kind, Object: o})
	return s
}

func (s *story) namespace(value string) *story {
	return s.event(watch.Modified, map[string]any{"kind": "Namespace", "metadata": map[string]any{"name": "n", "labels": map[string]any{harness.InjectLabel: value}}})
}

func (s *story) set(value string) *story {
	return s.event(watch.Modified, map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "c"}, "data": map[string]any{"k": value, "other": "x"}})
}

func (s *story) unset() *story {
	return s.event(watch.Deleted, map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "c"}})
}

func (s *story) digest(value string) string {
	return harness.Digest([]byte("key"), "configmap", "n", "c", map[string][]byte{"k": []byte(value), "other": []byte("x")}, nil)
}

func (s *story) stamp(value string) map[string]any {
	return map[string]any{"configmap.configstamp.dev/c": s.digest(value)}
}

func (s *story) baseline(value string) map[string]any {
	return map[string]any{"configstamp.dev/baseline": `{"configmap/c":"` + s.digest(value) + `"}`}
}

func (s *story) deployment(uid, image string, stamps, annotations map[string]any) map[string]any {
	metadata := map[string]any{"name": "d", "uid": uid}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
		"name": "app", "image": image, "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "c"}}},
	}}}}
	if stamps != nil {
		template["metadata"] = map[string]any{"annotations": maps.Clone(stamps)}
	}
	return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": map[string]any{"replicas": int64(1), "template": template}}
}

// oneKey is the Deployment that reads one key alone, with its stamp for a value.
func (s *story) oneKey(value string) map[string]any {
	digest := harness.Digest([]byte("key"), "configmap", "n", "c", map[string][]byte{"k": []byte(value), "other": []byte("x")}, []string{"k"})
	object := s.deployment("d", "1", map[string]any{"configmap.configstamp.dev/c": digest}, nil)
	_ = unstructured.SetNestedField(object, []any{map[string]any{"name": "app", "image": "1", "env": []any{map[string]any{
		"name": "K", "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "c", "key": "k"}},
	}}}}, "spec", "template", "spec", "containers")
	return object
}

// user is a write of the user's.
func (s *story) user(object map[string]any, write Write) *story {
	write.Began = s.now
	s.h.Writes[s.version+1] = write
	return s.event(watch.Modified, object)
}

// roll is what we do: the stamp goes to a value.
func (s *story) roll(value string) *story {
	return s.event(watch.Modified, s.deployment("d", "1", s.stamp(value), nil))
}

// record is a baseline of ours on an unstamped workload.
func (s *story) record(value string) *story {
	return s.event(watch.Modified, s.deployment("d", "1", nil, s.baseline(value)))
}

func TestWhatIsRightIsNotJudged(t *testing.T) {
	for name, s := range map[string]*story{
		"nothing happens":                         tell(),
		"an edit rolls once":                      tell().set("b").roll("b"),
		"two edits, one roll":                     tell().set("b").set("c").roll("c"),
		"there and back, both rolled":             tell().set("b").roll("b").set("a").roll("a"),
		"there and back, unseen":                  tell().set("b").set("a"),
		"gone, and the same again":                tell().unset().set("a"),
		"gone: the last stamp stays":              tell().unset(),
		"gone, and other content":                 tell().unset().set("b").roll("b"),
		"the roll takes what came after its look": tell().set("b").set("c").roll("b").roll("c"),
		"what was put back meanwhile is healed":   tell().set("b").set("a").roll("b").roll("a"),
		"a new image brings today's content": func() *story {
			s := tell().set("b")
			return s.user(s.deployment("d", "2", s.stamp("b"), nil), Write{What: "set image"})
		}(),
		"a user selects another key where nothing can be proven: memory lags, and it heals": func() *story {
			s := tell().set("b").roll("b")
			return s.user(s.oneKey("a"), Write{What: "select"}).event(watch.Modified, s.oneKey("b"))
		}(),
		"a PUT that no webhook saw drops the stamps; what is there is recorded, and rolls when it changes": func() *story {
			s := tell().set("b")
			return s.user(s.deployment("d", "1", nil, nil), Write{What: "put", Unserved: true}).record("b").set("c").roll("c")
		}(),
		"an undo that no webhook saw brings an old stamp back, which is healed": func() *story {
			s := tell().set("b").roll("b")
			return s.user(s.deployment("d", "1", s.stamp("a"), nil), Write{What: "undo", Unserved: true}).roll("b")
		}(),
		"an undo of what is opted out brings an old stamp back, which is the user's": func() *story {
			s := tell().set("b").roll("b").namespace("disabled")
			return s.user(s.deployment("d", "1", s.stamp("a"), nil), Write{What: "undo", Carries: map[string]string{"configmap.configstamp.dev/c": s.digest("a")}})
		}(),
		"an apply keeps what another manager owns": applied(
			[]any{map[string]any{"name": "a"}}, []any{map[string]any{"name": "theirs"}, map[string]any{"name": "a", "default": "x"}}),
		"a PUT of which the API server told nobody, as it did not know yet that it was opted in again": func() *story {
			s := tell().namespace("disabled").namespace("enabled")
			s.now = s.now.Add(-9 * time.Second) // the next event comes a second later
			return s.user(s.deployment("d", "1", nil, nil), Write{What: "put"}).record("a")
		}(),
		"opted out, edited, opted in, rolled": tell().namespace("disabled").set("b").namespace("enabled").roll("b"),
	} {
		if found := s.h.Judge(); len(found) > 0 {
			t.Errorf("%s: %v\n%s", name, found, s.h)
		}
	}
}

func TestEachInvariantIsSeenToBeViolated(t *testing.T) {
	tests := map[string]struct {
		s         *story
		invariant string
		says      string
	}{
		"an edit that nobody rolled":                           {tell().set("b"), "I1", "not what it holds"},
		"a stamp that was true once":                           {tell().set("b").roll("b").set("c"), "I1", "not what it holds"},
		"nothing on record":                                    {tell().event(watch.Modified, tell().deployment("e", "1", nil, nil)), "I1", "nothing is on record"},
		"a stamp of what never was":                            {tell().roll("z"), "I1", "never held"},
		"a stamp of what is not yet":                           {tell().roll("b").set("b"), "I1", "never held"},
		"a change recorded and not rolled":                     {tell().set("b").event(watch.Modified, mixed(tell(), "a", "b")), "I1", "nothing rolls"},
		"a record dropped":                                     {tell().event(watch.Modified, tell().deployment("d", "1", nil, nil)), "I1", "is gone"},
		"a roll without a change":                              {tell().event(watch.Modified, mixed(tell(), "a", "a")).event(watch.Modified, withStamp(tell(), "other")), "I2", "no content has changed"},
		"a roll by a label":                                    {labelled(tell().set("b"), "b"), "I2", "changes no template"},
		"back to older content":                                {tell().set("b").roll("b").set("c").roll("c").roll("b").set("b"), "I3", "older content"},
		"older content by a late replica":                      {tell().set("b").roll("b").roll("a").set("a"), "I3", "older content"},
		"older content of another selection by nobody's write": {tell().set("b").roll("b").event(watch.Modified, tell().oneKey("a")), "I3", "older content"},
		"another container's image":                            {tell().event(watch.Modified, tell().deployment("d", "9", tell().stamp("a"), nil)), "I4", "image"},
		"an annotation of somebody else's":                     {tell().event(watch.Modified, tell().deployment("d", "1", tell().stamp("a"), map[string]any{"theirs": "x"})), "I4", "theirs"},
		"a label is added to what a user puts":                 {addedLabel(), "I4", "labels"},
		"a PUT long after it was opted in again":               {tell().namespace("disabled").namespace("enabled").user(tell().deployment("d", "1", nil, nil), Write{What: "put"}), "I1", "is gone"},
		"an item of what a user applies is lost":               {applied([]any{map[string]any{"name": "a"}}, []any{map[string]any{"name": "theirs"}}), "I4", "volumes[0]"},
		"a user's replicas are lost":                           {lostReplicas(), "I4", "replicas"},
		"a stamp where nothing is opted in":                    {tell().namespace("disabled").set("b").roll("b"), "I5", "not opted in"},
		"more ReplicaSets than templates":                      {replicaSets(tell(), 2), "I2", "2 ReplicaSets for 1 templates"},
		"a roll while another source is missing":               {rollWithout(), "I2", "is missing"},
		"required, and absent on record":                       {tell().unset().event(watch.Modified, absentStamp(tell())), "I2", "recorded as absent"},
	}
	for name, test := range tests {
		found := test.s.h.Judge()
		seen := false
		for _, violation := range found {
			seen = seen || violation.Invariant == test.invariant && strings.Contains(violation.Text, test.says)
		}
		if !seen {
			t.Errorf("%s: want %s (%s), found %v\n%s", name, test.invariant, test.says, found, test.s.h)
		}
	}
}

func TestContentIsSeenInEveryForm(t *testing.T) {
	for _, text := range []string{Marker, "374d41524b2d37663363", "xTUFSSy03ZjNj", "stamps 4d41524b2d37663363"} {
		if len(Leaks("log", []byte(text), Marker)) == 0 {
			t.Errorf("%q is not seen", text)
		}
	}
	if found := Leaks("log", []byte("v1:0c3d:all:00ff"), Marker); len(found) > 0 {
		t.Error(found)
	}
}

// mixed carries a stamp of one content and a baseline of another.
func mixed(s *story, stamp, baseline string) map[string]any {
	return s.deployment("d", "1", s.stamp(stamp), s.baseline(baseline))
}

func withStamp(s *story, name string) map[string]any {
	stamps := s.stamp("a")
	stamps["configmap.configstamp.dev/"+name] = s.digest("a")
	return s.deployment("d", "1", stamps, s.baseline("a"))
}

func absentStamp(s *story) map[string]any {
	return s.deployment("d", "1", map[string]any{"configmap.configstamp.dev/c": absent}, nil)
}

func labelled(s *story, value string) *story {
	object := s.deployment("d", "1", s.stamp(value), nil)
	return s.user(object, Write{What: "label"})
}

func addedLabel() *story {
	s := tell()
	sent := s.deployment("d", "2", nil, nil)
	stored := s.deployment("d", "2", s.stamp("a"), nil)
	stored["metadata"].(map[string]any)["labels"] = map[string]any{"broken": "x"}
	return s.user(stored, Write{What: "put", Sent: &unstructured.Unstructured{Object: sent}, Defaulted: true})
}

// applied is an apply of some volumes, and what was stored.
func applied(sent, stored []any) *story {
	s := tell()
	with := func(volumes []any, stamps map[string]any) map[string]any {
		object := s.deployment("d", "2", stamps, nil)
		_ = unstructured.SetNestedSlice(object, volumes, "spec", "template", "spec", "volumes")
		return object
	}
	return s.user(with(stored, s.stamp("a")), Write{What: "apply", Sent: &unstructured.Unstructured{Object: with(sent, nil)}, Defaulted: true, Merged: true})
}

func lostReplicas() *story {
	s := tell()
	sent := s.deployment("d", "1", s.stamp("a"), nil)
	sent["spec"].(map[string]any)["replicas"] = int64(3)
	return s.user(s.deployment("d", "1", s.stamp("a"), nil), Write{What: "scale", Sent: &unstructured.Unstructured{Object: sent}})
}

// rollWithout has the workload need ConfigMap e too, which never is there.
func rollWithout() *story {
	s := tell()
	needs := func(value string) map[string]any {
		object := s.deployment("d", "1", s.stamp(value), nil)
		containers, _, _ := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
		from := containers[0].(map[string]any)
		from["envFrom"] = append(from["envFrom"].([]any), map[string]any{"configMapRef": map[string]any{"name": "e"}})
		_ = unstructured.SetNestedSlice(object, containers, "spec", "template", "spec", "containers")
		return object
	}
	return s.user(needs("a"), Write{What: "put"}).set("b").event(watch.Modified, needs("b"))
}

func replicaSets(s *story, count int) *story {
	for i := range count {
		s.event(watch.Added, map[string]any{"kind": "ReplicaSet", "metadata": map[string]any{
			"name": "d-" + strconv.Itoa(i), "uid": strconv.Itoa(i),
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "d", "controller": true}},
		}})
	}
	return s
}
