package admission

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// crowd is the connections of a server. When one comes for which there is no room, another is
// closed: of the peer that has most, the one that has been idle for longest. So no peer that
// keeps many keeps out one that has few, as golang.org/x/net/netutil's LimitListener would let
// it. None is closed on which a request is being answered: there is room for fewer of these
// than for connections.
type crowd struct {
	most int
	full func() // is called when one is closed for another

	mu     sync.Mutex
	guests map[net.Conn]*guest
	turn   int
}

// guest is one connection; the lock of its crowd guards it.
type guest struct {
	crowd *crowd
	conn  net.Conn
	peer  string
	busy  bool
	since int // when it was last busy, or came
}

// guestKey is the key of a guest in the context of its requests.
type guestKey struct{}

// enter is for http.Server's ConnContext.
func (c *crowd) enter(ctx context.Context, conn net.Conn) context.Context {
	g := &guest{crowd: c, conn: conn, peer: host(conn.RemoteAddr().String())}
	c.mu.Lock()
	c.guests[conn] = g
	g.rest()
	var victim net.Conn
	if len(c.guests) > c.most {
		if victim = c.victim(); victim != nil {
			delete(c.guests, victim)
		}
	}
	c.mu.Unlock()
	if victim != nil {
		if secure, ok := victim.(interface{ NetConn() net.Conn }); ok {
			victim = secure.NetConn() // TLS would say goodbye to who may not listen
		}
		_ = victim.Close()
		c.full()
	}
	return context.WithValue(ctx, guestKey{}, g)
}

// changed is for http.Server's ConnState.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.guests, conn)
	}
}

// victim wants the lock.
func (c *crowd) victim() net.Conn {
	has, idlest := map[string]int{}, map[string]*guest{}
	for _, g := range c.guests {
		has[g.peer]++
		if longest := idlest[g.peer]; !g.busy && (longest == nil || g.since < longest.since) {
			idlest[g.peer] = g
		}
	}
	var victim *guest
	for peer, g := range idlest {
		if victim == nil || has[peer] > has[victim.peer] {
			victim = g
		}
	}
	if victim == nil {
		return nil
	}
	return victim.conn
}

// rest wants the lock.
func (g *guest) rest() {
	g.crowd.turn++
	g.busy, g.since = false, g.crowd.turn
}

// keep keeps the connection of a request open until done is called.
func keep(ctx context.Context) (done func()) {
	g, ok := ctx.Value(guestKey{}).(*guest)
	if !ok {
		return func() {}
	}
	g.crowd.mu.Lock()
	defer g.crowd.mu.Unlock()
	g.busy = true
	return func() {
		g.crowd.mu.Lock()
		defer g.crowd.mu.Unlock()
		g.rest()
	}
}
