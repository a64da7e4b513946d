package webhook

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/snapshot/archive"
	"github.com/configstamp/configstamp/internal/workload"
)

// Revisions are listed for a creation, and for a request that may be an undo, and for no other.
func TestUndo_AsksNoMoreThanNeeded(t *testing.T) {
	for name, want := range map[string]int{
		"undo-roll": 1, "undo-image": 1, "undo-image-while-held": 1, "undo-unknown": 1,
		"undo-named-manager": 0, "undo-without-policy": 0, "undo-stamp-alone": 0, "pin-create": 1, "pin-create-made-up": 1, "create-job": 0,
		"pin-roll": 0, "pin-set-image": 0, "pin-label": 0, "pin-exported": 0, "declined-restart": 0, "declined-accept": 0,
	} {
		handler, request := caseRequest(t, name)
		admit(silent(t), t, handler, request)
		if got := handler.Revisions.(*revisions).asked; got != want {
			t.Errorf("%s: revisions were listed %d times, want %d", name, got, want)
		}
	}
}

// A scale, a label or anything else that leaves template and records alone costs no LIST,
// though it names no field manager either.
func TestUndo_NothingChangesNothingIsAsked(t *testing.T) {
	handler, request := caseRequest(t, "pin-label")
	setManager(request, "")
	admit(silent(t), t, handler, request)
	if got := handler.Revisions.(*revisions).asked; got != 0 {
		t.Errorf("revisions were listed %d times", got)
	}
}

var webMessage = checksum.Source{Kind: checksum.ConfigMap, Name: "web-message"}

// goneSnapshot is an undo to a snapshot that was deleted, and whose source holds the same content again.
func goneSnapshot(t *testing.T) (*Handler, *admissionv1.AdmissionRequest) {
	t.Helper()
	c, _ := readCase(t, "testdata/cases/undo-roll.yaml")
	c.Sources, c.Snapshots = c.Before, nil
	return c.handler(t), c.request(t, c.Object)
}

// Only an answer of the API server says that a snapshot is gone. If it cannot be read or made in time, it is not known
// whether the request is an undo.
func TestUndo_ASnapshotIsGoneOnlyByAnAnswer(t *testing.T) {
	for about, test := range map[string]struct {
		change func(*store)
		want   reason.Reason
	}{
		"not read in time": {func(s *store) { s.unread = errUnproven }, reason.UndoUnknown},
		"not made in time": {func(s *store) { s.fails[webMessage] = context.DeadlineExceeded }, reason.UndoUnknown},
		"no quota":         {func(s *store) { s.fails[webMessage] = archive.ErrQuota }, reason.UndoLost},
		"another content":  {func(s *store) { s.fails[webMessage] = archive.ErrChanged }, reason.UndoLost},
	} {
		handler, request := goneSnapshot(t)
		test.change(snapshotsOf(handler))
		response := admit(silent(t), t, handler, request)
		if !slices.Contains(response.Warnings, test.want.Warning(reason.Values{})) || response.AuditAnnotations["outcome"] != reason.Restored.Label() {
			t.Errorf("%s: warned %q, outcome %s; want %s", about, response.Warnings, response.AuditAnnotations["outcome"], test.want)
		}
	}
}

// Snapshots are made after the decision. A dry run decides the same, and makes none.
func TestUndo_MakesSnapshotsAfterTheDecision(t *testing.T) {
	for _, dry := range []bool{false, true} {
		handler, request := goneSnapshot(t)
		request.DryRun = &dry
		r, err := handler.read(request)
		if err != nil {
			t.Fatal(err)
		}
		by, _ := handler.serves(silent(t), r)
		if f, _, err := handler.gather(silent(t), r, by); err != nil || len(snapshotsOf(handler).made) > 0 || f.Revision != checksum.Undo {
			t.Errorf("dry run %t: before the decision %v were made, revision %d, %v", dry, snapshotsOf(handler).made, f.Revision, err)
		}
		response := admit(silent(t), t, handler, request)
		if made := len(snapshotsOf(handler).made); response.AuditAnnotations["outcome"] != reason.UndoTaken.Label() || made == 1 == dry {
			t.Errorf("dry run %t: outcome %s, %d snapshots were made", dry, response.AuditAnnotations["outcome"], made)
		}
	}
}

// An undo is told of on the workload, with the name of the user.
func TestUndo_IsReported(t *testing.T) {
	for name, want := range map[string][]string{
		"undo-roll":          {`Deployment shop/web-app u-web undo: user "ann": configmap/web-message is back at its earlier content of 2026-03-14T09:26:00Z; its present content is declined until it changes again, or until kubectl configstamp accept`},
		"declined-set-image": {`Deployment shop/web-app u-web declined-cleared: field manager "kubectl-set": configmap/web-message: the workload takes its present content, which an undo had declined: the template changed, and may need it`},
		"pin-roll-late":      {`Deployment shop/web-app u-web not-pinned: field manager "configstamp": configmap/web-message: not pinned: its snapshot could not be made in time; containers that start later read its content at that time`},
		"undo-dry-run":       nil,
		"undo-mixed":         nil,
		"pin-roll":           nil,
		"pin-create-quota":   nil, // its warning is read by whoever creates it, and it has no uid yet
	} {
		handler, request := caseRequest(t, name)
		request.UserInfo.Username = "ann"
		var told []string
		handler.Report = func(about corev1.ObjectReference, why reason.Reason, sentence string) {
			told = append(told, fmt.Sprint(about.Kind, " ", about.Namespace, "/", about.Name, " ", about.UID, " ", why, ": ", sentence))
		}
		admit(silent(t), t, handler, request)
		if !slices.Equal(told, want) {
			t.Errorf("%s: told %q, want %q", name, told, want)
		}
	}
}

// An API server that does not answer holds an undo, or a creation, up no longer than its bound.
func TestRevisions_AreReadWithinABound(t *testing.T) {
	for name, why := range map[string]reason.Reason{"undo-roll": reason.UndoUnknown, "again-unstamped": reason.AgainUnknown} {
		synctest.Test(t, func(t *testing.T) {
			handler, request := caseRequest(t, name)
			handler.Revisions = stuckRevisions{}
			if handler.Pins != nil {
				handler.Pins.Revisions = handler.Revisions
			}
			began := time.Now()
			response := admit(silent(t), t, handler, request)
			if took := time.Since(began); took > pins.RevisionsWithin {
				t.Errorf("it took %s", took)
			}
			if !slices.Contains(response.Warnings, checksum.Finding{Reason: why}.Warning()) {
				t.Errorf("%s: warned %q", name, response.Warnings)
			}
		})
	}
}

// A panic while revisions are read is the creation's own: it is stamped as ever, and nothing ends.
func TestRevisions_APanicStampsAsEver(t *testing.T) {
	handler, request := caseRequest(t, "again-unstamped")
	handler.Revisions = nil
	if response := admit(silent(t), t, handler, request); response.AuditAnnotations["outcome"] != reason.Stamped.Label() {
		t.Errorf("it came to %q", response.AuditAnnotations["outcome"])
	}
}

// If pods cannot be listed, it is not known which of several orphaned revisions runs, and none is taken for it. A single
// one needs no list.
func TestRevisions_NoneIsChosenIfPodsAreUnknown(t *testing.T) {
	for name, unknown := range map[string]bool{"again-newest-with-pods": true, "again-no-pods": true, "again-stamped": false} {
		handler, request := caseRequest(t, name)
		handler.Revisions.(*revisions).podless = errUnproven
		response := admit(silent(t), t, handler, request)
		if slices.Contains(response.Warnings, reason.AgainUnknown.Warning(reason.Values{})) != unknown {
			t.Errorf("%s: warned %q, outcome %s", name, response.Warnings, response.AuditAnnotations["outcome"])
		}
	}
}

// Every read of an admission ends with the request's own bound, whatever the API server does, and the request gets
// its answer: three quarters of the timeout of the webhook, less half a second.
func TestAdmit_EveryReadEndsWithTheRequest(t *testing.T) {
	for _, name := range []string{"create-deployment", "rolling-untrue", "set-image", "again-newest-with-pods", "again-lost-key", "undo-roll", "undo-image", "pin-create", "pin-roll-alone", "rolling-key-not-looked-up"} {
		for _, all := range []bool{true, false} { // also if the Namespace and the revisions answer
			synctest.Test(t, func(t *testing.T) {
				handler, request := caseRequest(t, name)
				handler.stick(all)
				began := time.Now()
				admit(silent(t), t, handler, request)
				if took, most := time.Since(began), admission.Within(httptest.NewRequest(http.MethodPost, "/?timeout=10s", nil)); took > most {
					t.Errorf("%s: it took %s, want %s at most", name, took, most)
				}
			})
		}
	}
}

// stick has reads of a handler wait for the end of their contexts.
func (h *Handler) stick(all bool) {
	h.People, h.Own, h.Keys = stuck{}, stuck{}, stuck{Keys: h.Keys}
	if all {
		h.Namespaces, h.Revisions = stuck{}, stuck{}
	}
	if h.Pins != nil {
		h.Pins = &pins.Pins{Snapshots: stuck{Snapshots: h.Pins.Snapshots}, Revisions: h.Revisions}
	}
}

// stuck answers no question before its context ends.
type stuck struct {
	Keys
	pins.Snapshots
}

func stay[T any](ctx context.Context) (none T, err error) {
	<-ctx.Done()
	return none, ctx.Err()
}

func (stuck) Fresh(ctx context.Context, _ string, _, _ []checksum.Source) (checksum.Contents, error) {
	return stay[checksum.Contents](ctx)
}

func (stuck) Refresh(ctx context.Context, _ string) (bool, error) { return stay[bool](ctx) }

func (stuck) Look(ctx context.Context, _ string) (checksum.Namespace, error) {
	return stay[checksum.Namespace](ctx)
}

func (stuck) Read(ctx context.Context, _ string) (checksum.Namespace, error) {
	return stay[checksum.Namespace](ctx)
}

func (stuck) Stored(ctx context.Context, _ *workload.Kind, _, _ string) (*workload.Object, error) {
	return stay[*workload.Object](ctx)
}

func (stuck) Of(ctx context.Context, _ *workload.Kind, _, _ string, _ types.UID) ([]*workload.Revision, error) {
	return stay[[]*workload.Revision](ctx)
}

func (stuck) HasPods(ctx context.Context, _, _ string, _ *workload.Revision) (bool, error) {
	return stay[bool](ctx)
}

func (stuck) Content(ctx context.Context, _, _ string, _ checksum.Source) (*checksum.Content, error) {
	return stay[*checksum.Content](ctx)
}

func (stuck) EnsureAll(ctx context.Context, _ string, names map[checksum.Source]string) map[checksum.Source]error {
	_, err := stay[bool](ctx)
	failed := map[checksum.Source]error{}
	for source := range names {
		failed[source] = err
	}
	return failed
}

type stuckRevisions struct{ Revisions }

func (stuckRevisions) Of(ctx context.Context, _ *workload.Kind, _, _ string, _ types.UID) ([]*workload.Revision, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
