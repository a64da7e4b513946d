package proxy

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"sync"
)

// stream is the body of a watch, taken apart into events so that rules can hide,
// repeat or add some.
type stream struct {
	io.Closer
	proxy   *Proxy
	request *Request
	format  format
	ctx     context.Context //nolint:containedctx // it is the request's, and a Reader gets none

	frames  chan []byte
	broken  chan struct{} // closed when there is no more
	expire  chan struct{}
	once    sync.Once
	pending []byte
	ended   bool
}

func newStream(ctx context.Context, p *Proxy, request *Request, body io.ReadCloser, f format) *stream {
	s := &stream{Closer: body, proxy: p, request: request, format: f, ctx: ctx,
		frames: make(chan []byte), broken: make(chan struct{}), expire: make(chan struct{})}
	go s.pump(bufio.NewReader(body))
	return s
}

// pump reads frames until the API server ends the watch.
func (s *stream) pump(body *bufio.Reader) {
	for {
		frame, err := s.next(body)
		if err != nil {
			close(s.broken)
			return
		}
		select {
		case s.frames <- frame:
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *stream) next(body *bufio.Reader) ([]byte, error) {
	if s.format == jsonFormat {
		return body.ReadBytes('\n')
	}
	var head [frameHead]byte
	if _, err := io.ReadFull(body, head[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, frameHead+int(binary.BigEndian.Uint32(head[:])))
	copy(frame, head[:])
	_, err := io.ReadFull(body, frame[frameHead:])
	return frame, err
}

// Read implements io.Reader.
func (s *stream) Read(buffer []byte) (int, error) {
	for len(s.pending) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		select {
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		case <-s.expire:
			frame, err := s.format.expired()
			if err != nil {
				return 0, err
			}
			s.pending, s.ended = frame, true
		case <-s.broken:
			// An API server that stops or dies ends its watches so that clients resume
			// where they were; a broken stream would have them list anew.
			if held := s.wait(); held != nil {
				return 0, held
			}
			return 0, io.EOF
		case frame := <-s.frames:
			s.pending = s.filter(frame)
		}
	}
	if err := s.wait(); err != nil {
		return 0, err
	}
	n := copy(buffer, s.pending)
	s.pending = s.pending[n:]
	return n, nil
}

// wait holds back what comes while a gate is closed, the end of the watch too.
func (s *stream) wait() error {
	for _, rule := range s.proxy.current() {
		if rule.Gate != nil && rule.matches(s.request) {
			if err := rule.Gate.Wait(s.ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// filter gives a frame to the rules; what they do not know how to read passes.
func (s *stream) filter(frame []byte) []byte {
	var rules []*Rule
	for _, rule := range s.proxy.current() {
		if rule.Event != nil && rule.matches(s.request) {
			rules = append(rules, rule)
		}
	}
	if len(rules) == 0 {
		return frame
	}
	event, err := s.format.read(frame)
	if err != nil {
		return frame
	}
	events := []*Event{event}
	for _, rule := range rules {
		var next []*Event
		for _, event := range events {
			next = append(next, rule.Event(s.request, event)...)
		}
		events = next
	}
	var out []byte
	for _, event := range events {
		out = append(out, event.frame...)
	}
	return out
}

// end tells the process that its version is too old, and ends the watch.
func (s *stream) end() { s.once.Do(func() { close(s.expire) }) }
