package podtruth

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What is said of pods is true of what their containers have read: through edits that are
// taken back, or bad, and halt; annotations; keys that come and go; pauses; containers that
// crash or fail their liveness probe; pods that are deleted; leaders that are killed.
func TestPodTruth(t *testing.T) {
	ask := plugin(t)
	count := &tally{counts: map[string]int{}}
	begun := make(chan struct{}, 2**rooms)
	t.Run("rooms", func(t *testing.T) {
		for number := range *rooms {
			t.Run(fmt.Sprint(number), func(t *testing.T) {
				t.Parallel()
				defer func() { begun <- struct{}{} }() // whatever happens, leaders must not wait for ever
				r := newRoom(t, number)
				begun <- struct{}{}
				end := time.Now().Add(*lasts)
				for checks := 0; time.Now().Before(end); {
					if checks%9 < 3 && time.Now().After(r.rest) { // three times in a row, then time to count
						r.act()
					}
					checks++
					harness.Must(t, r.judge(ask, count))
					time.Sleep(time.Duration(r.dice.IntN(3000)) * time.Millisecond)
				}
			})
		}
		t.Run("leaders", func(t *testing.T) {
			t.Parallel()
			for range *rooms {
				<-begun
			}
			for end := time.Now().Add(*lasts - 10*time.Second); ; killLeader(t) {
				time.Sleep(min(*lasts/3, 90*time.Second))
				if time.Now().After(end) {
					return
				}
			}
		})
	})
	t.Logf("%d containers, for %s:\n%s", *rooms*20, *lasts, count)
}

// killLeader ends the leader as a node's death does, and starts it again as a follower.
func killLeader(t *testing.T) {
	t.Helper()
	leader := run.Product.Leader()
	if leader == nil {
		return
	}
	harness.Must(t, leader.Kill())
	harness.Must(t, run.ForgetLeader(t.Context()))
	harness.Must(t, leader.Start(run.Product.Args(leader)))
	harness.Must(t, leader.WaitReady(t.Context()))
}
