package e2e

import (
	"crypto/tls"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

var listening = regexp.MustCompile(`"msg":"Serving admissions","address":"([^"]+)"`)

// The address of a webhook that was killed is asked until the cluster knows, and
// then by whom it was started anew: it has what connects wait until it can answer.
func TestAWebhookThatHasJustStartedAnswersWhenItCan(t *testing.T) {
	product := run.Exclusive(t)
	s := run.Space(t)
	s.Set("secret/s", "k", "1")
	for _, webhook := range product.Webhooks {
		harness.Must(t, webhook.Kill())
	}
	webhook := product.Webhooks[0]
	webhook.Proxy.Add(proxy.Rule{Before: proxy.Delay(time.Second), Match: func(r *proxy.Request) bool {
		return r.Resource == "secrets" && r.Namespace == harness.OwnNamespace // the keys of the digests
	}})
	for attempt := 1; !startedWell(t, s, product, webhook); attempt++ {
		if attempt == 10 {
			t.Fatalf("%d times it could not answer within %s of its start: this machine is too busy to tell", attempt, ablePatience)
		}
		harness.Must(t, webhook.Kill())
	}
}

// ablePatience is how long a webhook that has just started has what connects wait,
// until it says that it cannot do anything.
const ablePatience = 2 * time.Second

// startedWell starts a webhook, and checks that its first answer is a stamp. It is
// false when that took so long that another answer is right.
func startedWell(t *testing.T, s *harness.Space, product *harness.Product, webhook *harness.Process) bool {
	t.Helper()
	lives := len(listening.FindAllString(webhook.Log(), -1))
	began, well := time.Now(), true
	harness.Must(t, webhook.Start(product.Args(webhook)))
	address := ""
	s.Eventually("waiting for the webhook to listen", func() error {
		found := listening.FindAllStringSubmatch(webhook.Log(), -1)
		if len(found) == lives {
			return errors.New("it has not said where")
		}
		address = found[lives][1]
		return nil
	})
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatalf("%s after its start it refuses a handshake: %v", time.Since(began), err)
	}
	harness.Must(t, connection.Close())
	s.Warnings()
	s.Eventually("waiting for a stamp", func() error {
		object := s.DryCreate(deployment("d", "secret/s"))
		if warnings := s.Warnings(); len(warnings) > 0 {
			if waited := time.Since(began); waited < ablePatience {
				t.Fatalf("it answered before it could, after %s: %s", waited, strings.Join(warnings, "; "))
			}
			well = false
			return nil
		}
		if harness.Stamps(object)[harness.StampKey("secret/s")] != s.Digest("secret/s") {
			return errors.New("the balancer does not know of it")
		}
		return nil
	})
	return well
}
