package harness

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Balancer is what a Service is in production: it spreads connections, not
// requests, over processes, and knows no TLS.
type Balancer struct {
	listener net.Listener

	mu       sync.Mutex
	backends []*backend
	next     int
	held     chan struct{} // nil: new connections go through
}

type backend struct {
	address string // "" while its process is not there
	out     bool
	open    map[net.Conn]struct{}
}

func newBalancer(address string, backends int) (*Balancer, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("making the balancer: %w", err)
	}
	b := &Balancer{listener: listener}
	for range backends {
		b.backends = append(b.backends, &backend{open: map[net.Conn]struct{}{}})
	}
	go b.serve()
	return b, nil
}

// URL is what the webhook configuration calls.
func (b *Balancer) URL() string { return "https://" + b.listener.Addr().String() + "/" }

// Only sends every new connection to one process and cuts those to the others.
// A request that is under way on them is lost.
func (b *Balancer) Only(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for j, one := range b.backends {
		one.out = j != i
		if one.out {
			one.cut()
		}
	}
}

// Cut cuts all connections to a process, which stays in.
func (b *Balancer) Cut(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends[i].cut()
}

// Hold accepts connections and does nothing with them, as an overloaded node
// does; those that are open are cut. Release ends it.
func (b *Balancer) Hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil {
		b.held = make(chan struct{})
	}
	for _, one := range b.backends {
		one.cut()
	}
}

// Release has connections spread over all processes again.
func (b *Balancer) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held != nil {
		close(b.held)
		b.held = nil
	}
	for _, one := range b.backends {
		one.out = false
	}
}

// standsBehind has a process take its turn as one of those of a Balancer.
func (p *Process) standsBehind(b *Balancer, i int) {
	p.started = func(address string) { b.set(i, address) }
	p.ended = func(*Process) { b.set(i, "") }
}

func (b *Balancer) set(i int, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends[i].address = address
}

func (b *Balancer) close() { _ = b.listener.Close() }

// cut wants the lock of the Balancer.
func (b *backend) cut() {
	for connection := range b.open {
		_ = connection.Close()
	}
	clear(b.open)
}

func (b *Balancer) serve() {
	for {
		connection, err := b.listener.Accept()
		if err != nil {
			return // closed
		}
		go b.forward(connection)
	}
}

func (b *Balancer) forward(client net.Conn) {
	defer client.Close()
	b.mu.Lock()
	held := b.held
	b.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-time.After(time.Minute):
			return
		}
	}
	// As a Service does, a process that refuses is passed over.
	for range b.backends {
		one, address := b.pick()
		if one == nil {
			return
		}
		server, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			continue
		}
		b.join(one, client, server)
		return
	}
}

func (b *Balancer) join(one *backend, client, server net.Conn) {
	b.mu.Lock()
	one.open[client], one.open[server] = struct{}{}, struct{}{}
	b.mu.Unlock()
	var copying sync.WaitGroup
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close() // neither side uses half-closed connections
		_ = from.Close()
	}
	copying.Go(func() { pipe(server, client) })
	copying.Go(func() { pipe(client, server) })
	copying.Wait()
	b.mu.Lock()
	delete(one.open, client)
	delete(one.open, server)
	b.mu.Unlock()
}

func (b *Balancer) pick() (*backend, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.backends {
		one := b.backends[b.next%len(b.backends)]
		b.next++
		if one.address != "" && !one.out {
			return one, one.address
		}
	}
	return nil, ""
}
