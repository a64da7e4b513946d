package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/refusal"
)

// ErrNotProven is wrapped by every error of Checker.Fresh. It says nothing about
// the sources, only that what they hold at this moment could not be had.
var ErrNotProven = errors.New("freshness not proven")

// What a CheckerOptions of zeros stands for.
const (
	defaultTimeout  = 250 * time.Millisecond
	defaultParallel = 16
)

// CheckerOptions bound a Checker; zero values mean the defaults.
type CheckerOptions struct {
	// Timeout is the longest that Fresh takes (250 ms).
	Timeout time.Duration
	// Parallel is the most requests under way at once, of all calls together
	// (16). So many connections are kept for them.
	Parallel int
}

// Checker is a Store that can also prove what sources hold at the moment of asking, by
// consistent reads of the API server. The Store only spares it the transfer and hashing
// of what has not changed: a Checker needs neither a filled nor a current Store to be
// right, and writes nothing to it.
type Checker struct {
	*Store
	options CheckerOptions
	slots   chan struct{}
	shared  sharing
}

// NewChecker makes a Checker that reads through the client of store.
func NewChecker(store *Store, options CheckerOptions) *Checker {
	if options.Timeout <= 0 {
		options.Timeout = defaultTimeout
	}
	if options.Parallel <= 0 {
		options.Parallel = defaultParallel
	}
	return &Checker{Store: store, options: options, slots: make(chan struct{}, options.Parallel),
		shared: sharing{timeout: options.Timeout, lines: map[place]*line{}}}
}

// Fresh returns what each of sources holds no earlier than the call. Any
// namespace may be asked for, as far as rights go, and Helm's release Secrets
// too. Of a SecretProviderClass it returns what the Store knows. It proves all or
// nothing: an error (ErrNotProven) names what could not be proven and why, and holds no
// content.
func (c *Checker) Fresh(ctx context.Context, namespace string, sources []checksum.Source) (checksum.Contents, error) {
	sources = unique(sources)
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	records, failures := c.each(ctx, namespace, sources)
	if err := notProven(namespace, sources, failures); err != nil {
		return nil, err
	}
	contents := make(checksum.Contents, len(sources))
	for i, source := range sources {
		contents[source] = records[i].Content
	}
	return contents, nil
}

// each looks at some sources, and begins with none once its time is up. However
// many they are, it has no more under way than there can be requests, and so no more
// stand in the way of other calls.
func (c *Checker) each(ctx context.Context, namespace string, sources []checksum.Source) ([]Record, []error) {
	records, failures := make([]Record, len(sources)), make([]error, len(sources))
	var begun atomic.Int64
	var looking sync.WaitGroup
	for range min(len(sources), c.options.Parallel) {
		looking.Go(func() {
			for i := begun.Add(1) - 1; i < int64(len(sources)); i = begun.Add(1) - 1 {
				if failures[i] = ctx.Err(); failures[i] != nil {
					continue
				}
				source := sources[i]
				records[i], failures[i] = c.shared.do(ctx, place{namespace, source}, func(ctx context.Context) (Record, error) {
					return c.one(ctx, namespace, source)
				})
			}
		})
	}
	looking.Wait()
	return records, failures
}

func unique(sources []checksum.Source) []checksum.Source {
	seen := make(map[checksum.Source]bool, len(sources))
	var found []checksum.Source
	for _, source := range sources {
		if !seen[source] {
			seen[source] = true
			found = append(found, source)
		}
	}
	return found
}

// notProven makes one error of failures, nil when there is none.
func notProven(namespace string, sources []checksum.Source, failures []error) error {
	const named = 5
	var names []string
	var first error
	more := -named
	for i, err := range failures {
		if err == nil {
			continue
		}
		if first == nil {
			first = err
		}
		if more++; more <= 0 {
			names = append(names, sources[i].String())
		}
	}
	if first == nil {
		return nil
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("checking %s in namespace %q: %w: %w", strings.Join(names, ", "), namespace, ErrNotProven, first)
}

// one proves a single source. One that the Store does not hold is read whole at
// once: it is new, or, mostly, not there.
func (c *Checker) one(ctx context.Context, namespace string, source checksum.Source) (Record, error) {
	if !source.Nameable() {
		return Record{}, nil // no such object can exist
	}
	if source.Kind == checksum.SecretProviderClass { // no object holds what its pods report
		record, _ := c.Get(namespace, source)
		return record, nil
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return Record{}, fmt.Errorf("waiting for one of %d parallel requests: %w", c.options.Parallel, ctx.Err())
	}
	if _, held := c.Get(namespace, source); held {
		version, err := c.version(ctx, namespace, source)
		if err != nil || version == "" {
			return Record{}, err
		}
		// The Store may have caught up with a change in the meantime.
		if record, held := c.Get(namespace, source); held && record.ResourceVersion == version {
			return record, nil
		}
	}
	return c.whole(ctx, namespace, source)
}

// metadataOnly asks for an object without its data.
const metadataOnly = runtime.ContentTypeProtobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// version reads the resourceVersion of a source, "" when it does not exist. No
// resourceVersion is asked for, so the read is consistent.
func (c *Checker) version(ctx context.Context, namespace string, source checksum.Source) (string, error) {
	obj, err := c.get(ctx, namespace, source, metadataOnly)
	if err != nil || obj == nil {
		return "", err
	}
	meta, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok || meta.ResourceVersion == "" {
		return "", fmt.Errorf("reading the metadata of %s: the API server answered with %T", source, obj)
	}
	return meta.ResourceVersion, nil
}

// whole reads a source, the zero Record when it does not exist.
func (c *Checker) whole(ctx context.Context, namespace string, source checksum.Source) (Record, error) {
	obj, err := c.get(ctx, namespace, source, "")
	if err != nil || obj == nil {
		return Record{}, err
	}
	o, ok := obj.(*object)
	if !ok {
		return Record{}, fmt.Errorf("reading %s: the API server answered with %T", source, obj)
	}
	return o.record(), nil
}

// get returns nil when the API server says that the source does not exist. A
// 404 that is not its word, but some proxy's, is an error.
func (c *Checker) get(ctx context.Context, namespace string, source checksum.Source, accept string) (runtime.Object, error) {
	request := c.Store.client.Get().Namespace(namespace).Resource(resourceOf(source.Kind)).Name(source.Name)
	if accept != "" {
		request.SetHeader("Accept", accept)
	}
	obj, err := request.Do(ctx).Get()
	switch {
	case err == nil:
		return obj, nil
	case apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return nil, nil
	default:
		return nil, fmt.Errorf("reading %s: %w", source, refusal.Plain(err))
	}
}
