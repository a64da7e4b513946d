package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/configstamp/configstamp/e2e/harness"
)

// These tests are about who reaches the ports that the API server calls, and is none.

// atOnce is how many changes an API server has under way (--max-mutating-requests-inflight):
// those of tests are an administrator's, whom it does not bound.
const atOnce = 200

// A thousand deploys, as many at once as an API server lets through, beside thousands of
// connections on which nothing is asked: each is stamped, and no review is refused.
func TestStrangers_ABurstOfDeploysBesideIdleConnections(t *testing.T) {
	product := run.Exclusive(t)
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	for _, process := range product.All() {
		idle(t, process.Address(), 2000)
	}
	var deploys errgroup.Group
	deploys.SetLimit(atOnce)
	for n := range 1000 {
		deploys.Go(func() error {
			name := fmt.Sprintf("d%d", n)
			s.In(t).Create(deployment(name, "configmap/c"))
			if s.In(t).Stamp("deployment/"+name, "configmap/c") == "" {
				return fmt.Errorf("deployment/%s is not stamped", name)
			}
			return nil
		})
	}
	if err := deploys.Wait(); err != nil {
		t.Error(err)
	}
	if n := harness.Sum(product.Webhooks, "configstamp_malformed_requests_total"); n > 0 {
		t.Errorf("%v reviews were refused", n)
	}
	s.Set("configmap/c", "k", "2")
	if warnings := strings.Join(s.Warnings(), "; "); !strings.Contains(warnings, "this change rolls out") {
		t.Errorf("an edit is warned of by %q", warnings)
	}
}

// idle makes connections from another address than the API server's, asks once on each so that
// the server keeps it, and leaves them alone.
func idle(t *testing.T, address string, connections int) {
	t.Helper()
	dialer := &tls.Dialer{
		NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 9, 9, 9)}},
		Config:    &tls.Config{InsecureSkipVerify: true},
	}
	made := 0
	for range connections {
		connection, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			continue // it is free to refuse them
		}
		t.Cleanup(func() { _ = connection.Close() })
		if _, err := fmt.Fprint(connection, "GET /nothing HTTP/1.1\r\nHost: configstamp\r\n\r\n"); err == nil {
			made++
		}
	}
	if made < connections/10 {
		t.Fatalf("%d connections to %s were made", made, address)
	}
}
