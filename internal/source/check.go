package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// ErrNotProven is wrapped by every error of Checker.Fresh. It says nothing about
// the sources, only that what they hold at this moment could not be had.
var ErrNotProven = errors.New("freshness not proven")

// What a CheckerOptions of zeros stands for.
const (
	defaultTimeout  = 250 * time.Millisecond
	defaultParallel = 16
)

const (
	// listFrom is from how many sources of one kind on a LIST reads their versions. It
	// costs the API server less than so many single reads, unless the namespace holds more
	// than listWithin times as many.
	listFrom   = 64
	listWithin = 8
	// manyReads are more than can be read one by one in about a second.
	manyReads = 500
	// listsAtOnce is how many LISTs are under way at once: each takes some MiB.
	listsAtOnce = 2
	// graceAtLeast, and graceForEach for each source, is how long a Checker waits for reads that may fail, once all others have succeeded.
	graceAtLeast = 50 * time.Millisecond
	graceForEach = 100 * time.Microsecond
)

// CheckerOptions bound a Checker; zero values mean the defaults.
type CheckerOptions struct {
	// Timeout is the longest that Fresh takes (250 ms).
	Timeout time.Duration
	// Parallel is the most reads of single sources under way at once, of all calls
	// together (16). Half as many more are for what is read beside.
	Parallel int
}

// Checker proves what sources hold at the moment of asking, by consistent reads of the
// API server. Its Store only spares it the transfer and hashing of what has not changed:
// a Checker needs neither a filled nor a current Store to be right, and writes nothing to
// it. What one call has proven counts for no later one.
type Checker struct {
	store   *Store
	reader  *reader
	options CheckerOptions
	reads   *sharing[Record]
	asides  *sharing[Record] // of what is read beside, so that nothing waits for it
	lists   *sharing[map[string]string]
}

// NewChecker makes a Checker that reads through the client of store.
func NewChecker(store *Store, options CheckerOptions) *Checker {
	if options.Timeout <= 0 {
		options.Timeout = defaultTimeout
	}
	if options.Parallel <= 0 {
		options.Parallel = defaultParallel
	}
	return &Checker{
		store: store, reader: &reader{store.client}, options: options,
		reads:  newSharing[Record](options.Timeout, options.Parallel),
		asides: newSharing[Record](options.Timeout, max(options.Parallel/2, 1)),
		lists:  newSharing[map[string]string](options.Timeout, listsAtOnce),
	}
}

// Fresh returns what each of must holds no earlier than the call, and each of beside of
// which a read came back in time. Any namespace may be asked for, as far as rights go,
// and Helm's release Secrets too. Of a SecretProviderClass it returns what the Store
// knows. It proves all of must or nothing: an error (ErrNotProven) names what could not be
// proven and why, and holds no content.
//
// The reads of beside begin with the others. Once these are done, they are given as long
// again, and 50 ms at least (more where they are many): else the race of two short reads
// would decide.
func (c *Checker) Fresh(ctx context.Context, namespace string, must, beside []checksum.Source) (checksum.Contents, error) {
	must = unique(must)
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	began := time.Now()
	asides := c.aside(ctx, namespace, beside)
	records, failures := c.prove(ctx, namespace, must)
	if err := notProven(namespace, must, failures); err != nil {
		return nil, err
	}
	contents := make(checksum.Contents, len(must)+len(beside))
	for i, source := range must {
		contents[source] = records[i].Content
	}
	late := time.NewTimer(max(time.Since(began), graceAtLeast+time.Duration(len(beside))*graceForEach))
	defer late.Stop()
	for range beside {
		select {
		case found := <-asides:
			if found.err == nil {
				contents[found.source] = found.record.Content
			}
		case <-late.C:
			return contents, nil
		case <-ctx.Done():
			return contents, nil
		}
	}
	return contents, nil
}

// prove reads the present record of each source.
func (c *Checker) prove(ctx context.Context, namespace string, sources []checksum.Source) ([]Record, []error) {
	records, failures := make([]Record, len(sources)), make([]error, len(sources))
	versions := c.versions(ctx, namespace, sources)
	together(len(sources), c.options.Parallel, func(i int) {
		if failures[i] = ctx.Err(); failures[i] == nil {
			records[i], failures[i] = c.present(ctx, c.reads, namespace, sources[i], versions)
		}
	})
	return records, failures
}

// aside is what is found of a source that is read beside others.
type aside struct {
	source checksum.Source
	record Record
	err    error
}

// aside reads sources beside others, and answers for each.
func (c *Checker) aside(ctx context.Context, namespace string, sources []checksum.Source) <-chan aside {
	answers := make(chan aside, len(sources))
	if len(sources) == 0 {
		return answers
	}
	go func() {
		versions := c.versions(ctx, namespace, sources)
		together(len(sources), cap(c.asides.slots), func(i int) {
			answer := aside{source: sources[i], err: ctx.Err()}
			if answer.err == nil {
				answer.record, answer.err = c.present(ctx, c.asides, namespace, sources[i], versions)
			}
			answers <- answer
		})
	}()
	return answers
}

// together calls do for each of n, some at a time. However many they are, a call has no
// more under way than there can be requests, and so no more stand in the way of others.
func together(n, atOnce int, do func(i int)) {
	var begun atomic.Int64
	var working sync.WaitGroup
	for range min(n, atOnce) {
		working.Go(func() {
			for i := begun.Add(1) - 1; i < int64(n); i = begun.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	working.Wait()
}

// versions are the present resourceVersions of sources of which there are so many that a
// LIST is less work than a read of each. What it does not return is read: so it is not waited
// for longer than half of the time that is left, or, where they are very many, seven eighths.
func (c *Checker) versions(ctx context.Context, namespace string, sources []checksum.Source) map[checksum.Source]string {
	if len(sources) < listFrom {
		return nil
	}
	if deadline, bounded := ctx.Deadline(); bounded {
		share := time.Until(deadline) / 2
		if len(sources) > manyReads { // they could not be read in the other half
			share = time.Until(deadline) / 8 * 7
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, share)
		defer cancel()
	}
	of := map[checksum.Kind]int{}
	for _, source := range sources {
		of[source.Kind]++
	}
	var listing sync.WaitGroup
	var mu sync.Mutex
	versions := map[checksum.Source]string{}
	for kind, n := range of {
		if kind == checksum.SecretProviderClass || n < listFrom || c.store.count(namespace, kind) > listWithin*n {
			continue
		}
		listing.Go(func() {
			listed, err := c.lists.do(ctx, place{namespace, checksum.Source{Kind: kind}}, func(ctx context.Context) (map[string]string, error) {
				return c.reader.versions(ctx, namespace, kind)
			})
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for name, version := range listed {
				versions[checksum.Source{Kind: kind, Name: name}] = version
			}
		})
	}
	listing.Wait()
	return versions
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

// present is the present record of one source, of which a LIST may have returned the version.
func (c *Checker) present(ctx context.Context, by *sharing[Record], namespace string, source checksum.Source, versions map[checksum.Source]string) (Record, error) {
	switch {
	case !source.Nameable():
		return Record{}, nil // no such object can exist
	case source.Kind == checksum.SecretProviderClass: // no object holds what its pods report
		record, _ := c.store.Get(namespace, source)
		return record, nil
	}
	version, listed := versions[source]
	if record, held := c.store.Get(namespace, source); listed && held && record.ResourceVersion == version {
		return record, nil
	}
	look := c.one
	if listed { // memory is behind
		look = c.store.read
	}
	return by.do(ctx, place{namespace, source}, func(ctx context.Context) (Record, error) { return look(ctx, namespace, source) })
}

// one reads a single source. One that the Store does not hold is read whole at once: it
// is new, or, mostly, not there.
func (c *Checker) one(ctx context.Context, namespace string, source checksum.Source) (Record, error) {
	if _, held := c.store.Get(namespace, source); held {
		version, err := c.reader.version(ctx, namespace, source)
		if err != nil { // client-go asks again when a connection is cut, or the API server is busy
			return c.store.read(ctx, namespace, source)
		}
		if version == "" {
			return Record{}, nil
		}
		// The Store may have caught up with a change in the meantime.
		if record, held := c.store.Get(namespace, source); held && record.ResourceVersion == version {
			return record, nil
		}
	}
	return c.store.read(ctx, namespace, source)
}
