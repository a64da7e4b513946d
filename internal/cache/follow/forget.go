package follow

import (
	"fmt"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/configstamp/configstamp/internal/refusal"
)

// What client-go and its callers keep of a watch outlives what came through it:
// the stream's decoder has one buffer for all events, and a Reflector holds on to
// the first watch of each fill, with that buffer and the whole connection, until
// the next fill, hours later. Content would lie there, so both are made to drop it.

// silence is after how long without event or bookmark a watch is given up. A
// healthy API server sends a bookmark about once a minute. Something between us
// and it may keep a watch open that delivers nothing any more, while it answers
// all else, pings included; client-go would believe it for ever.
const silence = 2 * time.Minute

// forgetful is a watch that lets go of everything once it is stopped, and stops
// by itself when it is silent. It keeps no more of the objects than keep returns.
type forgetful struct {
	keep   transform
	events chan watch.Event
	done   chan struct{} // closed once stopped

	mu    sync.Mutex
	inner watch.Interface // nil once stopped
}

// forget makes a watch let go of its stream, and so of the connection with all its buffers, once
// it is stopped, even while its caller still holds the watch; and end after two minutes without
// an event, or at an object that keep does not know.
func forget(w watch.Interface, keep transform) watch.Interface {
	f := &forgetful{keep: keep, events: make(chan watch.Event), done: make(chan struct{}), inner: w}
	go f.pass(w.ResultChan())
	return f
}

// pass hands events on until there are no more.
func (f *forgetful) pass(events <-chan watch.Event) {
	defer close(f.events)
	silent := time.AfterFunc(silence, f.Stop)
	defer silent.Stop()
	for event := range events {
		silent.Reset(silence)
		select {
		case f.events <- f.transformed(event):
		case <-f.done:
			return
		}
	}
}

// transformed returns the event that the Reflector receives, which logs the message of an error.
func (f *forgetful) transformed(event watch.Event) watch.Event {
	if event.Type == watch.Bookmark {
		return event
	}
	if status, ok := event.Object.(*metav1.Status); ok && event.Type == watch.Error {
		status = status.DeepCopy()
		status.Message = refusal.Words(status)
		return watch.Event{Type: watch.Error, Object: status}
	}
	if kept, ok := f.keep(event.Object); ok {
		return watch.Event{Type: event.Type, Object: kept}
	}
	failure := apierrors.NewInternalError(fmt.Errorf("the object of a watch event is a %T", event.Object)).ErrStatus
	return watch.Event{Type: watch.Error, Object: &failure}
}

// ResultChan implements watch.Interface.
func (f *forgetful) ResultChan() <-chan watch.Event { return f.events }

// Stop implements watch.Interface.
func (f *forgetful) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inner != nil {
		f.inner.Stop()
		f.inner = nil
		close(f.done)
	}
}

// Backoff is how long a Reflector of ours waits when the API server refuses it:
// by client-go's own measure a few watches that end early make it blind for half
// a minute. There are a dozen Reflectors to a process, so this is no load.
func Backoff() *wait.Backoff {
	return &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 5 * time.Second}
}

type wipingFramer struct{ runtime.Framer }

// NewFrameReader implements runtime.Framer.
func (f wipingFramer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &wipingReader{ReadCloser: f.Framer.NewFrameReader(r)}
}

type wipingReader struct {
	io.ReadCloser
	written  int  // bytes of the present event
	complete bool // there are no more of it
}

// Read implements io.Reader. The decoder reads on into the rest of its buffer
// when an event does not fit, and begins anew with each event.
func (r *wipingReader) Read(buffer []byte) (int, error) {
	if r.complete {
		clear(buffer[:min(r.written, len(buffer))])
		r.written = 0
	}
	n, err := r.ReadCloser.Read(buffer)
	r.written += n
	r.complete = err == nil
	return n, err
}
