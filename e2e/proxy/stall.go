package proxy

import (
	"net"
	"sync"
)

// stalling makes connections that can go dead.
type stalling struct{ net.Listener }

// Accept implements net.Listener.
func (l stalling) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &stallable{Conn: connection, stalled: make(chan struct{}), closed: make(chan struct{})}, nil
}

type stallable struct {
	net.Conn
	once    sync.Once
	stalled chan struct{}
	closing sync.Once
	closed  chan struct{}
}

// Read implements net.Conn.
func (c *stallable) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	return n, c.wait(err)
}

// Write implements net.Conn. What is written to a dead connection is lost.
func (c *stallable) Write(buffer []byte) (int, error) {
	select {
	case <-c.stalled:
		return len(buffer), nil
	default:
		return c.Conn.Write(buffer)
	}
}

// wait blocks once the connection is dead, until it is closed on our side.
func (c *stallable) wait(err error) error {
	select {
	case <-c.stalled:
		<-c.closed
		return net.ErrClosed
	default:
		return err
	}
}

// Close implements net.Conn.
func (c *stallable) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
