package servers

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// The times of the lease: it is valid for 15 s from when it was last renewed, and who waits
// for it looks every 2 to 4.4 s. A leader that cannot renew it gives up 12 s after it last did.
const (
	followed = 15*time.Second + 4400*time.Millisecond
	// slack is for two cores that run everything.
	slack = 3 * time.Second
)

// The only API server that the leader reaches answers nobody any more, in the midst of a
// change. The other controller follows within the lease's bounds; never do both act; no
// workload rolls twice for one edit, also when the server goes on with what it was sent.
func TestALeaderWhoseServerFreezesIsFollowed(t *testing.T) {
	product, p := alone(t)
	names := fanOut(t, p, 8)
	stop := court.Supervise()
	defer stop()
	watchLeaders(t, product)
	leads, waits := leader(t, product)
	only(third, leads)
	only(first, waits, product.Webhooks[0], product.Webhooks[1])
	p.front.Only(int(first))

	harness.Must(t, p.Set("configmap/c", value(1)))
	time.Sleep(settle + 50*time.Millisecond) // its patches are under way
	third.freeze(t)
	frozen := time.Now()
	harness.Must(t, p.Set("configmap/c", value(2)))
	took := leading(t, waits, followed+slack)
	t.Logf("another leads %.1fs after the leader's server froze", time.Since(frozen).Seconds())
	if took < 5*time.Second {
		t.Errorf("another leads after %s: the lease was valid", took)
	}
	time.Sleep(4 * time.Second)
	third.thaw(t)
	harness.Must(t, p.Set("configmap/c", value(3)))
	p.Judge(t, soon)
	rolled(t, p, names, 3)
}

// The same server is frozen, but the balancer has others: the leader is not bound to it.
// Whoever leads, all goes on in time, and nobody acts beside another.
func TestALeaderFindsAnotherServer(t *testing.T) {
	product, p := alone(t)
	names := fanOut(t, p, 8)
	stop := court.Supervise()
	defer stop()
	p.front.Only(int(first))
	watchLeaders(t, product)
	for i := range 3 {
		third.freeze(t) // some of all connections are to it
		harness.Must(t, p.Set("configmap/c", value(i+1)))
		untrue, err := p.Converge(t.Context(), soon)
		harness.Must(t, err)
		if len(untrue) > 0 {
			t.Errorf("edit %d, while a server of three answers nobody: %v", i+1, untrue)
		}
		third.thaw(t)
		time.Sleep(time.Second)
	}
	p.Judge(t, soon)
	rolled(t, p, names, 3)
}

// Leases are read and written in etcd: that a server is behind moves no leader.
func TestAServerThatIsBehindMovesNoLeader(t *testing.T) {
	product, p := alone(t)
	names := fanOut(t, p, 4)
	stop := court.Supervise()
	defer stop()
	leads, waits := leader(t, product)
	for _, behind := range []*harness.Process{waits, leads} {
		only(second, behind)
		if behind == leads {
			only(first, waits)
		} else {
			only(first, leads)
		}
		before[second].Lag(4 * lag)
		watched := watchLeaders(t, product)
		harness.Must(t, p.Set("configmap/c", value(int(time.Now().UnixMilli()))))
		time.Sleep(followed + slack)
		watched.mu.Lock()
		terms := watched.terms
		watched.mu.Unlock()
		if len(terms) != 1 || terms[0] != leads.Name {
			t.Errorf("%s led, and %s is behind; then led %v", leads.Name, behind.Name, terms)
		}
		before[second].Lag(0)
	}
	p.Judge(t, soon)
	rolled(t, p, names, 2)
}

// rolled checks that each workload had one rollout for each edit, at most: edits may be
// taken together, which the judge allows, and never apart.
func rolled(t *testing.T, p *person, names []string, edits int) {
	t.Helper()
	history, _, err := p.History()
	harness.Must(t, err)
	for _, name := range names {
		if n := history.Templates(name) - 1; n < 1 || n > edits {
			t.Errorf("%s rolled %d times for %d edits\n%s", name, n, edits, p.Report())
		}
	}
}
