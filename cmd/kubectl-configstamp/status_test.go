package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

const (
	inStep    = "configstamp: in-step: every recorded checksum is up to date; nothing would change"
	wouldRoll = "configstamp: would-roll: the workload would be stamped and roll out; an order by this field manager does not wait for pause, window or min-interval"

	reportOnConfig = "/apis/configstamp.dev/v1alpha1/namespaces/shop/configrollouts/configmap-payment-api-config"
)

// incident is a cluster in which an edit has gone wrong, with what the leader has written about it.
func incident(t *testing.T) *fakecluster.Server {
	return answering(t, fakecluster.New(t, "testdata/incident.yaml", "testdata/reports.yaml"))
}

// piped is incident for a test in a bubble.
func piped(t *testing.T) *fakecluster.Server {
	return answering(t, fakecluster.Piped(t, "testdata/incident.yaml", "testdata/reports.yaml"))
}

func answering(t *testing.T, server *fakecluster.Server) *fakecluster.Server {
	server.Now = atThree()
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

// With the role view, and without the webhook and Events.
func TestStatus(t *testing.T) {
	server := incident(t)
	server.Forbid = func(verb, resource, _ string) bool {
		return verb == "patch" || resource == "secrets" || resource == "events"
	}
	golden(t, "status", server, "status")
	golden(t, "status-all-namespaces", server, "status", "-A")
	golden(t, "status-of-a-workload", server, "status", "deployment/in-step")
	golden(t, "status-of-a-source", server, "status", "configmap/payment-api-config", "-o", "jsonpath={.status.failed} of {.status.total}")
	golden(t, "status-name", server, "status", "-A", "-o", "name")
	golden(t, "status-wrong-namespace", server, "status", "-n", "shpo")
	golden(t, "status-wrong-source", server, "status", "configmap/payment-config")
	server.Delete(t, reportOnConfig)
	golden(t, "status-complete", server, "status")
	golden(t, "status-no-report", server, "status", "configmap/payment-api-config")
}

func TestStatus_FewOfMany(t *testing.T) {
	server := incident(t)
	for i := range 30 {
		r := server.Get(t, reportOnConfig)
		r.SetName(fmt.Sprintf("configmap-c%02d", i))
		for path, value := range map[string]string{"spec source name": fmt.Sprintf("c%02d", i), "status editedAt": fmt.Sprintf("2026-11-22T02:50:%02dZ", i)} {
			if err := unstructured.SetNestedField(r.Object, value, strings.Fields(path)...); err != nil {
				t.Fatal(err)
			}
		}
		server.Put(r)
	}
	out, _, _ := run(t, server, "status")
	if !strings.HasPrefix(out, "configmap/c29 in") || strings.Count(out, "STATE") != few || !strings.Contains(out, "31 edits are not complete in namespace shop, 1 complete. 21 more are not\n  shown:\n  kubectl get configrollouts -n shop\n") {
		t.Errorf("it says\n%s", out)
	}
}

// Without ConfigRollouts in the cluster, status prints one sentence.
func TestWithoutReports(t *testing.T) {
	server := fakecluster.New(t, "testdata/incident.yaml")
	golden(t, "status-no-reports", server, "status")
	golden(t, "why-no-reports", server, "why", "deployment/failed")
}

// What changes is shown, also after the API server was away.
func TestStatus_Watch(t *testing.T) {
	t.Parallel()
	server := incident(t)
	ctx, stop := context.WithTimeout(t.Context(), soon)
	out, errOut := &lines{wanted: "1 edit is not complete", seen: make(chan struct{}, 1)}, &lines{seen: make(chan struct{}, 1)}
	root := rootCommand(newPlugin(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}, atThree))
	root.SetArgs([]string{"status", "--watch", "--kubeconfig", server.Kubeconfig(t, "shop")})
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	out.wait(ctx, t)
	errOut.want("not up to date: ")
	server.Stop()
	errOut.wait(ctx, t)
	server.Delete(t, reportOnConfig)
	out.want("Nothing is under way in namespace shop")
	errOut.want("up to date again")
	server.Start()
	out.wait(ctx, t)
	errOut.wait(ctx, t)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
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
