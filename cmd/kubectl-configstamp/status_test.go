package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

const (
	inStep    = "configstamp: in-step: every recorded checksum is up to date; nothing would change"
	wouldRoll = "configstamp: would-roll: the workload would be stamped and roll out; an order by this field manager does not wait for pause, window or min-interval"
)

// incident is a cluster in which an edit has gone wrong.
func incident(t *testing.T) *fakecluster.Server {
	return shown(t, fakecluster.New(t, "testdata/incident.yaml"))
}

// piped is incident for a test in a bubble.
func piped(t *testing.T) *fakecluster.Server {
	return shown(t, fakecluster.Piped(t, "testdata/incident.yaml"))
}

func shown(t *testing.T, server *fakecluster.Server) *fakecluster.Server {
	server.Dry = func(_ string, object *unstructured.Unstructured) ([]string, error) {
		switch object.GetName() {
		case "failed", "in-step":
			return []string{inStep}, nil
		case "mislabelled":
			t.Error("what is not served was asked for")
		}
		return []string{"configstamp: something else", wouldRoll}, nil
	}
	return server
}

func TestStatus(t *testing.T) {
	server := incident(t)
	golden(t, "status", server, "status")
	golden(t, "status-all-namespaces-json", server, "status", "-A", "-o", "json")
	golden(t, "status-of-one", server, "status", "deployment/paused")
	golden(t, "status-wide", server, "status", "-o", "wide")
}

func TestStatus_NothingUnderWay(t *testing.T) {
	golden(t, "status-nothing", incident(t), "status", "deploy", "in-step")
}

// Nothing is in step but by the webhook's own word.
func TestStatus_WithoutAnAnswerNothingIsInStep(t *testing.T) {
	for name, hinder := range map[string]func(*fakecluster.Server){
		"webhook-stopped": func(s *fakecluster.Server) { s.Dry = nil },
		"dry-runs-refused": func(s *fakecluster.Server) {
			s.Dry = func(string, *unstructured.Unstructured) ([]string, error) {
				return nil, errors.New(`admission webhook "policy.example.com" does not support dry run`)
			}
		},
		"no-right-to-patch": func(s *fakecluster.Server) {
			s.Forbid = func(verb, resource, _ string) bool { return verb == "patch" || resource == "secrets" }
		},
	} {
		server := incident(t)
		hinder(server)
		golden(t, "status-"+name, server, "status")
		out, _, _ := run(t, server, "status", "-o", "json")
		if strings.Contains(out, `"in-step"`) || strings.Contains(out, `"done":`) && !strings.Contains(out, `"done": 0`) {
			t.Errorf("%s: something is in step:\n%s", name, out)
		}
	}
}

// What is watched is asked for again only where an event touched it.
func TestStatus_Watch(t *testing.T) {
	t.Parallel()
	server := incident(t)
	const config = "/api/v1/namespaces/shop/configmaps/payment-api-config"
	ctx, out, _ := watching(t, server)
	server.Requests()

	back := server.Get(t, config) // somebody puts the old content back
	fields := back.GetManagedFields()
	fields[0].Time = &metav1.Time{Time: atThree().Add(-time.Minute)}
	back.SetManagedFields(fields)
	out.want("edited 60s ago by kubectl-edit")
	server.Put(back)
	out.wait(ctx, t)
	var asked []string
	for _, request := range server.Requests() {
		if path, found := strings.CutPrefix(request, "PATCH "); found {
			asked = append(asked, path[strings.LastIndex(path, "/")+1:strings.Index(path, "?")])
		}
	}
	slices.Sort(asked)
	if want := []string{"failed", "halted", "paused"}; !slices.Equal(asked, want) {
		t.Errorf("asked again for %v, want the users of the source alone: %v", asked, want)
	}
}

// lines waits for a text in what is written.
type lines struct {
	mu     sync.Mutex
	wanted string
	text   strings.Builder
	seen   chan struct{}
}

func (l *lines) want(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = text
	l.text.Reset()
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(text)
	if l.wanted != "" && strings.Contains(l.text.String(), l.wanted) {
		l.wanted = ""
		l.seen <- struct{}{}
	}
	return len(text), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) wait(ctx context.Context, t *testing.T) {
	t.Helper()
	select {
	case <-l.seen:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		t.Fatalf("never saw %q in:\n%s", l.wanted, l.text.String())
	}
}
