package faults

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// hinder adds rules for one namespace to the proxies of all processes: requests
// about it fail before or after they have their effect, or are late; events of it
// come twice, or, when hiding, some never come.
func (c *Court) hinder(namespace string, random *rand.Rand, hiding bool) {
	about := func(verbs, resources string) func(*proxy.Request) bool {
		match := proxy.Matching(verbs, resources)
		return func(r *proxy.Request) bool { return r.Namespace == namespace && match(r) }
	}
	dice := &dice{random: rand.New(rand.NewPCG(random.Uint64(), 1))}
	failures := []struct {
		code   int
		reason metav1.StatusReason
	}{
		{http.StatusInternalServerError, metav1.StatusReasonInternalError}, {http.StatusConflict, metav1.StatusReasonConflict},
		{http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable}, {http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests},
	}
	before, after, late := random.IntN(40), random.IntN(30), random.IntN(30)
	unproven := []int{0, 0, 20, 60}[random.IntN(4)]
	hidden, repeated := 0, random.IntN(30)
	if hiding {
		hidden = random.IntN(40)
	}
	answer := func(percent int) *proxy.Answer {
		if !dice.below(percent) {
			return nil
		}
		failure := failures[dice.upTo(len(failures))]
		return proxy.Status(failure.code, string(failure.reason), "made by the test")
	}
	patches, reads := about("patch,get", "deployments,statefulsets,daemonsets,cronjobs"), about("get", "configmaps,secrets")
	copies, lists := about("create,delete", "configmaps"), about("list", "replicasets,controllerrevisions,pods")
	ofPins := func(r *proxy.Request) bool { return copies(r) || lists(r) }
	for _, process := range c.Run.Product.All() {
		process.Proxy.Add(proxy.Rule{
			Match:  ofPins,
			Before: func(context.Context, *proxy.Request) *proxy.Answer { return answer(before / 2) },
			After:  func(context.Context, *proxy.Request, int) *proxy.Answer { return answer(after / 2) },
		})
		process.Proxy.Add(proxy.Rule{
			Match: patches,
			Before: func(ctx context.Context, r *proxy.Request) *proxy.Answer {
				if dice.below(late) {
					return proxy.Delay(time.Duration(dice.upTo(400))*time.Millisecond)(ctx, r)
				}
				return answer(before)
			},
			After: func(context.Context, *proxy.Request, int) *proxy.Answer { return answer(after) },
		})
		process.Proxy.Add(proxy.Rule{Match: reads, Before: func(context.Context, *proxy.Request) *proxy.Answer { return answer(unproven) }})
		process.Proxy.Add(proxy.Rule{Match: proxy.Matching("watch", ""), Event: hideOrRepeat(namespace, dice, hidden, repeated)})
	}
}

// hideOrRepeat keeps some events of a namespace from a process, and gives it some
// twice, out of order; never a deletion, which no API server repeats out of order.
func hideOrRepeat(namespace string, dice *dice, hidden, repeated int) func(*proxy.Request, *proxy.Event) []*proxy.Event {
	var mu sync.Mutex
	former := map[*proxy.Request]*proxy.Event{}
	return func(request *proxy.Request, event *proxy.Event) []*proxy.Event {
		if event.Namespace != namespace {
			return []*proxy.Event{event}
		}
		if dice.below(hidden) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		again := former[request]
		if event.Type != watch.Deleted {
			former[request] = event
		}
		if again == nil || !dice.below(repeated) {
			return []*proxy.Event{event}
		}
		return []*proxy.Event{event, again}
	}
}

// dice are thrown from many goroutines.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (d *dice) below(percent int) bool { return d.upTo(100) < percent }

func (d *dice) upTo(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

// Mishap is something that befalls whole processes.
type Mishap struct {
	Name string
	// do lets it happen; what it changes is undone when it returns, or by the
	// healing at the end.
	do func(ctx context.Context, c *Court, random *rand.Rand) error
}

// mishaps are those that a random schedule picks from.
func mishaps() []Mishap {
	some := func(random *rand.Rand, all []*harness.Process) *harness.Process { return all[random.IntN(len(all))] }
	wait := func(random *rand.Rand, atLeast, atMost time.Duration) {
		time.Sleep(atLeast + time.Duration(random.Int64N(int64(atMost-atLeast))))
	}
	return []Mishap{
		{"a controller is killed", func(ctx context.Context, c *Court, random *rand.Rand) error {
			defer c.Alone()()
			victim := some(random, c.Run.Product.Controllers)
			if err := victim.Kill(); err != nil {
				return err
			}
			if err := c.Run.ForgetLeader(ctx); err != nil {
				return err
			}
			return victim.Start(c.Run.Product.Args(victim))
		}},
		{"both controllers are killed", func(ctx context.Context, c *Court, random *rand.Rand) error {
			defer c.Alone()()
			for _, victim := range c.Run.Product.Controllers {
				if err := victim.Kill(); err != nil {
					return err
				}
			}
			wait(random, 0, time.Second)
			if err := c.Run.ForgetLeader(ctx); err != nil {
				return err
			}
			return c.Run.Product.Start(ctx)
		}},
		{"a webhook is killed", func(ctx context.Context, c *Court, random *rand.Rand) error {
			defer c.Alone()()
			defer c.Outages.Begin()()
			victim := some(random, c.Run.Product.Webhooks)
			if err := victim.Kill(); err != nil {
				return err
			}
			wait(random, 0, time.Second)
			if err := victim.Start(c.Run.Product.Args(victim)); err != nil {
				return err
			}
			return victim.WaitReady(ctx)
		}},
		{"no webhook is there", func(ctx context.Context, c *Court, random *rand.Rand) error {
			defer c.Alone()()
			defer c.Outages.Begin()()
			for _, victim := range c.Run.Product.Webhooks {
				if err := victim.Kill(); err != nil {
					return err
				}
			}
			wait(random, 0, time.Second)
			return c.Run.Product.Start(ctx)
		}},
		{"a webhook stands still", func(_ context.Context, c *Court, random *rand.Rand) error {
			defer c.Outages.Begin()()
			victim := some(random, c.Run.Product.Webhooks)
			victim.Freeze()
			wait(random, time.Second, 3*time.Second)
			victim.Thaw()
			return nil
		}},
		{"a controller stands still", func(_ context.Context, c *Court, random *rand.Rand) error {
			victim := some(random, c.Run.Product.Controllers)
			victim.Freeze()
			wait(random, time.Second, 3*time.Second)
			victim.Thaw()
			return nil
		}},
		{"the lease is taken away", func(ctx context.Context, c *Court, _ *rand.Rand) error { return c.Run.ForgetLeader(ctx) }},
		{"connections are cut", func(_ context.Context, c *Court, random *rand.Rand) error {
			some(random, c.Run.Product.All()).Proxy.CutConnections()
			return nil
		}},
		{"watches are cut", func(_ context.Context, c *Court, _ *rand.Rand) error {
			for _, process := range c.Run.Product.All() {
				process.Proxy.Cut(proxy.Matching("watch", ""))
			}
			return nil
		}},
		{"watches expire", func(_ context.Context, c *Court, random *rand.Rand) error {
			some(random, c.Run.Product.All()).Proxy.Expire(nil)
			return nil
		}},
		{"watches of one process are behind", func(_ context.Context, c *Court, random *rand.Rand) error {
			defer behind(some(random, c.Run.Product.All()))()
			wait(random, time.Second, 4*time.Second)
			return nil
		}},
		{"watches of one process are behind, and expire", func(_ context.Context, c *Court, random *rand.Rand) error {
			victim := some(random, c.Run.Product.All())
			catchUp := behind(victim)
			wait(random, time.Second, 4*time.Second)
			victim.Proxy.Cut(proxy.Matching("watch", ""))
			catchUp()
			victim.Proxy.Expire(nil)
			return nil
		}},
		{"an API server that knows no WatchList", func(_ context.Context, c *Court, random *rand.Rand) error {
			victim := some(random, c.Run.Product.All())
			remove := victim.Proxy.Add(proxy.RefuseWatchList())
			defer remove()
			victim.Proxy.Expire(nil)
			wait(random, time.Second, 2*time.Second)
			return nil
		}},
		{"connections between API server and webhooks are cut", func(_ context.Context, c *Court, random *rand.Rand) error {
			defer c.Outages.Begin()()
			c.Run.Product.Balancer.Cut(random.IntN(len(c.Run.Product.Webhooks)))
			return nil
		}},
		{"all admissions reach one webhook, whose watches are behind", func(_ context.Context, c *Court, random *rand.Rand) error {
			i := random.IntN(len(c.Run.Product.Webhooks))
			end := c.Outages.Begin()
			c.Run.Product.Balancer.Only(i)
			end()
			defer c.Run.Product.Balancer.Release()
			defer behind(c.Run.Product.Webhooks[i])()
			wait(random, time.Second, 4*time.Second)
			return nil
		}},
	}
}

// behind holds back all events of a process's watches until it is told to go on.
func behind(process *harness.Process) (catchUp func()) {
	gate := &proxy.Gate{}
	gate.Close()
	remove := process.Proxy.Add(proxy.Rule{Match: proxy.Matching("watch", ""), Gate: gate})
	return func() {
		remove()
		gate.Open()
	}
}

// Heal ends everything that hinders the product, and waits until it is whole.
// Processes that have hidden events from them are told to read all anew.
func (c *Court) Heal(ctx context.Context, expire bool) error {
	c.Run.Product.Balancer.Release()
	for _, process := range c.Run.Product.All() {
		process.Thaw()
		process.Proxy.Clear()
		if expire {
			process.Proxy.Expire(nil)
		}
	}
	defer c.Alone()()
	return c.Run.Product.Start(ctx)
}
