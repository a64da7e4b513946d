package fakeapi

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// Piped is New without sockets, for a test in a bubble of testing/synctest: requests come
// through pipes, and time passes only once everybody waits.
func Piped(t testing.TB) *Server {
	t.Helper()
	s := prepare(t)
	to := &pipes{dialled: make(chan net.Conn), closed: make(chan struct{})}
	s.dial = to.dial
	s.http = &httptest.Server{Listener: to, Config: s.settings()}
	s.http.Start()
	t.Cleanup(func() {
		synctest.Wait() // for answers that are under way
		s.close()
		time.Sleep(time.Hour) // who tries again gives up: after the test, time stands still
	})
	return s
}

func (s *Server) piped() *rest.Config {
	return &rest.Config{Host: s.http.URL, QPS: -1, Transport: &http.Transport{DialContext: s.dial}}
}

// pipes are a listener at the other end of pipes.
type pipes struct {
	dialled chan net.Conn
	closing sync.Once
	closed  chan struct{}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.dialled <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialled:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "pipe" }
func (address) String() string  { return "piped" }
