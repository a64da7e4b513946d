package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// The trap of client-go: with WatchList, what is there at the start passes
// through an informer's transform twice, and one that hashes content and drops it
// hashes emptiness the second time.

func TestInitialList_DigestsAreOfTheFullContent(t *testing.T) {
	t.Parallel()
	t.Run("WithWatchList", func(t *testing.T) {
		if !streams(t) {
			t.Skip("SKIPPED (1 check): an initial list that is a stream: this version of Kubernetes has WatchList switched off")
		}
		initialList(t, 20, false)
	})
	// More than one page of 500.
	t.Run("WithWatchListRefused", func(t *testing.T) { initialList(t, 520, true) })
}

// streams reports whether the API server sends initial lists as streams: by default 1.30, 1.31 and 1.33 do not.
func streams(t *testing.T) bool {
	t.Helper()
	metrics, err := run.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	harness.Must(t, err)
	return !regexp.MustCompile(`kubernetes_feature_enabled\{name="WatchList",[^}]*\} 0`).Match(metrics)
}

func initialList(t *testing.T, sources int, refuse bool) {
	product := run.Exclusive(t)
	harness.Must(t, product.Stop())
	s := run.Space(t)
	var names []string
	for i := range sources {
		name := fmt.Sprintf("configmap/c%03d", i)
		s.Set(name, "k", fmt.Sprint("content ", i), "big", strings.Repeat("x", i))
		names = append(names, name)
		if i%10 == 0 {
			name = fmt.Sprintf("secret/s%03d", i)
			s.Set(name, "k", fmt.Sprint("secret ", i))
			names = append(names, name)
		}
	}
	s.Set("configmap/empty")
	names = append(names, "configmap/empty")
	used := names
	if len(names) > 40 { // the first, the last and some between
		used = append(append(append([]string{}, names[:10]...), names[len(names)/2:len(names)/2+10]...), names[len(names)-20:]...)
	}
	s.Create(deployment("d", used...)) // nobody stamps it
	before := s.Settled("deployment/d")

	asked := newSet()
	for _, process := range product.All() {
		if refuse {
			process.Proxy.Add(proxy.RefuseWatchList())
		}
		process.Proxy.Observe(func(r *proxy.Request) {
			if r.Resource == "configmaps" || r.Resource == "secrets" {
				asked.add(fmt.Sprintf("%s initial=%t continued=%t", r.Verb, r.Query.Has("sendInitialEvents"), r.Query.Get("continue") != ""))
			}
		})
	}
	harness.Must(t, product.Start(t.Context()))
	wantBaselines(t, s, map[string][]string{"deployment/d": used})
	s.Unchanged(before)
	// What the webhooks remember is what a creation is stamped with while they
	// cannot ask, and what is compared with versions when they can.
	s.Create(deployment("asked", used...))
	for _, webhook := range product.Webhooks {
		webhook.Proxy.Add(proxy.Rule{Match: proxy.Matching("get", "configmaps,secrets"), Before: proxy.Fail(500, "InternalError", "made by the test")})
	}
	s.Create(deployment("remembered", used...))
	s.Settled("deployment/asked", "deployment/remembered")
	for _, source := range used {
		wantStamp(t, s, "deployment/asked", source)
		wantStamp(t, s, "deployment/remembered", source)
	}
	before = s.Counts()
	s.Unchanged(before) // the controllers remember the same
	// What the controllers remember decides whether they ask at all.
	if rolling := harness.Sum(product.Controllers, "configstamp_readmissions_total", `manner="rolling"`); rolling > 0 {
		t.Errorf("the controllers asked for %v rolls: they remember something else", rolling)
	}
	for kind, want := range map[string]bool{
		"watch initial=true continued=false": true, "list initial=false continued=true": refuse, "list initial=false continued=false": refuse,
	} {
		if got := !asked.add(kind); got != want {
			t.Errorf("requests of the form %q: %t, want %t", kind, got, want)
		}
	}
}

// An API server of before WatchList, and every kind that can be served.
func TestInitialList_EveryKindIsServedWithoutWatchList(t *testing.T) {
	product := run.Exclusive(t)
	for _, process := range product.All() {
		process.Proxy.Add(proxy.RefuseWatchList())
	}
	harness.Must(t, product.Restart(t.Context(), withClasses()))
	for _, kind := range customKinds {
		t.Run(kind.kind, func(t *testing.T) {
			t.Parallel()
			kind.serve(t)
		})
	}
	t.Run("SecretProviderClass", func(t *testing.T) {
		t.Parallel()
		s := run.Space(t)
		defineStatuses(t, s)
		mount(s, "d-1", "1")
		s.Eventually("waiting until what a pod reports is stamped", func() error {
			if got, want := harness.Stamps(s.DryCreate(providing("d")))[harness.StampKey(vault)], versioned(t, s, "1"); got != want {
				return fmt.Errorf("stamp %q, want %q", got, want)
			}
			return nil
		})
	})
}
