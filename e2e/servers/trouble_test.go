package servers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// trouble befalls API servers: of the second and the third, one is behind, and the other
// is killed, or answers nobody; then they change places.
type trouble struct {
	t       *testing.T
	product *harness.Product
	fronts  []*harness.Balancer
	seed    uint64
	random  *rand.Rand // of cause alone
	told    []string

	mu    sync.Mutex
	spans []span
	// counted is what each server had counted of calls without an answer; excused are those
	// that were under way when a server froze.
	counted [count]float64
	excused float64
	freezes int
	wrong   []string
}

// span is when a server did not answer, and how long who was sent to it may have waited.
type span struct{ from, to time.Time }

func newTrouble(t *testing.T, product *harness.Product, p *person, seed uint64) *trouble {
	t.Helper()
	all := &trouble{t: t, product: product, seed: seed, random: rand.New(rand.NewPCG(seed, 2)), fronts: []*harness.Balancer{p.front}}
	for _, process := range product.All() {
		all.fronts = append(all.fronts, process.Front)
	}
	for s := range all.counted {
		all.counted[s] = server(s).unanswered(t)
	}
	return all
}

// met reports whether a server was away during a span, or was cut off.
func (x *trouble) met(from, to time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, one := range x.spans {
		if from.Before(one.to) && to.After(one.from) {
			return true
		}
	}
	return false
}

func (x *trouble) away(from time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.spans = append(x.spans, span{from.Add(-100 * time.Millisecond), time.Now().Add(100 * time.Millisecond)})
}

// move has the balancers send connections elsewhere, again and again.
func (x *trouble) move(ctx context.Context) {
	random := rand.New(rand.NewPCG(x.seed, 3))
	for ctx.Err() == nil {
		began := time.Now()
		x.fronts[random.IntN(len(x.fronts))].Cut(random.IntN(int(count)))
		x.away(began)
		time.Sleep(500*time.Millisecond + time.Duration(random.Int64N(int64(time.Second))))
	}
}

// cause causes trouble, one after the other. What it does is over when it returns.
func (x *trouble) cause(ctx context.Context) {
	behind, broken := second, third
	for ctx.Err() == nil {
		by := time.Duration([]int{1, 2, 3, 4, 6, 8, 30}[x.random.IntN(7)]) * time.Second
		before[behind].Lag(by)
		x.tell("%s is behind by %s", behind.component(), by)
		x.rest(ctx, 3*time.Second)
		switch x.random.IntN(5) {
		case 0:
			x.kill(broken)
		case 1:
			x.frozen(ctx, broken, noticed, 12*time.Second)
		case 2:
			x.frozen(ctx, broken, unnoticed, 12*time.Second)
		case 3:
			x.frozen(ctx, broken, leads, 2*followed)
		default:
			x.through(ctx, behind)
		}
		x.rest(ctx, 3*time.Second)
		before[behind].Lag(0)
		behind, broken = broken, behind
	}
}

func (x *trouble) tell(format string, args ...any) {
	x.told = append(x.told, time.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// rest waits for some time, about as long as is said.
func (x *trouble) rest(ctx context.Context, about time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(about/2 + time.Duration(x.random.Int64N(int64(about)))):
	}
}

// kill kills a server and starts it again. Balancers notice, and have it back when it is ready.
func (x *trouble) kill(s server) {
	x.tell("%s is killed", s.component())
	x.account(s, false)
	began := time.Now()
	checked := time.AfterFunc(time.Second, func() {
		for _, front := range x.fronts {
			front.Without(int(s))
		}
	})
	s.restart(x.t)
	checked.Stop()
	for _, front := range x.fronts {
		front.With(int(s))
	}
	x.away(began)
	x.mu.Lock()
	x.counted[s] = 0
	x.mu.Unlock()
}

// freezing is how a server that answers nobody is met with.
type freezing string

const (
	noticed   freezing = "the balancers notice"
	unnoticed freezing = "no balancer notices"
	leads     freezing = "the leader reaches no other"
)

// frozen has a server answer nobody for about some time.
func (x *trouble) frozen(ctx context.Context, s server, how freezing, about time.Duration) {
	x.account(s, false)
	if leader := x.product.Leader(); leader != nil && how == leads {
		leader.Front.Only(int(s))
		time.Sleep(time.Second)
		defer leader.Front.Release()
	}
	began := time.Now()
	s.freeze(x.t)
	x.freezes++
	if how == noticed {
		x.rest(ctx, 3*time.Second)
		for _, front := range x.fronts {
			front.Without(int(s))
		}
	}
	x.rest(ctx, about)
	s.thaw(x.t)
	x.tell("%s answered nobody for %s; %s", s.component(), time.Since(began).Round(time.Second), how)
	time.Sleep(timeout + time.Second) // what was under way is over
	for _, front := range x.fronts {
		front.With(int(s))
	}
	x.away(began)
	x.account(s, true)
}

// through has everybody reach the server that is behind, and no other.
func (x *trouble) through(ctx context.Context, s server) {
	x.tell("everybody reaches %s alone", s.component())
	began := time.Now()
	for _, front := range x.fronts {
		front.Only(int(s))
	}
	x.away(began)
	x.rest(ctx, 12*time.Second)
	began = time.Now()
	for _, front := range x.fronts {
		front.Release()
	}
	x.away(began)
}

// account counts the webhook calls that a server gave up since it was last asked. A server
// that stood still gives up those that were under way; nothing else excuses any.
func (x *trouble) account(s server, excused bool) {
	now := s.unanswered(x.t)
	x.mu.Lock()
	defer x.mu.Unlock()
	more := now - x.counted[s]
	x.counted[s] = now
	switch {
	case excused:
		x.excused += more
	case more > 0:
		x.wrong = append(x.wrong, fmt.Sprintf("%s gave up %v calls of a webhook", s.component(), more))
	}
}

// atOnce is more calls of webhooks than can be under way in one server.
const atOnce = 30

func (x *trouble) judge(t *testing.T) {
	t.Helper()
	for s := first; s < count; s++ {
		x.account(s, false)
	}
	for _, one := range x.wrong {
		t.Error(one)
	}
	if x.excused > float64(atOnce*x.freezes) {
		t.Errorf("servers that stood still gave up %v calls in %d times", x.excused, x.freezes)
	}
	t.Logf("%v calls of webhooks were under way when a server stood still (%d times), and were given up", x.excused, x.freezes)
}
