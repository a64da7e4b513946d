package pins

import (
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Whoever undoes the workload that a change has failed with stops that change: a leader that
// knows nothing but what the cluster holds does not roll it on to the next ones.
func TestAnUndoHoldsTheOthersAlsoAfterLeadersDied(t *testing.T) {
	product := run.Exclusive(t)
	r := newRoom(t, "first word", append([]member{{kind: "Deployment", app: "first", manner: "strict", ways: ways, order: "-1"}}, each()...)...)
	r.write("a bad word")
	r.wantHalt()
	r.space.Kubectl("rollout", "undo", "deployment/first")
	r.wantAll("first word")
	before := r.space.Counts()
	for range 2 {
		for _, controller := range product.Controllers {
			harness.Must(t, controller.Kill())
		}
		harness.Must(t, run.ForgetLeader(t.Context()))
		harness.Must(t, product.Start(t.Context()))
		r.space.Unchanged(before)
		r.wantStill("first word", r.members)
	}
	r.write("second word")
	r.wantAll("second word")
}
