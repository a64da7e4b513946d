package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// start runs a source until the test ends; Run must then return.
func start(ctx context.Context, t testing.TB, s *Source) {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
}

// logTo gives a context whose logger writes everything to the buffer.
func logTo(t testing.TB, out io.Writer) context.Context {
	return klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(out), textlogger.Verbosity(9))))
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serve is a TLS server on loopback that serves what the source gives it.
func serve(t testing.TB, s *Source) (address string) {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: s.GetCertificate})
	fatal(t, err)
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// handshake is what an API server does: it trusts the bundle alone and calls us by our service's name.
func handshake(address string, bundle []byte) (*x509.Certificate, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	dialer := &net.Dialer{Timeout: 20 * time.Second}
	conn, err := tls.DialWithDialer(dialer, "tcp", address, &tls.Config{RootCAs: pool, ServerName: serverName})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

func serving(s *Source, p pair) bool {
	cert, err := s.GetCertificate(nil)
	return err == nil && cert.Leaf.Equal(p.Leaf)
}

func TestBrokenPairKeepsTheOldAndIsSaidOnceWithoutContent(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	good, other := ca.leaf(t), ca.leaf(t)
	const secret = "hunter2hunter2"
	typed := "-----BEGIN " + secret + "-----\nAAAA\n-----END " + secret + "-----\n"
	for name, broken := range map[string]struct{ cert, key []byte }{
		"the key of another certificate":      {other.certPEM, good.keyPEM},
		"a half-written certificate":          {other.certPEM[:len(other.certPEM)/2], other.keyPEM},
		"a half-written key":                  {other.certPEM, other.keyPEM[:len(other.keyPEM)/2]},
		"both empty":                          {nil, nil},
		"a password in the place of the key":  {other.certPEM, []byte(secret)},
		"a password as the type of PEM block": {[]byte(typed), []byte(typed)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMount(t)
			m.hold(good.certPEM, good.keyPEM)
			source := m.source()
			var logged lockedBuffer
			start(logTo(t, &logged), t, source)
			eventually(t, "ready", source.Ready)

			m.hold(broken.cert, broken.key)
			const line = "The serving certificate cannot be read"
			eventually(t, "the log says so", func() bool { return strings.Contains(logged.String(), line) })
			time.Sleep(followEvery + 10*rereadEvery)
			if !serving(source, good) {
				t.Error("the old certificate is no longer served")
			}
			if n := strings.Count(logged.String(), line); n != 1 {
				t.Errorf("said %d times:\n%s", n, logged.String())
			}
			if strings.Contains(logged.String(), secret) {
				t.Errorf("the log holds content:\n%s", logged.String())
			}

			m.hold(other.certPEM, other.keyPEM)
			eventually(t, "a whole pair is served again", func() bool { return serving(source, other) })
		})
	}
}

func TestFilesThatComeLate(t *testing.T) {
	t.Parallel()
	p, m := newCA(t).leaf(t), newMount(t)
	source := m.source()
	var logged lockedBuffer
	start(logTo(t, &logged), t, source)
	eventually(t, "the log names the file", func() bool { return strings.Contains(logged.String(), "tls.key: no such file") })
	if _, err := source.GetCertificate(nil); err == nil || source.Ready() {
		t.Error("ready without a certificate")
	}
	if n := testutil.CollectAndCount(source); n != 0 {
		t.Errorf("%d metrics without a certificate", n)
	}

	m.hold(p.certPEM, p.keyPEM)
	eventually(t, "ready", source.Ready)
	if got, want := testutil.ToFloat64(source), float64(p.Leaf.NotAfter.Unix()); got != want {
		t.Errorf("metric = %v, want %v", got, want)
	}

	fatal(t, os.Remove(filepath.Join(m.dir, "..data"))) // and go again
	time.Sleep(followEvery + 5*rereadEvery)
	if !serving(source, p) {
		t.Error("a certificate was withdrawn when its files went")
	}
}

// read has the files read once, and the source judge the result as at the given time.
func read(ctx context.Context, s *Source, now time.Time) (served *tls.Certificate) {
	ctx, stop := context.WithCancel(ctx)
	stop()
	s.keep(ctx)
	served, _ = s.takeOver(now)
	return served
}

func TestPairThatIsNotValidNowWaits(t *testing.T) {
	ca, now := newCA(t), time.Now()
	good, expired, future := ca.leaf(t), ca.leafUntil(t, now.Add(-time.Minute)), ca.leafUntil(t, now.Add(150*time.Minute))
	for name, newer := range map[string]struct {
		pair
		takesOver time.Time
	}{
		"an expired one, until the old has expired too": {expired, good.Leaf.NotAfter.Add(time.Second)},
		"one not begun, until it begins":                {future, future.Leaf.NotBefore},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMount(t)
			m.hold(good.certPEM, good.keyPEM)
			source := m.source()
			read(t.Context(), source, now)
			m.hold(newer.certPEM, newer.keyPEM)
			if !read(t.Context(), source, now).Leaf.Equal(good.Leaf) {
				t.Error("it displaced a certificate that is valid")
			}
			if !read(t.Context(), source, newer.takesOver).Leaf.Equal(newer.Leaf) {
				t.Error("it was not served when the time came")
			}
		})
	}
}
