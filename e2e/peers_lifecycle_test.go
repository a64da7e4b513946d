package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// These rows are about the product itself: stopped, killed, hindered, replaced.
// They have it for themselves.

func TestPeersRow01_ChangedWhileStoppedRollsOnceAfterTheStart(t *testing.T) {
	product := run.Exclusive(t)
	s, before := one(t, "k", "1")
	harness.Must(t, product.Stop())
	s.Set("configmap/c", "k", "2")
	s.Unchanged(before)
	harness.Must(t, product.Start(t.Context()))
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")

	// Killed, with a change, its taking back, and another one in the gap.
	before = s.Counts()
	harness.Must(t, product.Kill())
	harness.Must(t, run.Of(t).ForgetLeader(t.Context()))
	s.Set("configmap/c", "k", "3")
	s.Set("configmap/c", "k", "2")
	s.Delete("configmap/c")
	s.Set("configmap/c", "k", "4")
	harness.Must(t, product.Start(t.Context()))
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
}

func TestPeersRow08_FailedRequestsAreTriedUntilTrue(t *testing.T) {
	product := run.Exclusive(t)
	s, before := one(t, "k", "0")
	for i, failure := range []struct {
		code   int
		reason string
	}{{500, "InternalError"}, {409, "Conflict"}, {429, "TooManyRequests"}} {
		for _, controller := range product.Controllers {
			controller.Proxy.Add(proxy.Rule{
				Match:  proxy.Matching("patch", "deployments"),
				Before: proxy.FailTimes(2, failure.code, failure.reason, "made by the test"),
			})
			// Committed, and the answer lost.
			controller.Proxy.Add(proxy.Rule{Match: proxy.Matching("patch", "deployments"), After: once(failure.code, failure.reason)})
		}
		s.Set("configmap/c", "k", fmt.Sprint(i+1))
		s.WantRolls(before, rolls{"deployment/d": i + 1})
		wantStamp(t, s, "deployment/d", "configmap/c")
	}

	// At the start everything is listed: each LIST fails once, in every way.
	harness.Must(t, product.Stop())
	s.Set("configmap/c", "k", "9")
	for _, process := range product.All() {
		process.Proxy.Clear()
		process.Proxy.Add(proxy.RefuseWatchList())
		for _, code := range []int{500, 429, 503} {
			process.Proxy.Add(proxy.Rule{Match: proxy.Matching("list", "deployments,configmaps,secrets,namespaces"), Before: perResource(code)})
		}
	}
	before = s.Counts()
	harness.Must(t, product.Start(t.Context()))
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
}

// once answers the first request with a failure though it had its effect.
func once(code int, reason string) func(ctx context.Context, request *proxy.Request, status int) *proxy.Answer {
	fail := proxy.FailTimes(1, code, reason, "made by the test")
	return func(ctx context.Context, request *proxy.Request, _ int) *proxy.Answer { return fail(ctx, request) }
}

// perResource fails the first request for each resource.
func perResource(code int) func(ctx context.Context, request *proxy.Request) *proxy.Answer {
	failed := newSet()
	return func(_ context.Context, request *proxy.Request) *proxy.Answer {
		if failed.add(request.Resource) {
			return proxy.Status(code, http.StatusText(code), "made by the test")
		}
		return nil
	}
}

func TestPeersRow11_LeaderKilledAndChangedInTheGapRollsOnce(t *testing.T) {
	product := run.Exclusive(t)
	s, before := one(t, "k", "1")
	var leader *harness.Process
	s.Eventually("looking for the leader", func() error {
		if leader = product.Leader(); leader == nil {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	harness.Must(t, leader.Kill())
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1}) // once the lease has run out
	wantStamp(t, s, "deployment/d", "configmap/c")
	if now := product.Leader(); now == nil || now == leader {
		t.Error("nobody else leads")
	}
}

func TestPeersRow12_ThreeRestartsWithoutAChangeRollNothing(t *testing.T) {
	product := run.ExclusiveInGate(t)
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Set("secret/s", "k", "1")
	var workloads []string
	for _, kind := range restamped {
		s.Create(workload(kind, "w", envFrom("configmap/c", "secret/s", "configmap/optional?")))
		workloads = append(workloads, strings.ToLower(kind)+"/w")
	}
	before := s.Settled(workloads...)
	for i := range 3 {
		if i == 1 {
			harness.Must(t, product.Kill())
			harness.Must(t, run.Of(t).ForgetLeader(t.Context()))
		} else {
			harness.Must(t, product.Stop())
		}
		harness.Must(t, product.Start(t.Context()))
	}
	s.Eventually("waiting for a leader", func() error {
		if product.Leader() == nil {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	s.Unchanged(before)
	for _, workload := range workloads {
		if object := s.Get(workload); object.GetGeneration() != before[workload].Generation || len(harness.Baseline(object)) > 0 {
			t.Errorf("%s was written to: %s", workload, state(object))
		}
	}
	s.Set("secret/s", "k", "2")
	s.WantRolls(before, rolls{workloads[0]: 1, workloads[1]: 1, workloads[2]: 1, workloads[3]: 1})
}

func TestPeersRow19_AnotherVersionOfTheProductRestartsNothing(t *testing.T) {
	product := run.Exclusive(t)
	s, before := one(t, "k", "1")
	stamp := s.Stamp("deployment/d", "configmap/c")
	next := filepath.Join(t.TempDir(), "configstamp-next")
	harness.Must(t, run.Of(t).BuildProduct(t.Context(), next, "-ldflags", "-X main.version=next"))
	for _, process := range product.All() { // one after the other, as a rollout does
		harness.Must(t, process.Stop())
		process.Use(t, next)
		harness.Must(t, product.Start(t.Context()))
	}
	if version := harness.Sum(product.All(), "configstamp_info", `version="next"`); version != 4 {
		t.Fatalf("%v processes are of the next version, want 4", version)
	}
	s.Eventually("waiting for a leader", func() error {
		if product.Leader() == nil {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	s.Unchanged(before)
	if now := s.Stamp("deployment/d", "configmap/c"); now != stamp {
		t.Errorf("the stamp went from %q to %q", stamp, now)
	}
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

func TestPeersRow20_InstalledIntoARunningClusterRestartsNothing(t *testing.T) {
	product := run.Exclusive(t)
	harness.Must(t, product.Stop())
	s := run.Space(t) // labelled, and nobody there
	s.Set("configmap/c", "k", "1")
	want := map[string][]string{}
	users := rolls{}
	for i := range 10 {
		name := fmt.Sprintf("d%d", i)
		s.Create(deployment(name, "configmap/c"))
		want["deployment/"+name] = []string{"configmap/c"}
		users["deployment/"+name] = 1
	}
	before := s.Settled("deployment/d0", "deployment/d9")
	s.Quiet()
	harness.Must(t, product.Start(t.Context()))
	wantBaselines(t, s, want)
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, users)
}

func TestPeersRow23_AnInternalErrorIsAllowedWithAWarningAndHealedLater(t *testing.T) {
	product := run.Exclusive(t)
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	// Webhooks that can read neither key nor sources, and are called all the same.
	for _, webhook := range product.Webhooks {
		harness.Must(t, webhook.Stop())
		webhook.Proxy.Add(proxy.Rule{Match: proxy.Matching("", "secrets,configmaps"), Before: proxy.Fail(500, "InternalError", "made by the test")})
		harness.Must(t, webhook.Start(product.Args(webhook)))
		harness.Must(t, webhook.WaitListening(t.Context()))
	}
	applied := s.Apply(deployment("d", "configmap/c"))
	wantWarning(t, applied, "admitted without checksums")
	before := s.Settled("deployment/d")
	if object := s.Get("deployment/d"); len(harness.Stamps(object)) > 0 {
		t.Errorf("stamped by nobody: %s", state(object))
	}
	for _, webhook := range product.Webhooks {
		webhook.Proxy.Clear()
	}
	wantBaselines(t, s, map[string][]string{"deployment/d": {"configmap/c"}})
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})

	// No webhook answers at all: allowed unstamped by failurePolicy, healed when one is back.
	for _, webhook := range product.Webhooks {
		harness.Must(t, webhook.Kill())
	}
	s.Create(deployment("e", "configmap/c"))
	s.Settled("deployment/e")
	s.Set("configmap/c", "k", "3")
	before = s.Counts()
	time.Sleep(time.Second)
	harness.Must(t, product.Start(t.Context()))
	// e was created unstamped while nobody could record it: what it started with
	// is not known, so it is adopted, which writes its metadata; d has a record,
	// and rolls.
	wantBaselines(t, s, map[string][]string{"deployment/e": {"configmap/c"}})
	delete(before, "deployment/e")
	s.WantRolls(before, rolls{"deployment/d": 1})
	if rolls := s.Counts()["deployment/e"].Rolls; rolls != 0 {
		t.Errorf("the adopted one rolled %d times", rolls)
	}
}
