package proxy_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/proxy"
)

// front is a proxy before a server, and a client that trusts both.
func front(t *testing.T, handler http.HandlerFunc) (*proxy.Proxy, *http.Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	p, err := proxy.New(server.URL, ca, server.TLS.Certificates[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	client := server.Client()
	client.Transport = &http.Transport{TLSClientConfig: client.Transport.(*http.Transport).TLSClientConfig, ForceAttemptHTTP2: true}
	return p, client
}

func get(t *testing.T, client *http.Client, url string) (status int, body string, reused bool, err error) {
	t.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", reused, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), reused, err
}

func TestAProxyIsInvisibleWithoutRulesAndObeysThem(t *testing.T) {
	p, client := front(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path, r.Header.Get("Authorization")) })
	url := p.URL() + "/apis/apps/v1/namespaces/n/deployments/web"
	if status, body, _, err := get(t, client, url); err != nil || status != http.StatusOK || body != "/apis/apps/v1/namespaces/n/deployments/web" {
		t.Fatalf("%d %q %v", status, body, err)
	}
	var seen proxy.Request
	p.Observe(func(r *proxy.Request) { seen = *r })
	remove := p.Add(proxy.Rule{Match: proxy.Matching("get", "deployments"), Before: proxy.Fail(500, "InternalError", "no")})
	if status, _, _, err := get(t, client, url); err != nil || status != http.StatusInternalServerError {
		t.Fatalf("%d %v", status, err)
	}
	if seen.Verb != "get" || seen.Group != "apps" || seen.Resource != "deployments" || seen.Namespace != "n" || seen.Name != "web" {
		t.Errorf("seen as %+v", seen)
	}
	remove()
	p.Add(proxy.Rule{Before: proxy.FailTimes(1, 429, "TooManyRequests", "no")})
	for _, want := range []int{429, 200} {
		if status, _, _, err := get(t, client, url); err != nil || status != want {
			t.Errorf("%d %v, want %d", status, err, want)
		}
	}
}

func TestAClosedGateHoldsBytesAndACutBreaksThem(t *testing.T) {
	said := make(chan struct{})
	p, client := front(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "one")
		w.(http.Flusher).Flush()
		<-said
		fmt.Fprintln(w, "two")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	gate := &proxy.Gate{}
	p.Add(proxy.Rule{Match: proxy.Matching("watch", "configmaps"), Gate: gate})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+"/api/v1/configmaps?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	line := make([]byte, 4)
	if _, err := io.ReadFull(response.Body, line); err != nil || string(line) != "one\n" {
		t.Fatalf("%q %v", line, err)
	}
	gate.Close()
	close(said)
	arrived := make(chan string)
	go func() {
		_, _ = io.ReadFull(response.Body, line)
		arrived <- string(line)
	}()
	select {
	case text := <-arrived:
		t.Fatalf("%q came through a closed gate", text)
	default:
	}
	gate.Open()
	if text := <-arrived; text != "two\n" {
		t.Errorf("%q, want two", text)
	}
	if cut := p.Cut(proxy.Matching("watch", "")); cut != 1 {
		t.Errorf("%d requests were cut, want 1", cut)
	}
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("a cut looks like an end")
	}
}

func TestCutConnectionsHasTheClientMakeANewOne(t *testing.T) {
	p, client := front(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	for _, want := range []bool{false, true} {
		if _, _, reused, err := get(t, client, p.URL()); err != nil || reused != want {
			t.Fatalf("reused %t %v, want %t", reused, err, want)
		}
	}
	p.CutConnections()
	for range 2 { // the first may meet the end of the old one
		if _, _, reused, err := get(t, client, p.URL()); err == nil && !reused {
			return
		}
	}
	t.Error("the connection is still there")
}

func TestAStalledConnectionNeitherAnswersNorEnds(t *testing.T) {
	p, client := front(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	if _, _, _, err := get(t, client, p.URL()); err != nil {
		t.Fatal(err)
	}
	if stalled := p.Stall(); stalled != 1 {
		t.Fatalf("%d connections stall, want 1", stalled)
	}
	answered := make(chan error, 1)
	go func() {
		_, _, _, err := get(t, client, p.URL())
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("there is an answer through a dead connection: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	p.CutConnections()
	<-answered
	if _, _, _, err := get(t, client, p.URL()); err != nil {
		t.Error(err)
	}
}

func TestADroppedAnswerBreaksTheRequestAfterItHadItsEffect(t *testing.T) {
	effects := 0
	p, client := front(t, func(http.ResponseWriter, *http.Request) { effects++ })
	p.Add(proxy.Rule{After: func(context.Context, *proxy.Request, int) *proxy.Answer { return proxy.Drop() }})
	if _, _, _, err := get(t, client, p.URL()); err == nil || effects == 0 {
		t.Errorf("%v after %d effects", err, effects)
	}
}
