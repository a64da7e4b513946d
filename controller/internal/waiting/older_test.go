package waiting

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Who keeps older content is known since that was written, and told of once a day where an
// undo keeps it.
func TestOlder(t *testing.T) {
	began := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	a, b := workload.Ref{Namespace: "shop", Name: "a"}, workload.Ref{Namespace: "shop", Name: "b"}
	known, unknown := checksum.Source{Kind: checksum.ConfigMap, Name: "known"}, checksum.Source{Kind: checksum.ConfigMap, Name: "unknown"}
	written := func(at rollout.SourceRef) time.Time {
		if at.Source == known {
			return began.Add(-2 * time.Hour)
		}
		return time.Time{}
	}
	w := New()
	declines := func(ref workload.Ref, declined []checksum.Source, now time.Time, sources ...checksum.Source) {
		w.Older.Looked(ref, sources, declined, written, now)
	}
	expect := func(now, oldest time.Time, due ...workload.Ref) {
		t.Helper()
		if got := w.Older.Oldest(); !got.Equal(oldest) {
			t.Errorf("older content since %s, want %s", got, oldest)
		}
		got := w.Older.Due(now)
		if len(got) != len(due) {
			t.Fatalf("due %v, want %v", got, due)
		}
		for i := range got {
			if got[i].Workload != due[i] {
				t.Errorf("due %v, want %v", got, due)
			}
		}
	}
	expect(began, time.Time{})
	declines(a, nil, began, known) // it waits, and is pinned
	declines(b, []checksum.Source{unknown}, began, unknown)
	expect(began, began.Add(-2*time.Hour))
	declines(b, []checksum.Source{unknown}, began.Add(time.Hour), unknown)
	expect(began.Add(23*time.Hour), began.Add(-2*time.Hour))
	expect(began.Add(24*time.Hour), began.Add(-2*time.Hour), b)
	expect(began.Add(47*time.Hour), began.Add(-2*time.Hour))
	expect(began.Add(48*time.Hour), began.Add(-2*time.Hour), b)
	declines(a, nil, began.Add(49*time.Hour)) // it has rolled
	expect(began.Add(49*time.Hour), began)
	w.Older.Forget(b)
	expect(began.Add(99*time.Hour), time.Time{})
}
