package webhook

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/reason"
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

// An undo is told of on the workload, with the name of the user.
func TestUndo_IsReported(t *testing.T) {
	for name, want := range map[string][]string{
		"undo-roll":          {`Deployment shop/web-app u-web undo: user "ann": configmap/web-message is back at its content of 2026-03-14T09:26:00Z; its present content is declined until it changes again, or until kubectl configstamp accept`},
		"declined-set-image": {`Deployment shop/web-app u-web declined-cleared: field manager "kubectl-set": configmap/web-message: its present content, which an undo declined, is taken now: the template changed, and may need it`},
		"pin-roll-late":      {`Deployment shop/web-app u-web not-pinned: field manager "configstamp": configmap/web-message: not pinned: its snapshot could not be made in time; containers that start later read what is there then`},
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

type stuckRevisions struct{ Revisions }

func (stuckRevisions) Of(ctx context.Context, _ *workload.Kind, _, _ string, _ types.UID) ([]*workload.Revision, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
