package follow

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// whole keeps objects as they are.
func whole(object runtime.Object) (runtime.Object, bool) { return object, true }

func TestAStoppedWatchHoldsNothing(t *testing.T) {
	inner := watch.NewFake()
	w := forget(inner, whole)
	go inner.Add(nil)
	if event := <-w.ResultChan(); event.Type != watch.Added {
		t.Errorf("%v came through, want the event of the inner watch", event)
	}
	w.Stop()
	w.Stop()
	if !inner.IsStopped() {
		t.Error("the inner watch goes on")
	}
	if w.(*forgetful).inner != nil {
		t.Error("the inner watch is still held")
	}
	if _, open := <-w.ResultChan(); open {
		t.Error("the events do not end")
	}
}

func TestASilentWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := watch.NewFake()
		w := forget(inner, whole)
		begin := time.Now()
		for range 4 {
			time.Sleep(silence - time.Second)
			if inner.IsStopped() {
				t.Fatalf("a watch that tells something ended within %s", time.Since(begin))
			}
			inner.Action(watch.Bookmark, nil)
			<-w.ResultChan()
		}
		last := time.Now()
		if _, open := <-w.ResultChan(); open || time.Since(last) != silence {
			t.Errorf("open: %t, after %s of silence", open, time.Since(last))
		}
		if !inner.IsStopped() {
			t.Error("the inner watch goes on")
		}
	})
}

func TestWatchesThatFailAgainAndAgainAreSoonTriedAgain(t *testing.T) {
	backoff := Backoff()
	for try := range 50 {
		if wait := backoff.Step(); wait > 8*time.Second || wait < 100*time.Millisecond {
			t.Errorf("try %d comes after %s", try+2, wait)
		}
	}
}

func TestAWatchEndsThoughNobodyListens(t *testing.T) {
	inner := watch.NewFake()
	w := forget(inner, whole)
	inner.Add(nil) // is taken, and offered to nobody
	w.Stop()
	if _, open := <-w.ResultChan(); open {
		t.Error("an event came after the end")
	}
}

func TestTheBufferOfAStreamDoesNotHoldTheEventBefore(t *testing.T) {
	info, ok := runtime.SerializerInfoForMediaType(clientgoscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("no serializer for protobuf")
	}
	var stream bytes.Buffer
	writer := info.StreamSerializer.NewFrameWriter(&stream)
	for _, frame := range []string{"a long secret", "short"} {
		if _, err := writer.Write([]byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	reader := forgetting(t).StreamSerializer.NewFrameReader(io.NopCloser(&stream))
	buffer := make([]byte, 16)
	for _, frame := range []string{"a long secret", "short"} {
		n, err := reader.Read(buffer)
		if err != nil || string(buffer[:n]) != frame {
			t.Fatalf("read %q %v, want %q", buffer[:n], err, frame)
		}
		if rest := bytes.Trim(buffer[n:], "\x00"); len(rest) > 0 {
			t.Errorf("behind %q the buffer still holds %q", frame, rest)
		}
	}
	if _, err := reader.Read(buffer); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if rest := bytes.Trim(buffer, "\x00"); len(rest) > 0 {
		t.Errorf("while it waits the buffer holds %q", rest)
	}
}

// What a stream's decoder is given is one event and nothing of those before, however its
// buffer grows.
func TestTheBufferOfAStreamHoldsOneEvent(t *testing.T) {
	info, _ := runtime.SerializerInfoForMediaType(clientgoscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	sizes := []int{10, 1024, 1025, 3, 5000, 0, 20000, 1023, 40000, 2}
	var stream bytes.Buffer
	writer := info.StreamSerializer.NewFrameWriter(&stream)
	for i, size := range sizes {
		_, _ = writer.Write(bytes.Repeat([]byte{byte(i + 1)}, size))
	}
	seen := &recording{}
	decoder := streaming.NewDecoder(forgetting(t).StreamSerializer.NewFrameReader(io.NopCloser(&stream)), seen)
	for i, size := range sizes {
		if _, _, err := decoder.Decode(nil, nil); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(seen.data, bytes.Repeat([]byte{byte(i + 1)}, size)) {
			t.Errorf("event %d of %d bytes: not what was sent", i, size)
		}
		if rest := seen.data[len(seen.data):cap(seen.data)]; len(bytes.Trim(rest, "\x00")) > 0 {
			t.Errorf("event %d of %d bytes: the buffer holds something of those before", i, size)
		}
	}
}

// forgetting returns the media type protobuf as our clients have it.
func forgetting(t *testing.T) runtime.SerializerInfo {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(codecs{NegotiatedSerializer: clientgoscheme.Codecs}.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("no serializer for protobuf")
	}
	return info
}

type recording struct {
	runtime.Decoder
	data []byte
}

func (r *recording) Decode(data []byte, _ *schema.GroupVersionKind, _ runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	r.data = data
	return nil, nil, nil
}
