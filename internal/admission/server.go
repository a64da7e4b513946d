package admission

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// Server serves a handler by HTTP/1.1 over TLS.
type Server struct {
	Handler http.Handler
	// GetCertificate gives the certificate of each handshake.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// MinVersion is the oldest version of TLS that is spoken; 0: 1.3.
	MinVersion uint16
	// Clients are the clients that may call; nil: all.
	Clients *Clients
	// Linger is how long the server goes on accepting after its context ends, until endpoints and proxies have removed
	// it.
	Linger time.Duration
	// Drain is how long requests under way may take after that.
	Drain time.Duration
	// Refused counts requests for which there is no room, or with no length or too large a one, by their HTTP status;
	// nil: they are not counted.
	Refused func(status int)
}

const (
	writeTimeout = longestTimeout
	// idleTimeout is longer than the API server's own 90 s, so that the server never closes a connection on which a
	// request is being sent.
	idleTimeout = 3 * time.Minute
)

// Serve serves listener until ctx ends, then goes on for Linger, asks clients
// to close their connections, waits up to Drain for requests under way, and
// cuts off what is left. It returns nil after a clean stop.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	log := klog.FromContext(ctx)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	var draining atomic.Bool
	var underWay atomic.Int64
	bad := &complaints{log: log}
	connections := &connectionLimiter{most: mostConnections, open: map[net.Conn]*connection{}, full: func() { bad.add("too many connections: an idle one is closed") }}
	server := &http.Server{
		Handler:           closing(bad.counted(s.bounded(s.Handler)), &draining, &underWay),
		Protocols:         protocols,
		TLSConfig:         s.Clients.demand(&tls.Config{MinVersion: cmp.Or(s.MinVersion, tls.VersionTLS13), NextProtos: []string{"http/1.1"}, GetCertificate: s.GetCertificate}),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		// Requests keep their values, and go on when ctx ends.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnContext: connections.opened,
		ConnState:   connections.changed,
		ErrorLog:    bad.logger(),
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-served:
		return fmt.Errorf("serving admissions on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}

	log.Info("Draining", "linger", s.Linger, "drain", s.Drain)
	draining.Store(true)
	time.Sleep(s.Linger)
	drained, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Drain)
	defer cancel()
	err := server.Shutdown(drained)
	if err != nil {
		// Shutdown waits for connections that were made and never used, too: the
		// API server makes one more than it needs.
		if n := underWay.Load(); n > 0 {
			err = fmt.Errorf("%d requests were still under way after %s: %w", n, s.Drain, err)
		} else {
			err = nil
		}
		err = errors.Join(err, server.Close())
	}
	//nolint:errcheck // it is ErrServerClosed
	<-served // the port is closed now, even if serving had not begun when ctx ended
	return err
}

// closing asks clients to close their connection with the next answer while
// the server drains. An idle connection is not closed under their hands: the
// API server could be sending on it, and would not send again. It counts the
// requests under way.
func closing(next http.Handler, draining *atomic.Bool, underWay *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		underWay.Add(1)
		defer underWay.Add(-1)
		if draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
