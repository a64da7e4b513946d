package records

import (
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// With the policy that keeps stamps, an update loses neither pins nor what an undo declined while no webhook answers. An
// undo to a revision without pins gets none from the present one.
func TestKeepStamps(t *testing.T) {
	product := run.Exclusive(t)
	stopWebhooks := func() {
		for _, webhook := range product.Webhooks {
			harness.Must(t, webhook.Stop())
		}
	}
	s := run.Space(t)
	s.Set(source, "MESSAGE", "hello world")
	s.Create(manifest("Deployment", "web-app", ""))
	before := s.Settled(web)
	wantPinnedTo(t, s, "")
	s.SetPolicy("namespace", map[string]string{"pin": "true", "min-interval": "1ms"})
	time.Sleep(time.Second) // every process knows
	second := strings.Replace(manifest("Deployment", "web-app", ""), "app:1", "app:2", 1)
	s.Put(second)
	s.WantRolls(before, rolls{web: 1})
	is := wantPin(t, s, web)

	stopWebhooks()
	if !s.KeepStamps(second) {
		t.Skip("this version of Kubernetes has no MutatingAdmissionPolicy")
	}
	before = s.Counts()
	s.PutAs("", second)
	s.Unchanged(before)
	wantPinnedTo(t, s, is)
	s.Kubectl("rollout", "undo", web)
	s.WantRollsBack(before, rolls{web: 1})
	wantPinnedTo(t, s, "")

	harness.Must(t, product.Start(t.Context()))
	s.Kubectl("rollout", "undo", web)
	s.WantRollsBack(before, rolls{web: 2})
	wantPinnedTo(t, s, is)
	before = s.Counts()
	s.Kubectl("rollout", "undo", web) // to the one without, which the webhook pins to the present content
	s.WantRolls(before, rolls{web: 1})
	wantPinnedTo(t, s, is)

	before = s.Counts()
	s.Edit(source, "MESSAGE", "a mistake")
	s.WantRolls(before, rolls{web: 1})
	before = s.Counts()
	wantSaid(t, s.Kubectl("rollout", "undo", web), "configmap/web-message is back at its earlier content of 20")
	s.WantRollsBack(before, rolls{web: 1})
	stopWebhooks()
	before = s.Counts()
	s.PutAs("", manifest("Deployment", "web-app", ""))
	s.Unchanged(before)
	harness.Must(t, product.Start(t.Context()))
	s.Unchanged(before)
	wantPinnedTo(t, s, is)
	wantDeclined(t, s, true)
}
