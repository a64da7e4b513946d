package pins

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// state is what a revision of a workload is: its image, and the source's word then.
type state struct{ image, word string }

func (s state) String() string { return s.image + " with " + s.word }

// history drives one workload through images and words, and back.
type history struct {
	*room
	m *member
	// pins are those of each state's template.
	pins map[state]string
}

// P5: image and content change in turns; undo, in one, two and three steps back, gives image
// and bytes of then. An undo can be undone. Nothing of ours takes the workload forward until
// somebody accepts the present content, or it changes.
func TestUndoGivesTheContentOfThen(t *testing.T) {
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, "one", member{kind: kind, app: "web", ways: ways})
			h := &history{room: r, m: &r.members[0], pins: map[state]string{}}
			h.play()
		})
	}
}

func (h *history) play() {
	one, two, three, four := state{images[0], "one"}, state{images[1], "one"}, state{images[1], "two"}, state{images[2], "three"}
	h.reached(one)
	h.image(two.image)
	h.reached(two)
	h.write("two")
	h.reached(three)
	// Content and image, together.
	h.write("three")
	h.image(four.image)
	h.reached(four)

	h.undo("")               // one step back
	h.stays(three, "three")  // the present content is declined
	h.undo("")               // an undo is undone
	h.stays(four, "")        // and nothing is declined
	h.undo(h.revision(two))  // two steps
	h.stays(two, "three")    //
	h.undo(h.revision(four)) //
	h.stays(four, "")        //
	h.undo(h.revision(one))  // three steps
	h.stays(one, "three")    //
	h.space.Kubectl("rollout", "restart", h.m.name())
	h.stays(one, "three")

	// A new image may need the new content.
	h.image(three.image)
	h.reached(state{three.image, "three"})
	h.stays(state{three.image, "three"}, "")

	// What was declined is accepted.
	h.undo(h.revision(one))
	h.stays(one, "three")
	h.space.Readmit(h.m.name(), "configstamp")
	h.stays(one, "three")
	h.space.Readmit(h.m.name(), "configstamp-accept")
	h.reached(state{one.image, "three"})
	h.stays(state{one.image, "three"}, "")

	// Or the source changes.
	h.undo(h.revision(three))
	h.stays(three, "three")
	h.write("four")
	h.reached(state{three.image, "four"})
}

// image gives the workload another image, as a pipeline does.
func (h *history) image(image string) {
	h.t.Helper()
	h.space.Kubectl("set", "image", h.m.name(), "app="+image)
}

// reached waits until the workload's pod is as a state says, and remembers its pins.
func (h *history) reached(s state) {
	h.t.Helper()
	h.wants(s)
	h.pins[s] = h.templatePins()
}

func (h *history) wants(s state) {
	h.t.Helper()
	h.want(h.m, s.word)
	err := h.wait(func() error {
		pods, err := h.running(h.m, 1)
		if err == nil && pods[0].Spec.Containers[0].Image != s.image {
			err = fmt.Errorf("%s runs %s, want %s", pods[0].Name, pods[0].Spec.Containers[0].Image, s.image)
		}
		return err
	})
	if err != nil {
		h.t.Fatalf("want %s: %v\n%s", s, err, h.space.Report())
	}
	h.wantPinned(h.m, true)
}

func (h *history) templatePins() string {
	h.t.Helper()
	object := h.space.Get(h.m.name())
	annotations, _ := dig(object.Object, "spec", "template", "metadata", "annotations").(map[string]any)
	text, _ := annotations["configstamp.dev/pins"].(string)
	if !strings.Contains(text, source) {
		h.t.Fatalf("the template of %s has configstamp.dev/pins=%q\n%s", h.m.name(), text, h.space.Report())
	}
	return text
}

// stays checks that the workload gets to a state and stays there, also when its pod is
// deleted; and whether what the source says now is declined: "" for not.
func (h *history) stays(s state, declined string) {
	h.t.Helper()
	h.wants(s)
	h.space.Quiet()
	var pods []corev1.Pod
	h.space.Eventually("waiting for a pod", func() (err error) { // a StatefulSet has none for a moment while it rolls
		if pods, err = h.pods(h.m); err == nil && len(pods) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	if err := h.end(&pods[0], deleted); err != nil && !apierrors.IsNotFound(err) {
		h.t.Fatal(err)
	}
	h.wants(s)
	text, is := h.space.Get(h.m.name()).GetAnnotations()["configstamp.dev/declined"]
	if holds := is && h.declines(text); holds != (declined != "") {
		h.t.Errorf("at %s: configstamp.dev/declined is %q, want that it holds the present content (%s): %t", s, text, declined, declined != "")
	}
}

// declines reports whether a text holds the present digest of the source.
func (h *history) declines(text string) bool {
	h.t.Helper()
	found := map[string]string{}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		h.t.Fatalf("configstamp.dev/declined=%q: %v", text, err)
	}
	return strings.Contains(" "+found[source]+" ", " "+h.space.Digest(source)+" ")
}

// undo is kubectl rollout undo, to a revision if one is given; it must be warned of.
func (h *history) undo(revision string) {
	h.t.Helper()
	arguments := []string{"rollout", "undo", h.m.name()}
	if revision != "" {
		arguments = append(arguments, "--to-revision="+revision)
	}
	h.t.Logf("kubectl %s: %q", strings.Join(arguments, " "), h.space.Kubectl(arguments...).Warnings())
}

// revision is the newest one with the image and the pins of a state.
func (h *history) revision(s state) string {
	h.t.Helper()
	resource := "controllerrevisions"
	if h.m.kind == "Deployment" {
		resource = "replicasets"
	}
	body, err := run.Client.Discovery().RESTClient().Verb(http.MethodGet).
		RequestURI("/apis/apps/v1/namespaces/" + h.space.Namespace + "/" + resource).DoRaw(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(body, &list); err != nil {
		h.t.Fatal(err)
	}
	for _, item := range list.Items {
		if restarted(item) {
			continue
		}
		text, err := json.Marshal(item)
		if err != nil {
			h.t.Fatal(err)
		}
		pins, _ := json.Marshal(h.pins[s])
		if !strings.Contains(string(text), string(pins)) || !strings.Contains(string(text), `"image":"`+s.image+`"`) {
			continue
		}
		if number, is := item["revision"].(float64); is {
			return fmt.Sprint(int64(number))
		}
		number, _ := dig(item, "metadata", "annotations", "deployment.kubernetes.io/revision").(string)
		return number
	}
	h.t.Fatalf("no revision of %s is %s\n%s", h.m.name(), s, body)
	return ""
}

// restarted reports whether a revision is one of kubectl rollout restart.
func restarted(item map[string]any) bool {
	text, err := json.Marshal(item)
	return err == nil && strings.Contains(string(text), `"kubectl.kubernetes.io/restartedAt":"`)
}

// dig is what stands at a path in an object, nil if nothing does.
func dig(object any, path ...string) any {
	for _, field := range path {
		fields, is := object.(map[string]any)
		if !is {
			return nil
		}
		object = fields[field]
	}
	return object
}
