package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// peer is where a client calls from.
func peer(n byte) net.IP { return net.IPv4(10, 0, 0, n) }

// from is a client with connections from an address.
func (s *serving) from(t *testing.T, address net.IP) *http.Client {
	client := s.client(t)
	client.Timeout = time.Minute
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return s.DialFrom(ctx, address)
	}
	return client
}

// post sends a review of so many bytes.
func (s *serving) post(client *http.Client, size int) (status int, err error) {
	response, err := client.Post("https://"+s.address+"/?timeout=30s", "application/json", bytes.NewReader(make([]byte, size)))
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Body.Close()
}

// dial connects from an address until the test ends.
func (s *serving) dial(t *testing.T, address net.IP) net.Conn {
	t.Helper()
	conn, err := s.DialFrom(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// secure is a connection on which TLS is spoken.
func (s *serving) secure(conn net.Conn) *tls.Conn {
	return tls.Client(conn, &tls.Config{RootCAs: s.roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13})
}

// stall sends a review of so many bytes, but for the last.
func (s *serving) stall(t *testing.T, address net.IP, size int) {
	t.Helper()
	conn := s.secure(s.dial(t, address))
	go func() {
		_, _ = fmt.Fprintf(conn, "POST /?timeout=30s HTTP/1.1\r\nHost: configstamp\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", size)
		_, _ = conn.Write(make([]byte, size-1))
	}()
}

// reading is a server that reads what it is sent, and counts the bytes that it holds.
func reading(t *testing.T, held *atomic.Int64) *serving {
	return serve(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var mine int64
		defer func() { held.Add(-mine) }()
		for chunk := make([]byte, 64<<10); ; {
			n, err := r.Body.Read(chunk)
			mine += int64(n)
			held.Add(int64(n))
			if err != nil {
				break
			}
		}
		_, _ = io.WriteString(w, "served")
	})})
}

// Forty reviews of 8 MiB at once, from one address or from several, never fill memory; and
// from one address they keep nobody else waiting.
func TestServerBoundsBytes(t *testing.T) {
	for peers, most := range map[int]int64{1: mostBytes / 2, 40: mostBytes} {
		t.Run(fmt.Sprint(peers, " peers"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var held atomic.Int64
				server := reading(t, &held)
				for n := range 40 {
					server.stall(t, peer(byte(n%peers)), MaxBytes)
				}
				synctest.Wait()
				if got := held.Load(); got > most || got < most/4 {
					t.Errorf("%d bytes are held, want no more than %d, and no less than a quarter", got, most)
				}
				if peers > 1 {
					return
				}
				start := time.Now()
				if status, err := server.post(server.from(t, peer(200)), 1<<20); err != nil || status != http.StatusOK || time.Since(start) > 0 {
					t.Errorf("another peer: status %d, %v, after %s", status, err, time.Since(start))
				}
			})
		})
	}
}

// Reviews of many small values, which take many times their own bytes once they are read, are
// read a few at once; and from one address they keep nobody else waiting.
func TestServerBoundsValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		release := make(chan struct{})
		server := serve(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, status, err := Read(w, r, new(bytes.Buffer)); err != nil {
				http.Error(w, err.Error(), status)
				return
			}
			reads.Add(1)
			<-release
		})})
		var group sync.WaitGroup
		ask := func(from net.IP, values int, want int) {
			client := server.from(t, from)
			body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","object":{"a":[{}` + strings.Repeat(",{}", values/2) + `]}}}`
			group.Go(func() {
				response, err := client.Post("https://"+server.address+"?timeout=30s", "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
				} else if _ = response.Body.Close(); response.StatusCode != want {
					t.Errorf("status %d, want %d", response.StatusCode, want)
				}
			})
			synctest.Wait()
		}
		ask(peer(1), MaxValues, http.StatusRequestEntityTooLarge)
		for n := range 10 {
			want := http.StatusOK
			if n > 2 {
				want = http.StatusServiceUnavailable // it waits, until the API server would not any more
			}
			ask(peer(1), MaxValues/3-10, want)
		}
		if got := reads.Load(); got != 3 {
			t.Errorf("%d are read at once, want 3", got)
		}
		ask(peer(2), MaxValues/3-10, http.StatusOK)
		if got := reads.Load(); got != 4 {
			t.Error("another peer waits")
		}
		time.Sleep(longestTimeout * 4 / 5) // those that wait give up after three quarters
		close(release)
		group.Wait()
	})
}

// A body of which the rest does not come takes its room for readTimeout.
func TestServerWaitsForABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Int64
		server := reading(t, &held)
		server.stall(t, peer(1), MaxBytes)
		time.Sleep(readTimeout + time.Second)
		if status, err := server.post(server.from(t, peer(1)), MaxBytes); err != nil || status != http.StatusOK {
			t.Errorf("status %d, %v", status, err)
		}
	})
}

// What is too large, or does not say how large it is, is not read.
func TestServerReadsWhatIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Int64
		server := reading(t, &held)
		client := server.from(t, peer(1))
		if status, _ := server.post(client, MaxBytes+1); status != http.StatusRequestEntityTooLarge {
			t.Errorf("status %d", status)
		}
		response, err := client.Post("https://"+server.address, "application/json", io.MultiReader(strings.NewReader("{}")))
		if err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != http.StatusLengthRequired {
			t.Errorf("status %d", response.StatusCode)
		}
	})
}

// A burst of reviews, as of a thousand deploys of three API servers, is answered to the last:
// some wait for others.
func TestServerRefusesNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(50 * time.Millisecond)
			_, _ = io.WriteString(w, "served")
		})})
		var group sync.WaitGroup
		for n := range 3 {
			client := server.from(t, peer(byte(n)))
			for range 333 {
				group.Go(func() {
					if status, err := server.post(client, 40<<10); err != nil || status != http.StatusOK {
						t.Errorf("status %d, %v", status, err)
					}
				})
			}
		}
		group.Wait()
	})
}

// crowd opens so many connections, and keeps them open when the server closes them: it
// counts those that the server has not closed.
func (s *serving) crowd(t *testing.T, peers, connections int, shakeHands bool) *atomic.Int64 {
	t.Helper()
	var open atomic.Int64
	for n := range connections {
		conn := s.dial(t, peer(byte(n%peers)))
		if shakeHands {
			conn = s.secure(conn)
		}
		open.Add(1)
		go func() {
			defer open.Add(-1)
			_, _ = io.Copy(io.Discard, conn)
		}()
	}
	synctest.Wait()
	return &open
}

// Thousands of connections on which nothing is asked: so many are kept as take little
// memory, and who else comes is let in.
func TestServerBoundsConnections(t *testing.T) {
	for name, peers := range map[string]int{"one peer": 1, "a hundred": 100} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := serve(t, &Server{})
				own := server.from(t, peer(200))
				var kept atomic.Int32
				transport := own.Transport.(*http.Transport)
				dial := transport.DialContext
				transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					kept.Add(1)
					return dial(ctx, network, address)
				}
				if _, err := server.get(own); err != nil {
					t.Fatal(err)
				}
				open := server.crowd(t, peers, 100, true)
				more := server.crowd(t, peers, 5000, false)
				if all := open.Load() + more.Load() + 1; all > mostConnections {
					t.Errorf("%d connections are open, want no more than %d", all, mostConnections)
				}
				for name, client := range map[string]*http.Client{"a connection of before": own, "a new one": server.from(t, peer(201))} {
					if _, err := server.get(client); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				if n := kept.Load(); n != 1 {
					t.Errorf("a connection of who has few was closed: %d were made", n)
				}
			})
		})
	}
}

// A connection on which a request is under way is not closed for others.
func TestServerClosesNobodyUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		server := serve(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			<-release
			_, _ = io.WriteString(w, "served")
		})})
		failed := make(chan error, 1)
		client := server.from(t, peer(0)) // of the peer that has most
		go func() { _, err := server.get(client); failed <- err }()
		synctest.Wait()
		server.crowd(t, 1, 2*mostConnections, false)
		close(release)
		if err := <-failed; err != nil {
			t.Error(err)
		}
	})
}
