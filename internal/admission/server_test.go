package admission

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/configstamp/configstamp/internal/cache/piped"
)

// serving is a Server behind pipes, over real TLS, in a bubble.
type serving struct {
	*piped.Listener
	address string
	roots   *x509.CertPool
	stop    context.CancelFunc
	done    chan error // what Serve returned
}

func serve(t *testing.T, s *Server) *serving {
	t.Helper()
	return serveTo(silent(t), t, s)
}

// serveTo has a log in its context.
func serveTo(ctx context.Context, t *testing.T, s *Server) *serving {
	t.Helper()
	certificate, roots := selfSigned(t)
	if s.GetCertificate == nil {
		s.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	if s.Handler == nil {
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") })
	}
	ctx, stop := context.WithCancel(ctx)
	running := &serving{Listener: piped.Listen(), roots: roots, stop: stop, done: make(chan error, 1)}
	running.address = running.Addr().String()
	go func() { running.done <- s.Serve(ctx, running) }()
	t.Cleanup(func() {
		// Connections that their clients close must be closed before the server is: it closes the others under a lock,
		// and while anything waits for a lock the clock of the bubble stands still.
		time.Sleep(10 * time.Second)
		stop()
		time.Sleep(time.Minute) // both ends of a connection may say goodbye, and wait until the other listens
	})
	return running
}

func selfSigned(t *testing.T) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, roots
}

// client is a new client with its own connections, which speaks HTTP/2 if it may.
func (s *serving) client(t *testing.T, change ...func(*tls.Config)) *http.Client {
	config := &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12}
	for _, f := range change {
		f(config)
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DialContext: s.Dial}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 5 * time.Second}
}

func (s *serving) get(client *http.Client) (*http.Response, error) {
	response, err := client.Get("https://" + s.address)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response, errors.Join(err, response.Body.Close())
}

func (s *serving) ended(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.done:
		return err
	case <-time.After(5 * time.Second):
		t.Fatal("the server did not stop")
		return nil
	}
}

// refuses reports whether the port is closed.
func (s *serving) refuses() bool {
	connection, err := s.Dial(context.Background(), "", "")
	if err == nil {
		_ = connection.Close()
	}
	return err != nil
}

func TestServerSpeaksHTTP1OverModernTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, &Server{})
		response, err := server.get(server.client(t))
		if err != nil {
			t.Fatal(err)
		}
		if response.Proto != "HTTP/1.1" {
			t.Errorf("speaks %s", response.Proto)
		}
		for least, server := range map[uint16]*serving{tls.VersionTLS13: server, tls.VersionTLS12: serve(t, &Server{MinVersion: tls.VersionTLS12})} {
			for _, version := range []uint16{tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13} {
				_, err := server.get(server.client(t, func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }))
				if (err == nil) != (version >= least) {
					t.Errorf("%s and newer, asked by %s: %v", tls.VersionName(least), tls.VersionName(version), err)
				}
			}
		}
	})
}

func TestServerKeepsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var connections atomic.Int32
		server := serve(t, &Server{})
		client := server.client(t)
		transport := client.Transport.(*http.Transport)
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			connections.Add(1)
			return server.Dial(ctx, network, address)
		}
		for range 5 {
			if _, err := server.get(client); err != nil {
				t.Fatal(err)
			}
		}
		if n := connections.Load(); n != 1 {
			t.Errorf("five requests took %d connections", n)
		}
	})
}

// TestServerWithoutCertificate: a handshake fails, the server goes on.
func TestServerWithoutCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		certificate, roots := selfSigned(t)
		var ready atomic.Bool
		server := serve(t, &Server{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if !ready.Load() {
				return nil, errors.New("no certificate yet")
			}
			return certificate, nil
		}})
		server.roots = roots
		if _, err := server.get(server.client(t)); err == nil {
			t.Error("served without a certificate")
		}
		ready.Store(true)
		if _, err := server.get(server.client(t)); err != nil {
			t.Errorf("with a certificate: %v", err)
		}
	})
}

// TestServerDrains: a request under way when the server is told to stop is
// answered; those that come while it lingers are answered too, and asked to
// close their connection; then the port is closed.
func TestServerDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arrived, release := make(chan struct{}), make(chan struct{})
		server := serve(t, &Server{
			Linger: 300 * time.Millisecond,
			Drain:  5 * time.Second,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					close(arrived)
					<-release
					if r.Context().Err() != nil {
						t.Error("the context of a request under way ended with the server's")
					}
				}
				_, _ = io.WriteString(w, "served")
			}),
		})
		kept, slow := server.client(t), make(chan error, 1)
		if response, err := server.get(kept); err != nil || response.Close {
			t.Fatalf("before: %v, close %v", err, response.Close)
		}
		go func() {
			response, err := server.client(t).Get("https://" + server.address + "/slow")
			if err == nil {
				var body []byte
				body, err = io.ReadAll(response.Body)
				if string(body) != "served" {
					err = errors.Join(err, fmt.Errorf("answered %q", body))
				}
			}
			slow <- err
		}()
		<-arrived
		server.stop()
		time.Sleep(50 * time.Millisecond) // well within Linger
		for name, client := range map[string]*http.Client{"a kept connection": kept, "a new connection": server.client(t)} {
			if response, err := server.get(client); err != nil || !response.Close {
				t.Errorf("%s while it lingers: %v, %+v", name, err, response)
			}
		}
		time.Sleep(500 * time.Millisecond) // well past Linger
		if !server.refuses() {
			t.Error("the port is still open")
		}
		close(release)
		if err := <-slow; err != nil {
			t.Errorf("the request under way: %v", err)
		}
		if err := server.ended(t); err != nil {
			t.Errorf("a clean stop: %v", err)
		}
	})
}

// TestServerCutsOff: a request that does not end is cut off after Drain.
func TestServerCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arrived, cut := make(chan struct{}), make(chan struct{})
		server := serve(t, &Server{
			Drain: 100 * time.Millisecond,
			Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(arrived)
				<-r.Context().Done()
				close(cut)
			}),
		})
		failed := make(chan error, 1)
		go func() { _, err := server.get(server.client(t)); failed <- err }()
		<-arrived
		server.stop()
		if err := server.ended(t); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still under way after 100ms") {
			t.Errorf("got %v", err)
		}
		synctest.Wait() // the client has not given up by itself
		select {
		case <-cut:
		default:
			t.Error("the request goes on")
		}
		if err := <-failed; err == nil {
			t.Error("a request that was cut off succeeded")
		}
	})
}

// A connection on which nothing was ever sent is no request that was cut off.
func TestServerStopsCleanlyBesideAnUnusedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := serve(t, &Server{Drain: 200 * time.Millisecond})
		connection, err := running.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		synctest.Wait() // until it is accepted
		running.stop()
		if err := <-running.done; err != nil {
			t.Errorf("a clean stop failed: %v", err)
		}
	})
}

// TestServerFails: a listener that breaks is an error, not a silent stop.
func TestServerFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	err = (&Server{Handler: http.NotFoundHandler(), GetCertificate: noCertificate}).Serve(silent(t), listener)
	if err == nil || !strings.Contains(err.Error(), listener.Addr().String()) {
		t.Errorf("got %v", err)
	}
}

func noCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.New("no certificate")
}

// watchedListener tells whether it was closed.
type watchedListener struct {
	net.Listener
	closed atomic.Bool
}

func (l *watchedListener) Close() error {
	l.closed.Store(true)
	return l.Listener.Close()
}

// TestServerStoppedBeforeItStarts: the port is closed all the same when Serve returns.
func TestServerStoppedBeforeItStarts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that serving does not begin at once
	ctx, stop := context.WithCancel(silent(t))
	stop()
	for range 20 {
		inner, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listener := &watchedListener{Listener: inner}
		if err := (&Server{Handler: http.NotFoundHandler(), GetCertificate: noCertificate, Drain: time.Second}).Serve(ctx, listener); err != nil {
			t.Error(err)
		}
		if !listener.closed.Load() {
			t.Fatal("the port is still open")
		}
	}
}

// TestServerLeavesNothingBehind: no goroutine outlives Serve; the bubble would say so.
func TestServerLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, &Server{Drain: 200 * time.Millisecond})
		client := server.client(t)
		if _, err := server.get(client); err != nil {
			t.Fatal(err)
		}
		// One that never sends a byte must not keep the server.
		mute, err := server.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = mute.Close() }()
		server.stop()
		if err := server.ended(t); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := bufio.NewReader(mute).ReadByte(); err == nil {
			t.Error("a mute connection is still open")
		}
		client.CloseIdleConnections()
	})
}
