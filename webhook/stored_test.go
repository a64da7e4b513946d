package webhook

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// A workload is read where something is to be written and its Namespace does not speak for it,
// and nowhere else.
func TestWitness_IsAskedNoMoreThanNeeded(t *testing.T) {
	for name, want := range map[string]int{
		"pin-create": 0, "pin-roll": 0, "pin-set-image": 0, "pin-label": 0, "pin-create-dry-run": 0, "undo-roll": 0, "undo-dry-run": 0,
		"create-deployment": 0, "rolling-changed-template": 0, "pin-create-alone": 0, "pin-create-by-workload": 0,
		"pin-roll-alone": 1, "pin-roll-invented": 1, "pin-set-image-and-pin": 1,
	} {
		handler, request := caseRequest(t, name)
		admit(silent(t), t, handler, request)
		if got := handler.Revisions.(*revisions).reads; got != want {
			t.Errorf("%s: the workload was read %d times, want %d", name, got, want)
		}
	}
}

// An undo in a namespace that did not opt in makes a snapshot again that somebody deleted, if
// its workload is no invention. Else what is gone stays gone.
func TestWitness_OfAnUndo(t *testing.T) {
	for invented, want := range map[bool]int{false: 1, true: 0} {
		c, _ := readCase(t, "testdata/cases/undo-roll.yaml")
		alone := strings.NewReplacer(`"name":"web-app"`, `"name":"web-app","labels":{"configstamp.dev/inject":"enabled"},"annotations":{"configstamp.dev/pin":"true"}`)
		c.Stored, c.Object = []byte(alone.Replace(string(c.Stored))), []byte(alone.Replace(string(c.Object)))
		c.Unlabelled, c.Namespace, c.Sources, c.Invented = true, nil, c.Before, invented
		c.Snapshots = nil
		handler := c.handler(t)
		response := admit(silent(t), t, handler, c.request(t, c.Object))
		if made := snapshotsOf(handler).made; len(made) != want {
			t.Errorf("invented %t: made %v, answered %s %q", invented, made, response.AuditAnnotations["outcome"], response.Warnings)
		}
	}
}

// What is reported is about a workload that there is, under its own uid: not about one that
// is not there, is another one of that name, is not served, or cannot be read.
func TestWitness_OfEvents(t *testing.T) {
	for about, change := range map[string]func(*revisions){
		"there is none": func(r *revisions) { r.stored = nil },
		"another uid": func(r *revisions) {
			r.stored = []byte(strings.Replace(string(r.stored), `"uid":"`, `"uid":"other-`, 1))
		},
		"opted out": func(r *revisions) {
			r.stored = []byte(strings.Replace(string(r.stored), `"uid":"`, `"labels":{"configstamp.dev/inject":"disabled"},"uid":"`, 1))
		},
		"unread": func(r *revisions) { r.unread = errUnproven },
	} {
		for _, name := range []string{"undo-roll", "declined-set-image", "pin-roll-late"} {
			handler, request := caseRequest(t, name)
			change(handler.Revisions.(*revisions))
			handler.Report = func(of corev1.ObjectReference, why reason.Reason, _ string) {
				t.Errorf("%s, %s: told of %v, %v", name, about, of, why)
			}
			admit(silent(t), t, handler, request)
		}
		f, request := newFight(t, "apply-without-stamps")
		change(f.Revisions.(*revisions))
		if n := f.repeat(t, request, strippingLimit, time.Second); n != 0 {
			t.Errorf("stripping, %s: told of %v", about, f.workloads)
		}
	}
}

// A Namespace that memory does not know as opted in, and that cannot be read, has workloads
// stamped, as ever, and nothing copied.
func TestWitness_OfANamespaceThatCannotBeRead(t *testing.T) {
	handler, request := caseRequest(t, "pin-create-behind")
	handler.Namespaces = unasked{handler.Namespaces}
	response := admit(silent(t), t, handler, request)
	if made := snapshotsOf(handler).made; len(made) != 0 || response.AuditAnnotations["outcome"] != reason.Stamped.Label() {
		t.Errorf("made %v, and it came to %v", made, response.AuditAnnotations)
	}
}

type unasked struct{ Namespaces }

func (unasked) Read(context.Context, string) (checksum.Namespace, error) {
	return checksum.Namespace{}, errUnproven
}

// A request that carries no uid is of no workload.
func TestWitness_NoUID(t *testing.T) {
	handler, request := caseRequest(t, "pin-roll-alone")
	for _, raw := range []*[]byte{&request.Object.Raw, &request.OldObject.Raw, &handler.Revisions.(*revisions).stored} {
		*raw = []byte(strings.Replace(string(*raw), `"uid":"u-web"`, `"uid":""`, 1))
	}
	admit(silent(t), t, handler, request)
	if made := snapshotsOf(handler).made; len(made) != 0 {
		t.Errorf("made %v", made)
	}
}

// An API server that does not answer holds a roll up no longer than its bound.
func TestWitness_IsHeardWithinABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, request := caseRequest(t, "pin-roll-alone")
		handler.Revisions = stuckStored{handler.Revisions}
		began := time.Now()
		response := admit(silent(t), t, handler, request)
		if took := time.Since(began); took > pins.StoredWithin || response.AuditAnnotations["outcome"] != reason.Stamped.Label() || len(snapshotsOf(handler).made) > 0 {
			t.Errorf("it took %s and came to %v", took, response.AuditAnnotations)
		}
	})
}

type stuckStored struct{ Revisions }

func (stuckStored) Stored(ctx context.Context, _ *workload.Kind, _, _ string) (*workload.Object, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
