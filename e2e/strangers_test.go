package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// With client certificates on, the API server, which shows one, is answered as ever, by stamps
// and warnings, also after the authorities have changed; whoever shows none, or one that is
// signed by another authority, gets an alert instead of a handshake.
func TestStrangers_WithoutAClientCertificateGetAnAlert(t *testing.T) {
	product := run.Exclusive(t)
	run := run.Of(t)
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	authorities := filepath.Join(t.TempDir(), "ca.crt")
	name := func(from string) {
		text, err := os.ReadFile(from)
		harness.Must(t, err)
		harness.Must(t, os.WriteFile(authorities, text, 0o600))
	}
	name(run.ClientAuthority())
	demanding := harness.Usual()
	demand := []string{"--client-ca-file=" + authorities, "--client-names=" + harness.APIServerName}
	demanding.Webhook, demanding.Controller = slices.Concat(demanding.Webhook, demand), slices.Concat(demanding.Controller, demand)
	harness.Must(t, product.Restart(t.Context(), demanding))
	answered := func(n int) error {
		s.Warnings()
		s.Create(deployment(fmt.Sprint("d", n), "configmap/c"))
		if s.Stamp(fmt.Sprint("deployment/d", n), "configmap/c") == "" {
			return errors.New("the API server is not answered")
		}
		s.Set("configmap/c", "k", fmt.Sprint("value ", n))
		if warnings := strings.Join(s.Warnings(), "; "); !strings.Contains(warnings, "this change rolls out") {
			return fmt.Errorf("an edit is warned of by %q", warnings)
		}
		return nil
	}
	harness.Must(t, answered(1))
	own, err := tls.LoadX509KeyPair(product.CertificateFile(), product.KeyFile())
	harness.Must(t, err)
	for _, process := range product.All() {
		for about, shown := range map[string][]tls.Certificate{"none": nil, "one of another authority": {own}} {
			said, err := knock(t, process.Address(), shown)
			if alert := new(net.OpError); !errors.As(err, &alert) || alert.Op != "remote error" || said != "" {
				t.Errorf("%s, certificate: %s: said %q, %v; want an alert", process.Name, about, said, err)
			}
		}
	}
	// Other authorities: the API server is a stranger, too, and the names of old do not help.
	name(product.CertificateFile())
	attempt := 1
	s.EventuallyIn(time.Minute, "waiting until other authorities count", func() error {
		for n := range product.Webhooks { // connections that are open stay
			product.Balancer.Cut(n)
			product.Impact.Cut(n)
		}
		attempt++
		if answered(attempt) == nil {
			return errors.New("the API server is answered")
		}
		return nil
	})
	name(run.ClientAuthority())
	s.EventuallyIn(time.Minute, "waiting until the API server's authority counts again", func() error {
		attempt++
		return answered(attempt)
	})
}

// knock asks something by TLS, with certificates to show, and gives the answer.
func knock(t *testing.T, address string, shown []tls.Certificate) (said string, err error) {
	t.Helper()
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, Certificates: shown})
	if err != nil {
		return "", err
	}
	defer connection.Close()
	harness.Must(t, connection.SetDeadline(time.Now().Add(time.Minute)))
	if _, err := fmt.Fprint(connection, "GET / HTTP/1.1\r\nHost: configstamp\r\nConnection: close\r\n\r\n"); err != nil {
		return "", err
	}
	text, err := io.ReadAll(connection)
	return string(text), err
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
