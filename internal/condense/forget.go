package condense

import (
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// What client-go and its callers keep of a watch outlives what came through it:
// the stream's decoder has one buffer for all events, and a Reflector holds on to
// the first watch of each fill, with that buffer and the whole connection, until
// the next fill, hours later. Content would lie there, so both are made to forget.

// forgetful is a watch that lets go of everything once it is stopped.
type forgetful struct {
	events <-chan watch.Event

	mu    sync.Mutex
	inner watch.Interface // nil once stopped
}

// Forget makes a watch let go of its stream, and so of the connection with all
// its buffers, once it is stopped, whoever still holds the watch. NewListWatch
// does it by itself.
func Forget(w watch.Interface) watch.Interface {
	return &forgetful{events: w.ResultChan(), inner: w}
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
	}
}

// wipe has every stream's reader wipe the buffer that it is given before it waits
// for the next event, so that it does not hold the one before meanwhile.
func wipe(info runtime.SerializerInfo) runtime.SerializerInfo {
	if info.StreamSerializer != nil {
		stream := *info.StreamSerializer
		stream.Framer = wipingFramer{stream.Framer}
		info.StreamSerializer = &stream
	}
	return info
}

type wipingFramer struct{ runtime.Framer }

// NewFrameReader implements runtime.Framer.
func (f wipingFramer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return wipingReader{f.Framer.NewFrameReader(r)}
}

type wipingReader struct{ io.ReadCloser }

// Read implements io.Reader. The decoder reads on into the rest of its buffer
// when an event does not fit, and begins anew with each event.
func (r wipingReader) Read(buffer []byte) (int, error) {
	clear(buffer)
	return r.ReadCloser.Read(buffer)
}
