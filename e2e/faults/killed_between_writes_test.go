package faults_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// Intermediate state: the controller is killed around each write that a change
// makes, so that every prefix of a fan-out is once what its successor finds.
func TestKilledBeforeAndAfterEachWriteOfAFanOut(t *testing.T) {
	_, trial := scenario(t)
	const count = 6
	fanOut(t, trial, count)
	for k := 1; k <= count; k++ {
		for _, committed := range []bool{false, true} {
			if testing.Short() && k%3 != 0 {
				continue
			}
			killAround(t, k, committed, func() { harness.Must(t, trial.Set("configmap/c", value(2*k+b2i(committed)))) })
			settled(t, trial)
		}
	}
	trial.Judge(t, soon)
}

// killAround kills the leader around its kth write that has an effect, and starts
// it again.
func killAround(t *testing.T, k int, committed bool, change func()) {
	t.Helper()
	victim := leader(t)
	var count atomic.Int32
	var once sync.Once
	killed := make(chan struct{})
	kill := func(ctx context.Context) *proxy.Answer {
		if int(count.Add(1)) != k {
			return nil
		}
		once.Do(func() {
			go func() {
				defer close(killed)
				if err := victim.Kill(); err != nil {
					t.Error(err)
				}
			}()
		})
		<-ctx.Done()
		return proxy.Drop()
	}
	rule := proxy.Rule{Match: rolling}
	if committed {
		rule.After = func(ctx context.Context, _ *proxy.Request, _ int) *proxy.Answer { return kill(ctx) }
	} else {
		rule.Before = func(ctx context.Context, _ *proxy.Request) *proxy.Answer { return kill(ctx) }
	}
	remove := victim.Proxy.Add(rule)
	defer remove()
	change()
	<-killed
	harness.Must(t, court.Run.ForgetLeader(t.Context()))
	harness.Must(t, court.Run.Product.Start(t.Context()))
	t.Logf("killed around write %d, committed: %t", k, committed)
}

// The same for the webhook, around each of its reads: it writes nothing.
func TestWebhookKilledAroundEachRead(t *testing.T) {
	product, _ := scenario(t)
	for k := 1; k <= 4; k++ {
		for _, answered := range []bool{false, true} {
			if testing.Short() && k > 1 {
				continue
			}
			trial := court.Trial(t) // workloads that have rolled often would be slowed down
			fanOut(t, trial, 4)
			end := court.Outages.Begin()
			var count atomic.Int32
			var once sync.Once
			killed := make(chan struct{})
			for _, webhook := range product.Webhooks {
				kill := func(ctx context.Context) *proxy.Answer {
					if int(count.Add(1)) < k {
						return nil
					}
					first := false
					once.Do(func() { first = true })
					if !first {
						return nil
					}
					go func() {
						defer close(killed)
						if err := webhook.Kill(); err != nil {
							t.Error(err)
						}
					}()
					<-ctx.Done()
					return proxy.Drop()
				}
				rule := proxy.Rule{Match: proxy.Matching("get", "configmaps")}
				if answered {
					rule.After = func(ctx context.Context, _ *proxy.Request, _ int) *proxy.Answer { return kill(ctx) }
				} else {
					rule.Before = func(ctx context.Context, _ *proxy.Request) *proxy.Answer { return kill(ctx) }
				}
				defer webhook.Proxy.Add(rule)()
			}
			harness.Must(t, trial.Set("configmap/c", value(10*k+b2i(answered))))
			select {
			case <-killed:
			case <-time.After(5 * time.Second): // requests for one source share a read
				if reads := count.Load(); k == 1 || reads == 0 {
					t.Errorf("there were %d reads, not %d: nobody was killed", reads, k)
				}
				t.Logf("there were not %d reads: nobody was killed", k)
			}
			for _, webhook := range product.Webhooks {
				webhook.Proxy.Clear()
			}
			harness.Must(t, product.Start(t.Context()))
			end()
			settled(t, trial)
			trial.Judge(t, soon)
		}
	}
}

// Answers that are lost after they had their effect, each once for each workload.
func TestEveryResponseIsLostOnce(t *testing.T) {
	product, trial := scenario(t)
	fanOut(t, trial, 8)
	var mu sync.Mutex
	lost := map[string]bool{}
	for _, process := range product.All() {
		process.Proxy.Add(proxy.Rule{
			Match: proxy.Matching("patch,get", "deployments,statefulsets,daemonsets,cronjobs,configmaps,leases"),
			After: func(_ context.Context, r *proxy.Request, _ int) *proxy.Answer {
				mu.Lock()
				defer mu.Unlock()
				if key := fmt.Sprint(process.Name, r, r.DryRun()); !lost[key] {
					lost[key] = true
					return proxy.Drop()
				}
				return nil
			},
		})
	}
	for i := range 3 {
		harness.Must(t, trial.Set("configmap/c", value(i+1)))
		settled(t, trial)
		mu.Lock()
		clear(lost)
		mu.Unlock()
	}
	trial.Judge(t, soon)
	wantTemplates(t, trial, "deployment/w0", 4)
}
