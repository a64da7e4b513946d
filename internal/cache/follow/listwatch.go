package follow

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/refusal"
)

const (
	// A LIST asks for firstPage objects, and then for as many as make about
	// pageBytes: the peak of memory is a few times that, while a large cluster is
	// not read in a thousand requests, each of which costs the server a count of all.
	firstPage   = 50
	pageBytes   = 1 << 19
	largestPage = 2000
	// fullLists is how often a paged LIST begins anew when its continuation
	// expired, before the Reflector is left to back off.
	fullLists = 3
)

// transform returns what is kept of an object; false if it is of another kind than asked for.
type transform func(runtime.Object) (runtime.Object, bool)

// newListWatch makes what a Reflector needs of a client: resource (plural, such as "configmaps")
// in one namespace, or in all if it is "", restricted by selector (nil: all). The Reflector
// receives what keep returns of each object.
//
// A LIST is always a consistent one in pages of half a MiB, whatever the
// Reflector asks for: it would ask for resourceVersion "0", or for 500 objects,
// or on a relist for all at once, and a server that refuses WatchList would send
// them in one body. A page is let go before the next one is read.
func newListWatch(client cache.Getter, resource, namespace string, selector fields.Selector, keep transform) *cache.ListWatch {
	if selector == nil {
		selector = fields.Everything()
	}
	l := &lister{keep: keep, client: client, resource: resource, namespace: namespace, selector: selector.String(), pageWithin: pageWithin}
	return &cache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: l.watch}
}

type lister struct {
	keep                          transform
	client                        cache.Getter
	resource, namespace, selector string
	pageWithin                    time.Duration
	failures                      int // of watches, one after the other
}

// mostFailures is how many watches in a row may fail to start, over one to two minutes, before
// everything is listed anew: something between us and the API server may let through lists alone.
const mostFailures = 20

// watch starts a watch. A Reflector lists everything anew when that fails, unless the API server
// is too busy (429) or refuses the connection. All else that says nothing of what is known, such as
// 503 while a server restarts, becomes a 429 here, and the Reflector asks for the same watch again.
func (l *lister) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := l.start(ctx, options)
	if err == nil {
		l.failures = 0
		return w, nil
	}
	code := refusal.StatusOf(err).Code
	if l.failures++; options.SendInitialEvents != nil || code != 0 && code < http.StatusInternalServerError || l.failures > mostFailures {
		l.failures = 0
		return nil, err
	}
	klog.FromContext(ctx).Info("A watch failed to start; trying again", "resource", l.resource, "namespace", l.namespace, "reason", err.Error())
	return nil, apierrors.NewTooManyRequests(err.Error(), 1)
}

func (l *lister) start(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := l.notAhead(ctx, options.ResourceVersion); err != nil {
		return nil, err
	}
	options.FieldSelector = l.selector
	options.Watch = true
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(l.pageWithin, cancel)
	w, err := l.client.Get().Namespace(l.namespace).Resource(l.resource).
		VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
	late.Stop()
	if err != nil {
		cancel()
		return nil, refusal.Plain(err)
	}
	return forget(started{w, cancel}, l.keep), nil
}

// started is a watch that started in time, with what its request holds.
type started struct {
	watch.Interface
	cancel context.CancelFunc
}

// Stop implements watch.Interface.
func (s started) Stop() {
	s.Interface.Stop()
	s.cancel()
}

// notAhead fails with "expired", so that the Reflector lists anew, when we know
// of a later version than the API server. Then etcd was restored from a
// snapshot, and a watch from that version would be silent, without an error,
// until the cluster has counted up to it again. A restore ends all watches, so
// the beginning of one is when to look.
func (l *lister) notAhead(ctx context.Context, known string) error {
	if known == "" || known == "0" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, versionWithin)
	defer cancel()
	obj, err := l.client.Get().Namespace(l.namespace).Resource(l.resource).
		VersionedParams(&metav1.ListOptions{Limit: 1, FieldSelector: l.selector}, metav1.ParameterCodec).
		SetHeader("Accept", listVersion).Do(ctx).Get()
	if err != nil {
		return fmt.Errorf("asking for the version of %s before watching: %w", l.resource, refusal.Plain(err))
	}
	list, err := meta.ListAccessor(obj)
	if err != nil {
		return fmt.Errorf("asking for the version of %s before watching: the server answered with %T: %w", l.resource, obj, err)
	}
	if order, err := resourceversion.CompareResourceVersion(known, list.GetResourceVersion()); err == nil && order > 0 {
		return apierrors.NewResourceExpired(fmt.Sprintf("%s were known at a version that the API server does not have: was etcd restored? They are listed anew", l.resource))
	}
	return nil
}

// pageWithin bounds one page, and the beginning of a watch: the API server gives up
// itself after a minute.
const pageWithin = 90 * time.Second

// versionWithin bounds the question for a version: the Reflector asks again.
const versionWithin = 10 * time.Second

// listVersion asks for a list without what is in its objects.
const listVersion = runtime.ContentTypeJSON + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// page reads one page, and returns its size in bytes.
func (l *lister) page(ctx context.Context, options metav1.ListOptions) (obj runtime.Object, size int, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.pageWithin)
	defer cancel()
	options.FieldSelector = l.selector
	result := l.client.Get().Namespace(l.namespace).Resource(l.resource).
		VersionedParams(&options, metav1.ParameterCodec).Do(ctx)
	if obj, err = result.Get(); err != nil {
		return nil, 0, refusal.Plain(err)
	}
	body, err := result.Raw()
	return obj, len(body), err
}

func (l *lister) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.ResourceVersion = ""
	options.Limit = firstPage
	var err error
	for range fullLists {
		var list runtime.Object
		if list, err = l.pages(ctx, options); !apierrors.IsResourceExpired(err) {
			return list, err
		}
	}
	return nil, err
}

// pages reads all pages of one consistent LIST into one list. A page of metadata alone has an
// object that cannot be decoded (TypedOrMetadata): the page is halved until it is that object.
func (l *lister) pages(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	all := &metav1.List{}
	for {
		obj, size, err := l.page(ctx, options)
		if err != nil {
			return nil, err
		}
		if _, undecoded := obj.(*metav1.PartialObjectMetadataList); undecoded && options.Limit > 1 {
			options.Limit /= 2
			continue
		}
		page, err := meta.ListAccessor(obj)
		if err != nil {
			return nil, fmt.Errorf("listing %s: the server answered with %T instead of a list", l.resource, obj)
		}
		err = meta.EachListItem(obj, func(item runtime.Object) error {
			kept, ok := l.keep(item)
			if !ok {
				return fmt.Errorf("listing %s: an item is a %T", l.resource, item)
			}
			all.Items = append(all.Items, runtime.RawExtension{Object: kept})
			return nil
		})
		if err != nil {
			return nil, err
		}
		all.ResourceVersion, options.Continue = page.GetResourceVersion(), page.GetContinue()
		if options.Continue == "" {
			return all, nil
		}
		options.Limit = min(max(options.Limit*pageBytes/int64(max(size, 1)), 1), largestPage)
	}
}
