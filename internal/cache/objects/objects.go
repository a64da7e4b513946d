// Package objects reads and writes whole objects of Kubernetes' own kinds, each kind by a
// client of its own.
//
// client-go's clientset does the same, and links every group of the API, their
// builders and informers: 12 MB of program, and 7 MiB of memory for the scheme that
// all of it is registered in. Here only what is used is linked.
package objects

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/cache/follow"
)

// Client reads and writes the objects of one kind, in one namespace. Its errors are the
// API server's own (k8s.io/apimachinery/pkg/api/errors).
type Client[T runtime.Object] struct {
	// REST is what it stands on, for watches: see follow.Typed.
	REST rest.Interface

	resource, namespace string
}

// New makes a client of a resource (in the plural, such as secrets), of a group and version
// whose types register makes known. namespace is "" for objects that are in none.
func New[T runtime.Object](config *rest.Config, gv schema.GroupVersion, register func(*runtime.Scheme) error, resource, namespace string) (*Client[T], error) {
	client, err := follow.Typed(config, gv, register)
	if err != nil {
		return nil, err
	}
	return &Client[T]{client, resource, namespace}, nil
}

// In is the client for another namespace.
func (c *Client[T]) In(namespace string) *Client[T] {
	return &Client[T]{c.REST, c.resource, namespace}
}

// Get reads an object.
func (c *Client[T]) Get(ctx context.Context, name string) (T, error) {
	return c.do(ctx, c.REST.Get().Name(name))
}

// Create makes an object, and returns it as stored.
func (c *Client[T]) Create(ctx context.Context, object T) (T, error) {
	return c.do(ctx, c.REST.Post().Body(object))
}

// Update writes an object at the version that it was read at, and returns it as stored.
func (c *Client[T]) Update(ctx context.Context, name string, object T) (T, error) {
	return c.do(ctx, c.REST.Put().Name(name).Body(object))
}

// Patch changes an object in the name of a field manager, and returns it as stored.
func (c *Client[T]) Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, manager string) (T, error) {
	return c.do(ctx, c.REST.Patch(kind).Name(name).Body(patch).
		VersionedParams(&metav1.PatchOptions{FieldManager: manager}, metav1.ParameterCodec))
}

// Delete takes an object away, if it still is the one of preconditions.
func (c *Client[T]) Delete(ctx context.Context, name string, preconditions metav1.Preconditions) error {
	return c.REST.Delete().NamespaceIfScoped(c.namespace, c.namespace != "").Resource(c.resource).Name(name).
		Body(&metav1.DeleteOptions{Preconditions: &preconditions}).Do(ctx).Error()
}

func (c *Client[T]) do(ctx context.Context, request *rest.Request) (object T, err error) {
	answer, err := request.NamespaceIfScoped(c.namespace, c.namespace != "").Resource(c.resource).Do(ctx).Get()
	if err != nil {
		return object, err
	}
	object, ok := answer.(T)
	if !ok {
		return object, fmt.Errorf("the API server answered with %T instead of %T", answer, object)
	}
	return object, nil
}
