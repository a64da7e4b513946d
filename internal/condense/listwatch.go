package condense

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	// pageSize is how many objects one LIST request asks for.
	pageSize = 500
	// fullLists is how often a paged LIST begins anew when its continuation
	// expired, before the Reflector is left to back off.
	fullLists = 3
)

// NewListWatch makes what a Reflector needs of a condensing client: resource
// (plural, such as "configmaps") in one namespace, or in all when it is "",
// restricted by selector (nil: all).
//
// A LIST is always a consistent one in pages of 500, whatever the Reflector
// asks for: it would ask for resourceVersion "0", or on a relist without a
// limit, and a server that refuses WatchList would then send 100,000 objects in
// one body. Only requests with a resourceVersionMatch or a continue token go
// out as they are.
//
// Make the Reflector with a nil expectedType and a TypeDescription: bookmarks
// are of another type than objects (see NewTyped), and one that expects a type
// would skip them.
func NewListWatch(client cache.Getter, resource, namespace string, selector fields.Selector) *cache.ListWatch {
	if selector == nil {
		selector = fields.Everything()
	}
	l := lister{client: client, resource: resource, namespace: namespace, selector: selector.String()}
	return &cache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: l.watch}
}

type lister struct {
	client                        cache.Getter
	resource, namespace, selector string
}

func (l lister) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector = l.selector
	options.Watch = true
	w, err := l.client.Get().Namespace(l.namespace).Resource(l.resource).
		VersionedParams(&options, metav1.ParameterCodec).Watch(Quiet(ctx))
	if err != nil {
		return nil, err
	}
	return Forget(w), nil
}

func (l lister) page(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.FieldSelector = l.selector
	return l.client.Get().Namespace(l.namespace).Resource(l.resource).
		VersionedParams(&options, metav1.ParameterCodec).Do(Quiet(ctx)).Get()
}

func (l lister) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersionMatch != "" || options.Continue != "" {
		return l.page(ctx, options)
	}
	options.ResourceVersion = ""
	if options.Limit == 0 {
		options.Limit = pageSize
	}
	var err error
	for range fullLists {
		var list runtime.Object
		if list, err = l.pages(ctx, options); !apierrors.IsResourceExpired(err) {
			return list, err
		}
	}
	return nil, err
}

// pages reads all pages of one consistent LIST into one list.
func (l lister) pages(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	var all *metav1.List
	for {
		obj, err := l.page(ctx, options)
		if err != nil {
			return nil, err
		}
		page, ok := obj.(*metav1.List)
		if !ok {
			return nil, fmt.Errorf("listing %s: the server answered with %T instead of a list", l.resource, obj)
		}
		if all == nil {
			all = page
		} else {
			all.Items = append(all.Items, page.Items...)
		}
		if page.Continue == "" {
			all.Continue, all.RemainingItemCount = "", nil
			return all, nil
		}
		options.Continue = page.Continue
	}
}
