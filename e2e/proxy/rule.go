package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Request is what rules see of a request.
type Request struct {
	// Verb is as in RBAC: get, list, watch, create, update, patch, delete,
	// deletecollection.
	Verb string
	// Group is "" for the core group; Resource is the plural name, such as
	// configmaps, and "" for what is no resource (/version, /readyz).
	Group, Version, Resource, Subresource, Namespace, Name string
	Path                                                   string
	Began                                                  time.Time
	Query                                                  url.Values
}

// String names a request for logs: patch deployments/web in default.
func (r *Request) String() string {
	if r.Resource == "" {
		return r.Verb + " " + r.Path
	}
	return fmt.Sprintf("%s %s/%s in %q", r.Verb, r.Resource, r.Name, r.Namespace)
}

// DryRun reports whether nothing is to be stored.
func (r *Request) DryRun() bool { return r.Query.Has("dryRun") }

// Rule says what is done with the requests that Match accepts (nil: all). Each
// of its parts may be nil. They are called from many goroutines.
type Rule struct {
	Match func(*Request) bool
	// Before is called before the request is passed on. It may block until ctx
	// ends; an Answer is sent instead of the API server's.
	Before func(ctx context.Context, request *Request) *Answer
	// After is called when the API server has answered, with its status code;
	// the request has had its effect. An Answer is sent instead of the API server's.
	After func(ctx context.Context, request *Request, status int) *Answer
	// Event is called with each event of a watch, and returns what the process
	// gets instead: the event itself, nothing, or some that came before.
	Event func(request *Request, event *Event) []*Event
	// Gate holds back the bytes of the answer while it is closed: the events of
	// a watch, mostly, and its end. Nothing is lost. A gate that is never opened
	// makes a half-open watch: it neither delivers nor ends.
	Gate *Gate
}

func (r *Rule) matches(request *Request) bool { return r.Match == nil || r.Match(request) }

// Matching accepts requests by verb and resource; each is a list with commas,
// and "" accepts all.
func Matching(verbs, resources string) func(*Request) bool {
	in := func(list, item string) bool {
		return list == "" || strings.Contains(","+list+",", ","+item+",")
	}
	return func(r *Request) bool { return in(verbs, r.Verb) && in(resources, r.Resource) }
}

// Delay waits before a request is passed on.
func Delay(wait time.Duration) func(context.Context, *Request) *Answer {
	return func(ctx context.Context, _ *Request) *Answer {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		return nil
	}
}

// Fail answers with a status, as the API server would.
func Fail(code int, reason, message string) func(context.Context, *Request) *Answer {
	return func(context.Context, *Request) *Answer { return Status(code, reason, message) }
}

// FailTimes answers the first n requests with a status.
func FailTimes(n int, code int, reason, message string) func(context.Context, *Request) *Answer {
	var mu sync.Mutex
	return func(context.Context, *Request) *Answer {
		mu.Lock()
		defer mu.Unlock()
		if n <= 0 {
			return nil
		}
		n--
		return Status(code, reason, message)
	}
}

// RefuseWatchList has the API server look like one that does not know
// WatchList, so that clients fall back to LIST.
func RefuseWatchList() Rule {
	return Rule{
		Match:  func(r *Request) bool { return r.Verb == "watch" && r.Query.Has("sendInitialEvents") },
		Before: Fail(http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"),
	}
}

// Drop is an answer that never comes: the connection breaks.
func Drop() *Answer { return &Answer{} }

// Answer is sent instead of the API server's.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Status makes the answer of a failed request (metav1.Status).
func Status(code int, reason, message string) *Answer {
	body, err := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{},
		"status": "Failure", "reason": reason, "message": message, "code": code,
	})
	if err != nil {
		panic(err) // texts always marshal
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if code == http.StatusTooManyRequests {
		header.Set("Retry-After", "1")
	}
	return &Answer{Code: code, Header: header, Body: body}
}

func (a *Answer) dropped() bool { return a.Code == 0 }

func (a *Answer) write(w http.ResponseWriter) {
	if a.dropped() {
		panic(http.ErrAbortHandler)
	}
	for key, values := range a.Header {
		w.Header()[key] = values
	}
	w.WriteHeader(a.Code)
	_, _ = w.Write(a.Body) // whoever does not listen has hung up
}

func (a *Answer) replace(response *http.Response) {
	response.StatusCode, response.Status = a.Code, ""
	response.Header = a.Header.Clone()
	response.Header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	response.ContentLength = int64(len(a.Body))
	response.Body = io.NopCloser(bytes.NewReader(a.Body))
}

// Gate is open until Close, and can be opened again.
type Gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil while open
}

// Close holds back what comes from now on.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

// Open lets go what was held back.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// Wait returns when the gate is open, or ctx's error when that ends before.
func (g *Gate) Wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		if opened == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-opened:
		}
	}
}

// read takes a request of the Kubernetes API apart:
// /api/v1[/namespaces/<ns>]/<resource>[/<name>[/<subresource>]], or /apis/<group>/<version>/…
func read(r *http.Request) *Request {
	request := &Request{Began: time.Now(), Verb: strings.ToLower(r.Method), Path: r.URL.Path, Query: r.URL.Query()}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		request.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		request.Group, request.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return request
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		request.Namespace, parts = parts[1], parts[2:]
	}
	request.Resource = parts[0]
	if len(parts) > 1 {
		request.Name = parts[1]
	}
	if len(parts) > 2 {
		request.Subresource = parts[2]
	}
	switch r.Method {
	case http.MethodPost:
		request.Verb = "create"
	case http.MethodPut:
		request.Verb = "update"
	case http.MethodDelete:
		if request.Name == "" {
			request.Verb = "deletecollection"
		}
	case http.MethodGet:
		if request.Query.Get("watch") == "true" || request.Query.Get("watch") == "1" {
			request.Verb = "watch"
		} else if request.Name == "" {
			request.Verb = "list"
		}
	}
	return request
}
