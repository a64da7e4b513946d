package controller

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/workload"
)

// A request that takes long holds a worker, and others wait behind it. The API
// server is told to give up first, so that what it had to say is heard.
const (
	serverTimeout  = 10 * time.Second
	requestTimeout = serverTimeout + 2*time.Second
)

// podsAtOnce is how many pods are read with one request: about 1 MiB.
const podsAtOnce = 100

// api is what the controller asks of the API server. Its errors repeat no word of the
// API server's, so that none comes into an event or the log.
type api interface {
	// get reads a workload, as the API server writes it.
	get(ctx context.Context, ref workload.Ref) ([]byte, error)
	// readmit sends the empty patch and returns the object as it was stored
	// (or would be, in a dry run) and the warnings of the webhooks.
	readmit(ctx context.Context, ref workload.Ref, manager string, dryRun bool) (body []byte, warnings []string, err error)
	// pods reads the pods that a selector selects.
	pods(ctx context.Context, namespace, selector string) ([]workload.Pod, error)
	// nodeReady reports whether a node is ready; one that is gone is not.
	nodeReady(ctx context.Context, name string) (bool, error)
}

// restAPI has a client for each kind that is watched.
type restAPI struct {
	core rest.Interface // of pods, nodes and sources

	mu      sync.RWMutex
	clients map[*workload.Kind]rest.Interface
}

// put gives a kind its client, nil when it is watched no more.
func (a *restAPI) put(kind *workload.Kind, client rest.Interface) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clients[kind] = client; client == nil {
		delete(a.clients, kind)
	}
}

// request is one about a workload, answered with JSON. Of a kind that is not watched there is none.
func (a *restAPI) request(verb string, ref workload.Ref) (*rest.Request, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	client, ok := a.clients[ref.Kind]
	if !ok {
		return nil, refusal.Plain(apierrors.NewNotFound(ref.Kind.GroupVersionResource().GroupResource(), ref.Name))
	}
	return client.Verb(verb).SetHeader("Accept", runtime.ContentTypeJSON).Namespace(ref.Namespace).Resource(ref.Kind.Resource).Name(ref.Name), nil
}

// send is the one place where a request is sent: what names it for errors. It returns the
// answer as it came, or the API server's reason for why there is none, which DoRaw and
// Raw drop.
func send(ctx context.Context, what string, request *rest.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	result := request.Timeout(serverTimeout).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, refusal.Plain(err))
	}
	return result.Raw()
}

func (a *restAPI) get(ctx context.Context, ref workload.Ref) ([]byte, error) {
	request, err := a.request("GET", ref)
	if err != nil {
		return nil, err
	}
	return send(ctx, "GET "+ref.String(), request)
}

func (a *restAPI) readmit(ctx context.Context, ref workload.Ref, manager string, dryRun bool) ([]byte, []string, error) {
	request, err := a.request("PATCH", ref)
	if err != nil {
		return nil, nil, err
	}
	var heard warnings
	request = request.SetHeader("Content-Type", string(types.MergePatchType)).Param("fieldManager", manager).WarningHandlerWithContext(&heard).Body([]byte("{}"))
	if dryRun {
		request = request.Param("dryRun", "All")
	}
	body, err := send(ctx, "PATCH "+ref.String(), request)
	return body, heard, err
}

// warnings collects what webhooks have to say, which client-go would log.
type warnings []string

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	*w = append(*w, text)
}

// pods reads page by page. Each page has a deadline of its own: a DaemonSet
// may have fifty.
func (a *restAPI) pods(ctx context.Context, namespace, selector string) ([]workload.Pod, error) {
	var all []workload.Pod
	for next := ""; ; {
		request := a.core.Get().Namespace(namespace).Resource("pods").Param("labelSelector", selector).Param("limit", strconv.Itoa(podsAtOnce))
		if next != "" {
			request = request.Param("continue", next)
		}
		body, err := send(ctx, "LIST pods in "+namespace, request)
		if err != nil {
			return nil, err
		}
		page, more, err := workload.Pods(body)
		if err != nil {
			return nil, fmt.Errorf("LIST pods in %s: %w", namespace, err)
		}
		next = more
		if all = append(all, page...); next == "" {
			return all, nil
		}
	}
}

// nodeReady takes a node to be ready where that may not be known.
func (a *restAPI) nodeReady(ctx context.Context, name string) (bool, error) {
	body, err := send(ctx, "GET node "+name, a.core.Get().Resource("nodes").Name(name))
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return true, nil // as where namespaces are given: then none is discounted
	case err != nil:
		return false, err
	}
	return workload.NodeReady(body)
}
