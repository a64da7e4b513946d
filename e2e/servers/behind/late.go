package behind

import (
	"io"
	"sync"
	"time"
)

// tick is how exact a lag is.
const tick = 10 * time.Millisecond

// late is a stream that comes late, in order and whole. It is read at once, so that its
// sender notices nothing.
type late struct {
	from io.ReadCloser
	lag  *lag

	mu     sync.Mutex
	chunks []chunk
	closed bool
}

// chunk is what came at a moment; the last has an error.
type chunk struct {
	came time.Time
	data []byte
	err  error
}

func (l *lag) slow(from io.ReadCloser) io.ReadCloser {
	s := &late{from: from, lag: l}
	go s.receive()
	return s
}

func (s *late) receive() {
	buffer := make([]byte, 32<<10)
	for {
		n, err := s.from.Read(buffer)
		s.mu.Lock()
		s.chunks = append(s.chunks, chunk{time.Now(), append([]byte(nil), buffer[:n]...), err})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (s *late) Read(buffer []byte) (int, error) {
	for {
		if n, due, err := s.next(buffer); due {
			return n, err
		}
		time.Sleep(tick)
	}
}

// next reads what is due, if anything is.
func (s *late) next(buffer []byte) (n int, due bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, true, io.ErrClosedPipe
	}
	if len(s.chunks) == 0 || time.Since(s.chunks[0].came) < s.lag.now() {
		return 0, false, nil
	}
	first := &s.chunks[0]
	n = copy(buffer, first.data)
	if first.data = first.data[n:]; len(first.data) > 0 {
		return n, true, nil
	}
	err = first.err
	s.chunks = s.chunks[1:]
	return n, n > 0 || err != nil, err
}

// Close implements io.Closer.
func (s *late) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.from.Close()
}
