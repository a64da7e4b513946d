// Package behind makes a real API server fall behind the others. It stands between that
// server and etcd, and holds back what etcd's watches tell, its answers about their
// progress included. All else passes at once: so the server reads and writes in etcd what
// is there now, it is ready and holds its leases, and its watch cache is old.
//
// It knows HTTP/2 and the path of etcd's watches, and nothing else of etcd. Start reading
// at Etcd; late.go is the stream that comes late.
package behind

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// watches is where etcd serves its watches.
const watches = "/etcdserverpb.Watch/Watch"

// Etcd is what one API server takes for etcd. Make it with New.
type Etcd struct {
	listener net.Listener
	server   *http.Server
	lag      lag
}

// New listens on the loopback in the place of the etcd at address. credentials is the
// directory of a cluster of e2e/cluster that holds its certificates.
func New(address, credentials string) (*Etcd, error) {
	failed := func(err error) (*Etcd, error) { return nil, fmt.Errorf("standing before etcd: %w", err) }
	pair := func(name string) (tls.Certificate, error) {
		return tls.LoadX509KeyPair(filepath.Join(credentials, name+".crt"), filepath.Join(credentials, name+".key"))
	}
	serving, err := pair("server")
	if err != nil {
		return failed(err)
	}
	asking, err := pair("etcd-client")
	if err != nil {
		return failed(err)
	}
	ca, err := os.ReadFile(filepath.Join(credentials, "ca.crt"))
	if err != nil {
		return failed(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return failed(errors.New("there is no certificate in ca.crt"))
	}
	e, err := stand(address, serving, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{asking}})
	if err != nil {
		return failed(err)
	}
	return e, nil
}

func stand(address string, serving tls.Certificate, asking *tls.Config) (*Etcd, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &Etcd{listener: listener}
	silent := log.New(io.Discard, "", 0)
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      silent,
		Transport:     &http.Transport{TLSClientConfig: asking, ForceAttemptHTTP2: true},
		ModifyResponse: func(response *http.Response) error {
			if response.Request.URL.Path == watches {
				response.Body = e.lag.slow(response.Body)
			}
			return nil
		},
	}
	e.server = &http.Server{
		Handler:           forward,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{serving}},
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 10000}, // etcd has no bound
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          silent,
	}
	go func() { _ = e.server.ServeTLS(listener, "", "") }()
	return e, nil
}

// URL is where the API server finds its etcd.
func (e *Etcd) URL() string { return "https://" + e.listener.Addr().String() }

// Lag has whatever watches tell come so much later, from now on; zero: at once.
func (e *Etcd) Lag(by time.Duration) { e.lag.set(by) }

// Close cuts everything and stops listening.
func (e *Etcd) Close() error { return e.server.Close() }

// lag is how much later everything comes.
type lag struct {
	mu sync.Mutex
	by time.Duration
}

func (l *lag) set(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by = by
}

func (l *lag) now() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by
}
