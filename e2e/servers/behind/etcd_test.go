package behind

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// etcd stands in for etcd: each message of a stream is sent back at once, then a trailer.
func etcd(t *testing.T) (before *Etcd, client *http.Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Grpc-Status")
		w.WriteHeader(http.StatusOK)
		flush := http.NewResponseController(w).Flush
		_ = flush()
		message := make([]byte, 1)
		for {
			if _, err := io.ReadFull(r.Body, message); err != nil {
				break
			}
			_, _ = w.Write(message)
			_ = flush()
		}
		w.Header().Set("Grpc-Status", "7")
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	before, err := stand(server.URL, server.TLS.Certificates[0], &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = before.Close() })
	return before, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
}

// stream is a call in which both sides go on sending.
type stream struct {
	send   *io.PipeWriter
	answer *http.Response
}

func call(t *testing.T, before *Etcd, client *http.Client, path string) *stream {
	t.Helper()
	read, write := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, before.URL()+path, read)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if response.ProtoMajor != 2 {
		t.Fatalf("it speaks %s", response.Proto)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return &stream{write, response}
}

// ask sends a message, and tells how long its answer took.
func (s *stream) ask(t *testing.T, message string) time.Duration {
	t.Helper()
	began := time.Now()
	if _, err := s.send.Write([]byte(message)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len(message))
	if _, err := io.ReadFull(s.answer.Body, answer); err != nil || !bytes.Equal(answer, []byte(message)) {
		t.Fatalf("it answers %q, %v", answer, err)
	}
	return time.Since(began)
}

func TestWatchesAreLateAndNothingElse(t *testing.T) {
	const by, quick = 600 * time.Millisecond, 300 * time.Millisecond
	before, client := etcd(t)
	watch, reads := call(t, before, client, watches), call(t, before, client, "/etcdserverpb.KV/Range")
	if took := watch.ask(t, "a"); took > quick {
		t.Errorf("without a lag a watch takes %s", took)
	}
	before.Lag(by)
	if took := watch.ask(t, "bcd"); took < by || took > by+quick {
		t.Errorf("with a lag of %s a watch takes %s", by, took)
	}
	if took := reads.ask(t, "e"); took > quick {
		t.Errorf("with a lag of the watches a read takes %s", took)
	}
	before.Lag(0)
	if took := watch.ask(t, "f"); took > quick {
		t.Errorf("after a lag a watch takes %s", took)
	}
}

// What is held back comes when the lag is less, in order, and so does the end.
func TestNothingIsLost(t *testing.T) {
	before, client := etcd(t)
	watch := call(t, before, client, watches)
	before.Lag(time.Hour)
	all := bytes.Repeat([]byte("0123456789"), 2000)
	if _, err := watch.send.Write(all); err != nil {
		t.Fatal(err)
	}
	_ = watch.send.Close()
	came := make(chan []byte)
	go func() {
		text, _ := io.ReadAll(watch.answer.Body)
		came <- text
	}()
	select {
	case text := <-came:
		t.Fatalf("%d bytes came at once", len(text))
	case <-time.After(300 * time.Millisecond):
	}
	before.Lag(0)
	if text := <-came; !bytes.Equal(text, all) {
		t.Errorf("%d bytes came, want %d, in order", len(text), len(all))
	}
	if status := watch.answer.Trailer.Get("Grpc-Status"); status != "7" {
		t.Errorf("the trailer says %q", status)
	}
}
