// Package soak proves that configstamp is never in the way: while it is rolled
// out, evicted and killed and its certificates change, admissions that cannot
// go on without it (failurePolicy: Fail) all come back, and all stamped.
//
// Start reading at TestSoak: each of its phases does something to an
// installation (disturb_test.go) while a crowd of clients goes on asking
// (crowd_test.go), and tally_test.go counts. What the API server itself counted
// is compared (apiserver_test.go).
package soak

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/pods"
)

// amounts are how often each thing is done, and how much is asked meanwhile.
type amounts struct {
	rolls, rotations, evictions, deletions, leaders, together, kills int
	admissions                                                       int
}

func long() amounts {
	return amounts{rolls: 20, rotations: 20, evictions: 10, deletions: 5, leaders: 3, together: 5, kills: 10, admissions: 50_000}
}

func short() amounts {
	return amounts{rolls: 2, rotations: 2, evictions: 2, deletions: 1, leaders: 1, together: 1, kills: 2, admissions: 5_000}
}

// The clients: enough at once that the API server needs several connections to
// each Pod, and no more than leaves the machine some rest.
var (
	clients = flag.Int("clients", 6, "how many clients ask at once")
	rate    = flag.Int("rate", 150, "admissions a second, of all clients together, at most")
	only    = flag.String("only", "", "name of the one phase to have, such as 'evictions'")
	times   = flag.Int("times", 0, "how often its thing is done")
)

// bound is the longest that the crowd goes on after the last disturbance.
const bound = 15 * time.Minute

var cluster *pods.Cluster

func TestMain(m *testing.M) {
	os.Exit(pods.Wanted{}.Main(m, func(c *pods.Cluster) error { cluster = c; return nil }))
}

func wanted() amounts {
	if testing.Short() {
		return short()
	}
	return long()
}

// disturbance is one thing that is done to the installation, again and again.
type disturbance struct {
	name, does string
	times      int
	do         func(t *testing.T, c *crowd, turn int)
}

// disturbances are what is done, in turn. All but the last cost nobody anything.
func disturbances() []disturbance {
	want := wanted()
	return []disturbance{
		{"rolling updates", "kubectl rollout restart", want.rolls, roll},
		{"certificate rotations", "new key and certificate by cert-manager", want.rotations, rotate},
		{"evictions", "both Pods by the Eviction API", want.evictions, evict},
		{"deletions by force", "kubectl delete pod --force --grace-period=0", want.deletions, deleteByForce},
		{"leaders killed", "SIGKILL to the leader's process", want.leaders, killLeader},
		{"all of it at once", "rolling update, rotation, evictions", want.together, together},
		{killed, "SIGKILL to a webhook's process", want.kills, killWebhook},
	}
}

const killed = "webhooks killed"

func TestSoak(t *testing.T) {
	cluster.Install(t)
	setFailurePolicy(t, "Fail")
	c := gather(t)
	defer func() { t.Log(c.tally.table()) }()

	c.tally.begin("nothing", "")
	time.Sleep(10 * time.Second)
	for _, phase := range disturbances() {
		if *only != "" && phase.name != *only {
			continue
		}
		if *times > 0 {
			phase.times = *times
		}
		t.Logf("%d admissions; now %s", c.tally.count(), phase.name)
		c.tally.begin(phase.name, fmt.Sprintf("%d × %s", phase.times, phase.does))
		for turn := range phase.times {
			phase.do(t, c, turn)
		}
		time.Sleep(leaving) // until the last Pod that leaves has left
	}
	if *only == "" {
		c.tally.begin("nothing", "")
		c.until(t, wanted().admissions, bound)
	}
	c.pause()
	failed, lost, asked := c.tally.failures(), c.tally.losses(), c.tally.count()
	for _, failure := range failed[:min(len(failed), 30)] {
		t.Error(failure)
	}
	for _, loss := range lost {
		t.Log("lost with a killed process: " + loss)
	}
	for _, problem := range c.disagreements(t) {
		t.Error(problem)
	}
	t.Logf("%s: failurePolicy: Fail: %d admissions, %d failed, and %d lost with killed processes", verdict(t), asked, len(failed), len(lost))
	if *only == "" || *only == killed {
		asShipped(t, c)
	}
}

// asShipped does the worst once more, under the policy that the manifests have:
// nothing fails, and what was admitted unstamped is healed.
func asShipped(t *testing.T, c *crowd) {
	setFailurePolicy(t, "Ignore")
	c.goOn(t)
	c.tally.begin(killed, "the same, with failurePolicy: Ignore")
	for turn := range wanted().kills {
		killWebhook(t, c, turn)
	}
	c.pause()
	p := c.tally.current()
	for _, failure := range p.failed {
		t.Error(failure)
	}
	healed := c.waitHealed(t)
	t.Logf("%s: failurePolicy: Ignore, as shipped: %d admissions, %d failed, %d came back unstamped; %d of these were stored so, and healed",
		verdict(t), len(p.took), len(p.failed), len(p.lost), healed)
}

func verdict(t *testing.T) string {
	if t.Failed() {
		return "FAIL"
	}
	return "PASS"
}

// setFailurePolicy says, in every entry, what is to happen to what configstamp
// does not answer. The short form, which runs beside other work, gives it more time
// for that than the chart: a machine that stands still for seconds is nobody's failure.
func setFailurePolicy(t *testing.T, policy string) {
	t.Helper()
	const configuration = "mutatingwebhookconfiguration/configstamp"
	names := strings.Fields(cluster.Kubectl(t, "get", configuration, "-o", "jsonpath={.webhooks[*].name}"))
	if len(names) == 0 {
		t.Fatal("there are no webhooks")
	}
	var patch []string
	for i := range names {
		patch = append(patch, fmt.Sprintf(`{"op":"replace","path":"/webhooks/%d/failurePolicy","value":%q}`, i, policy))
		if testing.Short() {
			patch = append(patch, fmt.Sprintf(`{"op":"replace","path":"/webhooks/%d/timeoutSeconds","value":10}`, i))
		}
	}
	cluster.Kubectl(t, "patch", configuration, "--type=json", "--patch=["+strings.Join(patch, ",")+"]")
	time.Sleep(5 * time.Second) // the API server learns of it by a watch
}
