package records

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// undone is web-app that was rolled from one content to another, and back by kubectl.
func undone(t *testing.T) (s *harness.Space, was string) {
	t.Helper()
	s = space(t)
	s.Set(source, "MESSAGE", "hello world")
	s.Create(manifest("Deployment", "web-app", ""))
	before := s.Settled(web)
	was = wantPin(t, s, web)
	s.Edit(source, "MESSAGE", "a mistake")
	s.WantRolls(before, rolls{web: 1})
	before = s.Counts()
	wantSaid(t, s.Kubectl("rollout", "undo", web), "configmap/web-message is back at its earlier content of 20", "kubectl configstamp accept")
	s.WantRollsBack(before, rolls{web: 1})
	wantPinnedTo(t, s, was)
	wantDeclined(t, s, true)
	return s, was
}

func wantPinnedTo(t *testing.T, s *harness.Space, name string) {
	t.Helper()
	if got, _ := pinOf(s, web); got != name {
		t.Errorf("web-app is pinned to %s, want %s", got, name)
	}
}

// wantDeclined checks whether the present content is declined.
func wantDeclined(t *testing.T, s *harness.Space, want bool) {
	t.Helper()
	text := s.Get(web).GetAnnotations()["configstamp.dev/declined"]
	if is := strings.Contains(text, s.Digest(source)); is != want {
		t.Errorf("configstamp.dev/declined=%q holds the present content: %t, want %t", text, is, want)
	}
}

// What kubectl says, and who is told, and that nothing takes the content again but an order.
func TestUndo_IsSaidAndHolds(t *testing.T) {
	t.Parallel()
	s, was := undone(t)
	s.WantNote(web, "UndoTaken: ")
	if notes := s.Notes(web); !slices.ContainsFunc(notes, func(note string) bool {
		return strings.HasPrefix(note, "UndoTaken: ") && strings.Contains(note, "configmap/web-message")
	}) {
		t.Errorf("%q", notes)
	}
	before := s.Counts()
	s.Readmit(web, "configstamp")
	s.Patch(web, `{"metadata":{"labels":{"team":"a"}}}`)
	s.Unchanged(before)
	wantSaid(t, s.Kubectl("rollout", "restart", web), "configmap/web-message stays at older content")
	s.WantRolls(before, rolls{web: 1})
	wantPinnedTo(t, s, was)
	wantDeclined(t, s, true)

	before = s.Counts()
	s.Readmit(web, "configstamp-accept")
	s.WantRolls(before, rolls{web: 1})
	wantDeclined(t, s, false)
	wantPin(t, s, web)
	if said := s.Kubectl("rollout", "restart", web); len(said.Warnings()) > 0 {
		t.Errorf("%q", said.Warnings())
	}
}

// An image may need the content of now.
func TestUndo_EndsWithANewImage(t *testing.T) {
	t.Parallel()
	s, was := undone(t)
	before := s.Counts()
	wantSaid(t, s.Kubectl("set", "image", web, "app=registry.example/app:2"), "configmap/web-message: the workload takes its present content, which an undo had declined")
	s.WantRolls(before, rolls{web: 1})
	wantDeclined(t, s, false)
	if name := wantPin(t, s, web); name == was {
		t.Errorf("web-app is still pinned to %s", was)
	}
	s.WantNote(web, "DeclinedCleared: ")
}

// New content is not what was declined; what was stays refused.
func TestUndo_EndsWithNewContent(t *testing.T) {
	t.Parallel()
	s, _ := undone(t)
	before := s.Counts()
	s.Edit(source, "MESSAGE", "hello KodeKloud")
	s.WantRolls(before, rolls{web: 1})
	wantPin(t, s, web)
	before = s.Counts()
	s.Edit(source, "MESSAGE", "a mistake")
	s.Unchanged(before)
	wantDeclined(t, s, true)
}

// A dry run of an undo says the same, and does nothing.
func TestUndo_DryRun(t *testing.T) {
	t.Parallel()
	s := space(t)
	s.Set(source, "MESSAGE", "hello world")
	s.Create(manifest("Deployment", "web-app", ""))
	before := s.Settled(web)
	s.Edit(source, "MESSAGE", "a mistake")
	s.WantRolls(before, rolls{web: 1})
	before = s.Counts()
	wantSaid(t, s.Kubectl("rollout", "undo", web, "--dry-run=server"), "configmap/web-message is back at its earlier content of 20")
	s.Unchanged(before)
	wantDeclined(t, s, false)
	wantSaid(t, s.Kubectl("rollout", "undo", web), "configmap/web-message is back at its earlier content of 20")
	s.WantRollsBack(before, rolls{web: 1})
}

// An image that is undone while a workload is held must not bring the content that it is held
// from, although its checksums do not change.
func TestUndo_OfAnImageWhileHeld(t *testing.T) {
	t.Parallel()
	s := space(t)
	s.Set(source, "MESSAGE", "hello world")
	s.Create(manifest("Deployment", "web-app", ""))
	before := s.Settled(web)
	was := wantPin(t, s, web)
	s.Kubectl("set", "image", web, "app=registry.example/app:2")
	s.WantRolls(before, rolls{web: 1})
	s.SetPolicy("namespace", map[string]string{"pause": "true"})
	time.Sleep(time.Second)
	s.Edit(source, "MESSAGE", "a mistake")
	before = s.Counts()
	s.Quiet()
	wantSaid(t, s.Kubectl("rollout", "undo", web), "configmap/web-message is back at its earlier content of 20")
	s.WantRollsBack(before, rolls{web: 1})
	wantPinnedTo(t, s, was)
	wantDeclined(t, s, true)
	before = s.Counts()
	s.DropPolicy("namespace", map[string]string{"pause": ""})
	s.Unchanged(before)
	wantPinnedTo(t, s, was)
}

// An undo whose snapshot is gone brings the template back, and says that the content does not
// go with it.
func TestUndo_WithoutItsSnapshot(t *testing.T) {
	t.Parallel()
	s := space(t)
	s.Set(source, "MESSAGE", "hello world")
	s.Create(manifest("Deployment", "web-app", ""))
	s.Settled(web)
	was := wantPin(t, s, web)
	s.Edit(source, "MESSAGE", "hello KodeKloud")
	s.Kubectl("set", "image", web, "app=registry.example/app:2")
	is := wantPin(t, s, web)
	s.Quiet()
	s.Delete("configmap/" + was)
	s.Quiet()
	before := s.Counts()
	wantSaid(t, s.Kubectl("rollout", "undo", web, "--to-revision=1"), "a snapshot that this revision names is missing")
	s.Eventually("waiting for the rollout", func() error {
		if now := s.Counts(); now[web].Rolls == before[web].Rolls {
			return errors.New("there is none")
		}
		return nil
	})
	if got := wantPin(t, s, web); got != is {
		t.Errorf("web-app is pinned to %s, want %s", got, is)
	}
	wantDeclined(t, s, false)
}

// A manifest in Git that has our annotations fights with nobody.
func TestUndo_AnExportedManifestIsNone(t *testing.T) {
	t.Parallel()
	s := space(t)
	s.Set(source, "MESSAGE", "hello world")
	s.Create(manifest("Deployment", "web-app", ""))
	before := s.Settled(web)
	wantPin(t, s, web)
	exported := s.Kubectl("get", web, "-o", "yaml").Stdout
	s.Edit(source, "MESSAGE", "hello KodeKloud")
	s.WantRolls(before, rolls{web: 1})
	name := wantPin(t, s, web)
	before = s.Counts()
	manifest := dropLine(exported, "  resourceVersion:")
	for range 2 {
		s.KubectlInput(manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
		wantPinnedTo(t, s, name)
	}
	s.Unchanged(before)
	wantDeclined(t, s, false)
}

func dropLine(text, prefix string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, prefix) && !strings.HasPrefix(line, "  managedFields:") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// P3: switching pins off, and on again, restarts nothing; nor does it take what was declined.
func TestSwitch_RestartsNothing(t *testing.T) {
	product := run.Exclusive(t)
	s, was := undone(t)
	s.Create(manifest("StatefulSet", "db", "") + manifest("DaemonSet", "agent", ""))
	before := s.Settled(web, "statefulset/db", "daemonset/agent")
	off := harness.Options{Settle: harness.Settle}
	t.Run("off", func(t *testing.T) {
		run.Configure(t, "MutatingWebhookConfiguration", "e2e/testdata/everything.yaml")
		s := s.In(t)
		harness.Must(t, product.Restart(t.Context(), off))
		time.Sleep(3 * time.Second)
		s.Unchanged(before)
		wantPinnedTo(t, s, was)
		wantDeclined(t, s, true)
		// New Pods are unpinned at once.
		s.Kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
		if pod := podOf(t, s, "db"); pod.Annotations["configstamp.dev/pinned"] != "" {
			t.Errorf("%s is pinned: %s", pod.Name, pod.Annotations["configstamp.dev/pinned"])
		}
	})
	harness.Must(t, product.Restart(t.Context(), options()))
	time.Sleep(3 * time.Second)
	s.Unchanged(before)
	s.Kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
	is, _ := pinOf(s, "statefulset/db")
	if pod := podOf(t, s, "db"); !strings.Contains(pod.Annotations["configstamp.dev/pinned"], is) {
		t.Errorf("%s is not pinned to %s: %s", pod.Name, is, pod.Annotations["configstamp.dev/pinned"])
	}
	s.Edit(source, "MESSAGE", "hello KodeKloud")
	s.WantRolls(before, rolls{web: 1, "statefulset/db": 1, "daemonset/agent": 1})
	wantPin(t, s, web)
}
