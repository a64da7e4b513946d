package waiting

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

func TestAHaltOutweighsARetry(t *testing.T) {
	w, ref := New(), workload.Ref{Namespace: "shop", Name: "d"}
	for _, step := range []struct {
		hold   reason.Reason
		failed bool
		want   reason.Reason
	}{
		{reason.NoReason, true, reason.Retry},
		{reason.Turn, false, reason.Retry}, // its turn, and the time to try again
		{reason.Halted, false, reason.Halted},
		{reason.Turn, false, reason.Turn},
	} {
		w.Looked(ref, step.hold, step.failed, true, time.Now())
		if got := w.Tally(); len(got) != 1 || got[step.want.Label()].Count != 1 {
			t.Errorf("after %+v: %v", step, got)
		}
	}
}

// Each label has its count and the time of its first.
func TestTally(t *testing.T) {
	began := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	w := New()
	for i, at := range []struct {
		namespace string
		why       reason.Reason
		after     time.Duration
		fails     bool
	}{
		{"a", reason.Paused, 3, false}, {"a", reason.Paused, 1, false}, {"a", reason.OutsideWindow, 5, false},
		{"b", reason.Paused, 2, false}, {"b", reason.Turn, 4, true},
	} {
		w.Looked(workload.Ref{Namespace: at.namespace, Name: fmt.Sprint(i)}, at.why, at.fails, at.fails, began.Add(at.after))
	}
	if got, want := w.Tally(), (map[string]Queued{"pause": {3, began.Add(1)}, "window": {1, began.Add(5)}, "retry": {1, began.Add(4)}}); !maps.Equal(got, want) {
		t.Errorf("by label %v, want %v", got, want)
	}
}
