package e2e

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

// An invented edit is answered alike whether it is to what a source holds, and its workload runs
// with, or to anything else.
func TestStrangers_TestNoGuesses(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	controllers := run.Of(t).Product.Controllers
	for _, kind := range []string{"ConfigMap", "Secret"} {
		name := strings.ToLower(kind)
		s.Set(name+"/pin", "k", "4711")
		s.Create(deployment(name, name+"/pin"))
		s.Settled("deployment/" + name)
		value := func(plain string) string {
			if kind == "Secret" {
				plain = base64.StdEncoding.EncodeToString([]byte(plain))
			}
			return fmt.Sprintf(`{"metadata":{"name":"pin"},"data":{"k":%q}}`, plain)
		}
		for _, controller := range controllers {
			answer := func(guess string) string {
				review := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"UPDATE","namespace":%q,"resource":{"version":"v1","resource":"%ss"},"oldObject":%s,"object":%s}}`,
					s.Namespace, name, value("0000"), value(guess))
				client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
				response, err := client.Post("https://"+controller.Address()+"/impact?timeout=30s", "application/json", strings.NewReader(review))
				harness.Must(t, err)
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				harness.Must(t, err)
				return string(text)
			}
			s.Eventually("waiting until "+controller.Name+" knows deployment/"+name, func() error {
				if said := answer("1234"); !strings.Contains(said, "rolls out deployment/"+name) {
					return errors.New(said)
				}
				return nil
			})
			if right, wrong := answer("4711"), answer("1234"); right != wrong {
				t.Errorf("%s of a %s: the right guess is answered by\n%s, a wrong one by\n%s", controller.Name, kind, right, wrong)
			}
		}
	}
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
