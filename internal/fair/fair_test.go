package fair

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

func TestNamespacesTakeTurns(t *testing.T) {
	now := time.Unix(1e9, 0)
	q := New(func(ref workload.Ref) string { return ref.Namespace }, func() time.Time { return now })
	for i := range 3 {
		q.Push(workload.Ref{Namespace: "big", Name: fmt.Sprint(i)})
	}
	now = now.Add(time.Minute)
	q.Push(workload.Ref{Namespace: "small", Name: "0"})
	if q.Len() != 4 || !q.Oldest().Equal(now.Add(-time.Minute)) {
		t.Errorf("%d wait, the first since %s", q.Len(), q.Oldest())
	}
	var order []string
	for q.Len() > 0 {
		ref := q.Pop()
		order = append(order, ref.Namespace+ref.Name)
	}
	if got := strings.Join(order, " "); got != "big0 small0 big1 big2" {
		t.Errorf("in the order %s", got)
	}
	if !q.Oldest().IsZero() {
		t.Error("somebody waits in an empty queue")
	}
}
