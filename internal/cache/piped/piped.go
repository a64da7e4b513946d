// Package piped is for tests in bubbles of testing/synctest: servers without sockets. What
// is sent goes through pipes, so that time passes only once all goroutines wait.
//
// Nothing but tests may import it.
package piped

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// Serve starts a server that ends with the test, and dials nobody but it.
func Serve(t testing.TB, handler http.HandlerFunc) (*httptest.Server, *Listener) {
	t.Helper()
	listener := Listen()
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Hour}}
	server.Start()
	t.Cleanup(func() {
		synctest.Wait() // for answers that are under way
		server.CloseClientConnections()
		server.Close()
		time.Sleep(time.Hour) // a client that tries again gives up: after the test, time stands still
	})
	return server, listener
}

// Listener listens at the other end of pipes. Make it with Listen.
type Listener struct {
	dialled chan net.Conn
	closed  <-chan struct{}
	closing context.CancelFunc
}

// Listen makes a listener.
func Listen() *Listener {
	closed, closing := context.WithCancel(context.Background())
	return &Listener{make(chan net.Conn), closed.Done(), closing}
}

// Dial is the other side of Accept, whatever address is named.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return l.DialFrom(ctx, nil)
}

// DialFrom is Dial from an address of the caller's; nil is that of a pipe.
func (l *Listener) DialFrom(ctx context.Context, peer net.IP) (net.Conn, error) {
	ours, theirs := net.Pipe()
	if peer != nil {
		theirs = &from{theirs, &net.TCPAddr{IP: peer, Port: 1}}
	}
	select {
	case l.dialled <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// from is a connection from an address.
type from struct {
	net.Conn
	peer net.Addr
}

// RemoteAddr implements net.Conn.
func (f *from) RemoteAddr() net.Addr { return f.peer }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.dialled:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.closing()
	return nil
}

// Addr is one of the machine itself, which certificates of tests are for.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
