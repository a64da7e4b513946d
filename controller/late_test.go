package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/controller/internal/throttle"
	"github.com/configstamp/configstamp/internal/workload"
)

// changedIn is a house in which a source of some workloads has changed.
func changedIn(t *testing.T, c *cluster, workloads int) (h *house, refs []workload.Ref) {
	t.Helper()
	c.write("c", map[string]string{"k": "old"})
	for i := range workloads {
		refs = append(refs, c.deploy(fmt.Sprint("d-", i), "c"))
	}
	h = adopted(t, c)
	c.write("c", map[string]string{"k": "new"})
	h.Changed("shop", configMap("c"))
	h.rest()
	return h, refs
}

func status(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason}}
}

// TestLate_WantOfTimeIsToldFromOtherFailures: only the first is answered by fewer patches
// at once, and by a next try that comes soon.
func TestLate_WantOfTimeIsToldFromOtherFailures(t *testing.T) {
	for name, test := range map[string]struct {
		took    time.Duration
		refusal error
		late    bool
	}{
		"the webhook had no time for its proof, or was not reached": {took: time.Second, late: true},
		"the webhook is down":                      {took: time.Millisecond},
		"the API server has too much to do":        {refusal: status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), late: true},
		"the API server gives up":                  {took: 10 * time.Second, refusal: status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout), late: true},
		"no answer in time":                        {took: 12 * time.Second, refusal: fmt.Errorf("rolling: %w", context.DeadlineExceeded), late: true},
		"somebody's webhook denies, after a while": {took: 5 * time.Second, refusal: status(http.StatusForbidden, metav1.StatusReasonForbidden)},
		"somebody's webhook fails, after a while":  {took: 5 * time.Second, refusal: status(http.StatusInternalServerError, metav1.StatusReasonInternalError)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			h, refs := changedIn(t, c, 1)
			c.away, c.refusal = true, test.refusal
			c.slow = func() { h.clock.Step(test.took) }
			_, err := h.sync(t.Context(), refs[0])
			if err == nil || errors.Is(err, errLate) != test.late {
				t.Fatalf("late: %v, want %v: %v", errors.Is(err, errLate), test.late, err)
			}
			if again := againWithin(err); (again == lateAgain) != test.late {
				t.Errorf("tried again within %s", again)
			}
			c.away, c.refusal, c.slow = false, nil, nil
			h.mustSync(t, refs[0])
			if !c.stampedTrue(refs[0]) {
				t.Error("it is not stamped when nothing fails any more")
			}
		})
	}
}

// TestLate_ThereAreFewerPermitsAndALine: who gets none sends nothing, and is called.
func TestLate_ThereAreFewerPermitsAndALine(t *testing.T) {
	c := newCluster(t)
	h, refs := changedIn(t, c, 3)
	c.away, c.slow = true, func() { h.clock.Step(time.Second) }
	for _, ref := range refs[:2] {
		if _, err := h.sync(t.Context(), ref); !errors.Is(err, errLate) {
			t.Fatal(err)
		}
	}
	c.away, c.slow = false, nil
	other := workload.Ref{Kind: c.kind, Namespace: "shop", Name: "other"}
	h.permits(func(t *throttle.Throttle) []workload.Ref { t.Begin(other); return nil }) // the only one that is left
	h.happened()
	if wait := h.mustSync(t, refs[2]); wait != permitAgain {
		t.Errorf("it waits %s, want %s", wait, permitAgain)
	}
	if calls, _ := h.happened(); slices.ContainsFunc(calls, func(call string) bool { return call != "" }) {
		t.Errorf("without a permit it asks the API server: %q", calls)
	}
	for h.queue.Len() > 0 {
		ref, _ := h.queue.Get()
		h.queue.Done(ref)
	}
	h.permits(func(t *throttle.Throttle) []workload.Ref { return t.End(other, false, h.clock.Now()) })
	if h.queue.Len() != 1 {
		t.Fatalf("%d are called, want the one that stands in line", h.queue.Len())
	}
	if ref, _ := h.queue.Get(); ref != refs[2] {
		t.Errorf("%s is called", ref)
	}
	h.mustSync(t, refs[2])
	if !c.stampedTrue(refs[2]) {
		t.Error("it is not stamped")
	}
}

// TestLate_APermitIsGivenBackWhateverHappens: after a panic too.
func TestLate_APermitIsGivenBackWhateverHappens(t *testing.T) {
	c := newCluster(t)
	h, refs := changedIn(t, c, 1)
	for range 5 {
		c.slow = func() { panic("boom") }
		if _, err := h.tryLook(t.Context(), refs[0]); !errors.Is(err, errPanicked) {
			t.Fatal(err)
		}
	}
	c.slow = nil
	h.rest()
	h.mustSync(t, refs[0])
	if !c.stampedTrue(refs[0]) {
		t.Error("it is not stamped")
	}
}
