package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configstamp/configstamp/internal/inspect/fakecluster"
)

// watches are those of status --watch of a namespace: four kinds of workloads, two of sources,
// two of revisions, and the events.
const watches = 9

// begun waits until so many watches have been begun.
func begun(ctx context.Context, t *testing.T, server *fakecluster.Server, n int) {
	t.Helper()
	for server.Begun() < n {
		select {
		case <-ctx.Done():
			t.Fatalf("%d watches have been begun, want %d", server.Begun(), n)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// watching runs status --watch until the test ends, and waits for its first answer, and for its
// watches.
func watching(t *testing.T, server *fakecluster.Server) (ctx context.Context, out, errOut *lines) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), soon)
	out, errOut = &lines{wanted: "0 of 3 done", seen: make(chan struct{}, 1)}, &lines{seen: make(chan struct{}, 1)}
	root := rootCommand(newPlugin(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}, atThree))
	root.SetArgs([]string{"status", "--watch", "--kubeconfig", server.Kubeconfig(t, "shop")})
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	out.wait(ctx, t)
	begun(ctx, t, server, watches)
	return ctx, out, errOut
}

// While the API server does not answer, that is said; after it, all is read anew, because
// nobody has told what was deleted meanwhile.
func TestWatch_TheAPIServerIsLostAndComesBack(t *testing.T) {
	t.Parallel()
	server := incident(t)
	ctx, out, errOut := watching(t, server)
	errOut.want("the API server cannot be reached")
	server.Stop()
	errOut.wait(ctx, t)
	server.Delete(t, "/apis/apps/v1/namespaces/shop/deployments/paused")
	errOut.want("--- 03:00:00 the API server answers again")
	out.want("0 of 2 done")
	server.Start()
	out.wait(ctx, t)
	errOut.wait(ctx, t)
}

// A watch that the API server ends goes on where it was: nothing is asked again.
func TestWatch_IsCut(t *testing.T) {
	t.Parallel()
	server := incident(t)
	ctx, out, errOut := watching(t, server)
	paused := func(change func(*unstructured.Unstructured), shows string) {
		object := server.Get(t, "/apis/apps/v1/namespaces/shop/deployments/paused").DeepCopy()
		change(object)
		out.want(shows)
		server.Put(object)
		out.wait(ctx, t)
	}
	paused(func(object *unstructured.Unstructured) { // from then on it knows where it is
		object.SetAnnotations(map[string]string{"configstamp.dev/pause": "2026-11-22T05:00:00Z"})
	}, "2026-11-22T05:00:00Z")
	server.Requests()
	server.Cut()
	begun(ctx, t, server, 2*watches)
	paused(func(object *unstructured.Unstructured) { // what comes then is shown
		object.SetLabels(map[string]string{"configstamp.dev/inject": "disabled"})
	}, "failed  ")
	for _, request := range server.Requests() {
		if !strings.Contains(request, "watch=true") || strings.Contains(request, "resourceVersion=0&") && strings.Contains(request, "/deployments?") {
			t.Errorf("asked %s", request)
		}
	}
	if errOut.String() != "" {
		t.Errorf("it says %q", errOut)
	}
}

// A new revision is shown when it is made, though the workload says nothing of it yet.
func TestWatch_ANewRevision(t *testing.T) {
	t.Parallel()
	server := incident(t)
	ctx, out, _ := watching(t, server)
	made := server.Get(t, "/apis/apps/v1/namespaces/shop/replicasets/failed-3").DeepCopy()
	made.SetName("failed-4")
	made.SetUID("")
	made.SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": "5"})
	if err := unstructured.SetNestedField(made.Object, "2026-11-22T02:59:00Z", "metadata", "creationTimestamp"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedStringMap(made.Object, map[string]string{"configmap.configstamp.dev/payment-api-config": "v1:aaaaaaaa:all:99999999999999999999999999999999"}, "spec", "template", "metadata", "annotations"); err != nil {
		t.Fatal(err)
	}
	out.want("rolling  deployment/failed")
	server.Put(made)
	out.wait(ctx, t)
}
