package servers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

// Somebody edits a source every second, others make and change workloads, and others ask
// what would be admitted; meanwhile one API server is behind, one is killed, or answers
// nobody, and connections move. No edit is lost, nothing goes back to older content, nothing
// rolls twice for one content (the judge of package faults), never do two controllers act,
// and no admission fails or waits for longer than a webhook may take.
func TestEverythingAtOnce(t *testing.T) {
	number := *seed
	if number == 0 {
		number = uint64(time.Now().Unix())
	}
	t.Logf("again: -seed=%d -for=%s", number, *long)
	product, p := alone(t)
	stop := court.Supervise()
	defer func() { t.Logf("started again: %v", stop()) }()
	c := &crowd{person: p, random: rand.New(rand.NewPCG(number, 1))}
	c.begin(t)
	watchLeaders(t, product)
	trouble := newTrouble(t, product, p, number)
	waiting := newAdmissions(p)

	ctx, done := context.WithTimeout(t.Context(), *long)
	defer done()
	var busy sync.WaitGroup
	for _, work := range []func(context.Context){c.edit, c.change, waiting.ask, waiting.ask, trouble.move, trouble.cause} {
		busy.Go(func() { work(ctx) })
	}
	busy.Wait()
	calm(t)
	p.front.Release()
	for _, err := range c.failed {
		t.Error(err)
	}
	t.Logf("%d edits, %d workloads made, %d changed, %d requests that met no server; %d writes of unknown end", c.edits, c.made, c.changes, c.lost, p.claim(t))
	t.Logf("trouble: %v", trouble.told)
	p.Judge(t, 2*soon)
	waiting.judge(t, product, trouble)
	trouble.judge(t)
	history, _, err := p.History()
	harness.Must(t, err)
	rolls, total := 0, 0
	for i := range c.made {
		total += history.Templates(c.name(i)) - 1
	}
	if rolls = total - c.changes; rolls < c.edits/4 {
		t.Errorf("%d workloads rolled %d times for %d edits: too few to prove anything", c.made, rolls, c.edits)
	}
	t.Logf("%d rollouts by edits, of %d writes", rolls, len(history.Events))
}

// crowd is people who edit sources and workloads.
type crowd struct {
	*person
	mu     sync.Mutex
	random *rand.Rand
	kinds  []string // of workloads, in the order they were made

	edits, made, changes, lost int
	failed                     []error
}

func sources() []string {
	return []string{"configmap/c0", "configmap/c1", "configmap/c2", "configmap/c3", "secret/s0", "secret/s1"}
}

func (c *crowd) upTo(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

func (c *crowd) name(i int) string { return strings.ToLower(c.kinds[i]) + fmt.Sprintf("/w%d", i) }

func (c *crowd) begin(t *testing.T) {
	t.Helper()
	// Who edits all the time is slowed down, if he does not say how often he wants to roll.
	_, err := court.Run.Client.CoreV1().Namespaces().Patch(t.Context(), c.Namespace, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"configstamp.dev/min-interval":"1s"}}}`), metav1.PatchOptions{})
	harness.Must(t, err)
	for _, source := range sources() {
		harness.Must(t, c.Set(source, value(0)))
	}
	for range 12 {
		harness.Must(t, c.make())
	}
	untrue, err := c.Converge(t.Context(), soon)
	harness.Must(t, err)
	if len(untrue) > 0 {
		t.Fatalf("%v\n%s", untrue, c.Report())
	}
}

// make makes a workload of some kind, which uses some sources in some way.
func (c *crowd) make() error {
	all, ways := sources(), []string{"envFrom", "env", "volume", "subPath"}
	var uses []faults.Use
	for range 1 + c.upTo(2) {
		i := c.upTo(len(all))
		uses = append(uses, faults.Use{Source: all[i], Way: ways[c.upTo(len(ways))]})
		all = append(all[:i:i], all[i+1:]...)
	}
	kind := []string{"Deployment", "StatefulSet", "DaemonSet", "CronJob"}[c.made%4]
	object := faults.Workload(kind, fmt.Sprintf("w%d", c.made), "1", uses...)
	if err := c.insist(func() error { return c.Create(object) }); err != nil {
		return err
	}
	c.kinds, c.made = append(c.kinds, kind), c.made+1
	return nil
}

// insist sends a request until an API server answers it. What an API server says against it
// is an error; whether it met one at all, and which, is the balancer's doing.
func (c *crowd) insist(send func() error) error {
	for {
		err := send()
		if err == nil || !unmet(err) {
			return err
		}
		c.mu.Lock()
		c.lost++
		c.mu.Unlock()
		time.Sleep(200 * time.Millisecond)
	}
}

// unmet reports that it was no API server that answered a request.
func unmet(err error) bool {
	var status interface{ Status() metav1.Status }
	return !errors.As(err, &status)
}

func (c *crowd) say(err error) {
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = append(c.failed, err)
	}
}

func (c *crowd) edit(ctx context.Context) {
	for tick := time.NewTicker(time.Second); ctx.Err() == nil; <-tick.C {
		c.edits++
		source, content := sources()[c.upTo(len(sources()))], value(c.edits)
		c.say(c.insist(func() error { return c.Set(source, content) }))
	}
}

func (c *crowd) change(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(1500 * time.Millisecond) {
		if c.upTo(4) == 0 {
			c.say(c.make())
			continue
		}
		c.changes++
		name, n := c.name(c.upTo(c.made)), c.changes
		c.say(c.insist(func() error { return c.person.change(name, n) }))
	}
}
