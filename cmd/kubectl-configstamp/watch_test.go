package main

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

// watching runs status --watch until the test ends, and waits for its first answer.
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

// Only about what has changed is the webhook asked again, and once about a namespace without the label.
func TestWatch_AsksAboutWhatChanged(t *testing.T) {
	t.Parallel()
	server := incident(t)
	shop := server.Get(t, "/api/v1/namespaces/shop")
	shop.SetLabels(nil)
	server.Everywhere = true
	server.Put(shop)
	ctx, out, errOut := watching(t, server)
	paused := server.Get(t, "/apis/apps/v1/namespaces/shop/deployments/paused").DeepCopy()
	paused.SetAnnotations(map[string]string{"configstamp.dev/pause": "2026-11-22T05:00:00Z"})
	out.want("2026-11-22T05:00:00Z")
	server.Requests()
	server.Put(paused)
	out.wait(ctx, t)
	for _, request := range server.Requests() {
		if strings.HasPrefix(request, "PATCH") && !strings.Contains(request, "/deployments/paused?") {
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
