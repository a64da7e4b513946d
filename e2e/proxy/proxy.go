// Package proxy stands between one process and the API server and misbehaves on
// request: it holds watches, delays, answers by itself, and cuts connections.
//
// It ends TLS on both sides and passes everything else on as it is, credentials
// included, so that the process behind it keeps its own identity. A test adds a
// Rule and removes it again; without rules the proxy is invisible. Start reading
// at Rule (rule.go).
package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Proxy is one listener in front of the API server. Make it with New.
type Proxy struct {
	listener net.Listener
	server   *http.Server

	mu       sync.Mutex
	rules    []*Rule
	underway map[*Request]context.CancelFunc
	seen     func(*Request)
	open     map[net.Conn]struct{}
	streams  map[*Request]*stream
}

// New listens on the loopback with certificate and forwards to server, an https
// URL whose certificate ca (PEM) has signed.
func New(server string, ca []byte, certificate tls.Certificate) (*Proxy, error) {
	target, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("making a proxy for %q: %w", server, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("making a proxy: there is no certificate in the CA bundle")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("making a proxy: %w", err)
	}
	p := &Proxy{listener: listener, underway: map[*Request]context.CancelFunc{}, open: map[net.Conn]struct{}{}, streams: map[*Request]*stream{}}
	silent := log.New(io.Discard, "", 0)
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      silent,
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 32,
		},
		ModifyResponse: p.modify,
		ErrorHandler:   unanswered,
	}
	p.server = &http.Server{
		Handler:           p.handler(forward),
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          silent,
		ConnState:         p.connection,
	}
	go func() { _ = p.server.ServeTLS(stalling{listener}, "", "") }()
	return p, nil
}

// unanswered breaks requests that the API server does not answer. A watch that it
// refuses, being down, is answered by 429: client-go goes on where it was after
// that, as it does when it is refused itself, while anything else has it list anew.
func unanswered(w http.ResponseWriter, r *http.Request, err error) {
	request, ok := r.Context().Value(requestKey{}).(*Request)
	if !ok || request.Verb != "watch" || !errors.Is(err, syscall.ECONNREFUSED) {
		panic(http.ErrAbortHandler)
	}
	Status(http.StatusTooManyRequests, "TooManyRequests", "the API server refuses connections").write(w)
}

// URL is where the process finds its API server.
func (p *Proxy) URL() string { return "https://" + p.listener.Addr().String() }

// Close cuts everything and stops listening.
func (p *Proxy) Close() error { return p.server.Close() }

// Add puts a rule after those that are there; the first that acts wins.
func (p *Proxy) Add(rule Rule) (remove func()) {
	added := &rule
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(slices.Clone(p.rules), added)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.rules = slices.DeleteFunc(slices.Clone(p.rules), func(r *Rule) bool { return r == added })
	}
}

// Clear removes all rules, so that the proxy is invisible again.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// Observe has call called with every request that comes, before any rule; nil
// ends it.
func (p *Proxy) Observe(call func(*Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = call
}

// Cut breaks the connection of every request under way that match accepts (nil:
// all), watches mostly.
func (p *Proxy) Cut(match func(*Request) bool) (cut int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for request, cancel := range p.underway {
		if match == nil || match(request) {
			cancel()
			cut++
		}
	}
	return cut
}

// Expire ends every watch under way that match accepts (nil: all) as an API
// server does that has compacted what the client has seen: by an ERROR event of
// code 410 inside the watch.
func (p *Proxy) Expire(match func(*Request) bool) (expired int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for request, one := range p.streams {
		if match == nil || match(request) {
			one.end()
			expired++
		}
	}
	return expired
}

// Stall has every connection that is open now go dead: nothing comes through it
// any more, in either direction, and it is not closed, as when a node in between
// has vanished. New connections work.
func (p *Proxy) Stall() (stalled int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for connection := range p.open {
		if secure, ok := connection.(interface{ NetConn() net.Conn }); ok {
			connection = secure.NetConn()
		}
		if one, ok := connection.(*stallable); ok {
			one.once.Do(func() { close(one.stalled) })
			stalled++
		}
	}
	return stalled
}

// CutConnections closes every connection that the process has, with all that
// runs over it.
func (p *Proxy) CutConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for connection := range p.open {
		_ = connection.Close()
	}
}

func (p *Proxy) connection(connection net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		p.open[connection] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(p.open, connection)
	}
}

func (p *Proxy) handler(forward http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := read(r)
		ctx, cancel := context.WithCancel(context.WithValue(r.Context(), requestKey{}, request))
		defer cancel()
		rules := p.begin(request, cancel)
		defer p.end(request)
		for _, rule := range rules {
			if rule.Before == nil || !rule.matches(request) {
				continue
			}
			if answer := rule.Before(ctx, request); answer != nil {
				answer.write(w)
				return
			}
		}
		if ctx.Err() != nil {
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r.WithContext(ctx))
		if ctx.Err() != nil && r.Context().Err() == nil {
			panic(http.ErrAbortHandler) // cut: the end must not look like an end
		}
	})
}

func (p *Proxy) begin(request *Request, cancel context.CancelFunc) []*Rule {
	p.mu.Lock()
	seen, rules := p.seen, p.rules
	p.underway[request] = cancel
	p.mu.Unlock()
	if seen != nil {
		seen(request)
	}
	return rules
}

func (p *Proxy) end(request *Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.underway, request)
	delete(p.streams, request)
}

func (p *Proxy) current() []*Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rules
}

type requestKey struct{}

// modify applies rules to an answer of the API server before anything of it is
// passed on.
func (p *Proxy) modify(response *http.Response) error {
	request, ok := response.Request.Context().Value(requestKey{}).(*Request)
	if !ok {
		return nil
	}
	ctx := response.Request.Context()
	for _, rule := range p.current() {
		if rule.After == nil || !rule.matches(request) {
			continue
		}
		if answer := rule.After(ctx, request, response.StatusCode); answer != nil {
			_ = response.Body.Close()
			if answer.dropped() {
				return errors.New("dropped by a rule")
			}
			answer.replace(response)
			return nil
		}
	}
	if f := formatOf(response.Header); request.Verb == "watch" && response.StatusCode == http.StatusOK && f != unknownFormat {
		body := newStream(ctx, p, request, response.Body, f)
		p.mu.Lock()
		p.streams[request] = body
		p.mu.Unlock()
		response.Body = body
		return nil
	}
	response.Body = &gated{ReadCloser: response.Body, proxy: p, request: request, ctx: ctx}
	return nil
}

// gated holds back what the API server sends while a rule's gate is closed,
// also when the rule came after the answer began.
type gated struct {
	io.ReadCloser
	proxy   *Proxy
	request *Request
	ctx     context.Context //nolint:containedctx // it is the request's, and a Reader gets none
}

// Read implements io.Reader.
func (g *gated) Read(buffer []byte) (int, error) {
	n, err := g.ReadCloser.Read(buffer)
	for _, rule := range g.proxy.current() {
		if rule.Gate != nil && rule.matches(g.request) {
			if held := rule.Gate.Wait(g.ctx); held != nil {
				return 0, held
			}
		}
	}
	return n, err
}
