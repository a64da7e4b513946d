package admission

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Bounds of a server, so that no client that can reach its port fills its memory. The API server speaks HTTP/1.1 to a
// Service, so each review under way is a connection.
const (
	// mostConnections bounds those that are open: an idle one takes some 30 KiB.
	mostConnections = 1024
	// perRequest is what a request under way counts beside its body, for all else that it takes.
	perRequest = 32 << 10
	// mostBytes and mostValues bound the requests under way. One address has half of each, so that it cannot keep out
	// all others.
	mostBytes  = 2 * (MaxBytes + 32*perRequest)
	mostValues = 2 * MaxValues
	// readTimeout bounds a handshake, a header, and a request with its body: 8 MiB over a
	// slow link.
	readTimeout = 10 * time.Second
)

// bounded passes requests that are not too large to next, each when there is room for it. A request waits no longer than
// its answer may take.
func (s *Server) bounded(next http.Handler) http.Handler {
	bytes, values := newRoom(mostBytes), newRoom(mostValues)
	refuse := func(w http.ResponseWriter, status int, reason error) {
		if s.Refused != nil {
			s.Refused(status)
		}
		w.Header().Set("Connection", "close") // its body is not read
		http.Error(w, "configstamp: "+reason.Error(), status)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.ContentLength < 0:
			refuse(w, http.StatusLengthRequired, errors.New("a review needs a Content-Length"))
			return
		case r.ContentLength > MaxBytes:
			refuse(w, http.StatusRequestEntityTooLarge, errTooLarge)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), Within(r))
		defer cancel()
		v := &visit{peer: host(r.RemoteAddr), values: values}
		defer v.end()
		if v.take(ctx, bytes, r.ContentLength+perRequest) != nil {
			refuse(w, http.StatusServiceUnavailable, errBusy)
			return
		}
		defer keep(ctx)()
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, visitKey{}, v)))
	})
}

// visit is a request under way.
type visit struct {
	peer   string
	values *room
	leave  []func()
}

// visitKey is the key of a visit in the context of its request.
type visitKey struct{}

func (v *visit) take(ctx context.Context, in *room, amount int64) error {
	leave, err := in.enter(ctx, v.peer, amount)
	if err == nil {
		v.leave = append(v.leave, leave)
	}
	return err
}

func (v *visit) end() {
	for _, leave := range v.leave {
		leave()
	}
}

// weigh waits until there is room for the values of a review that has come by a Server.
func weigh(ctx context.Context, values int) error {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v.take(ctx, v.values, int64(values))
	}
	return nil
}

// room is a resource that requests share, in the order in which they came.
type room struct {
	all    *semaphore.Weighted
	each   int64 // what one peer may have
	mu     sync.Mutex
	shares map[string]*share // by peer; only of those that have some, or wait
}

func newRoom(size int64) *room {
	return &room{all: semaphore.NewWeighted(size), each: size / 2, shares: map[string]*share{}}
}

// share is what one peer has of a room.
type share struct {
	room     *semaphore.Weighted
	requests int
}

// enter takes some of the room, half of it at most, until leave is called. It fails if ctx ends before.
func (r *room) enter(ctx context.Context, peer string, amount int64) (leave func(), err error) {
	r.mu.Lock()
	mine := r.shares[peer]
	if mine == nil {
		mine = &share{room: semaphore.NewWeighted(r.each)}
		r.shares[peer] = mine
	}
	mine.requests++
	r.mu.Unlock()
	forget := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if mine.requests--; mine.requests == 0 {
			delete(r.shares, peer)
		}
	}
	if err := mine.room.Acquire(ctx, amount); err != nil {
		forget()
		return nil, err
	}
	if err := r.all.Acquire(ctx, amount); err != nil {
		mine.room.Release(amount)
		forget()
		return nil, err
	}
	return func() {
		r.all.Release(amount)
		mine.room.Release(amount)
		forget()
	}, nil
}

// host is an address without its port.
func host(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
