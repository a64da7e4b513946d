package admission

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// connectionLimiter bounds the connections of a server. If there are too many, it closes one of the peer that has most:
// the one that has been idle for longest. So a peer that keeps many connections does not keep out one with few, as with
// golang.org/x/net/netutil's LimitListener. A connection on which a request is being answered is never closed: fewer
// requests than connections are under way.
type connectionLimiter struct {
	most int
	full func() // is called when a connection is closed for another

	mu   sync.Mutex
	open map[net.Conn]*connection
	turn int
}

// connection is one connection; the lock of its limiter guards it.
type connection struct {
	limiter *connectionLimiter
	conn    net.Conn
	peer    string
	busy    bool
	since   int // the turn in which it was last busy, or opened
}

// connectionKey is the key of a connection in the context of its requests.
type connectionKey struct{}

// opened is for http.Server's ConnContext.
func (l *connectionLimiter) opened(ctx context.Context, conn net.Conn) context.Context {
	c := &connection{limiter: l, conn: conn, peer: host(conn.RemoteAddr().String())}
	l.mu.Lock()
	l.open[conn] = c
	c.rest()
	var closing net.Conn
	if len(l.open) > l.most {
		if closing = l.idlest(); closing != nil {
			delete(l.open, closing)
		}
	}
	l.mu.Unlock()
	if closing != nil {
		if secure, ok := closing.(interface{ NetConn() net.Conn }); ok {
			closing = secure.NetConn() // TLS would send an alert, and the peer may not read
		}
		_ = closing.Close()
		l.full()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// changed is for http.Server's ConnState.
func (l *connectionLimiter) changed(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, conn)
	}
}

// idlest returns the connection to close, nil if all are busy. The caller holds the lock.
func (l *connectionLimiter) idlest() net.Conn {
	has, idlest := map[string]int{}, map[string]*connection{}
	for _, c := range l.open {
		has[c.peer]++
		if longest := idlest[c.peer]; !c.busy && (longest == nil || c.since < longest.since) {
			idlest[c.peer] = c
		}
	}
	var found *connection
	for peer, c := range idlest {
		if found == nil || has[peer] > has[found.peer] {
			found = c
		}
	}
	if found == nil {
		return nil
	}
	return found.conn
}

// rest marks the connection as idle. The caller holds the lock.
func (c *connection) rest() {
	c.limiter.turn++
	c.busy, c.since = false, c.limiter.turn
}

// keep keeps the connection of a request open until done is called.
func keep(ctx context.Context) (done func()) {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return func() {}
	}
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	c.busy = true
	return func() {
		c.limiter.mu.Lock()
		defer c.limiter.mu.Unlock()
		c.rest()
	}
}
