package collect

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/objects"
	"github.com/configstamp/configstamp/internal/panics"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/snapshot"
)

// Store is what the cluster holds, as far as is known (package source).
type Store interface {
	HasSynced() bool
	Content(namespace string, source checksum.Source) *checksum.Content
	Snapshot(namespace, name string) (snapshot.Snapshot, bool)
	Snapshots(namespace string) []snapshot.Snapshot
	SnapshotNamespaces() []string
	OnSnapshot(call func(namespace, name string))
	OnChange(call func(namespace string, source checksum.Source, was *checksum.Content))
}

// Archive makes and reads snapshots (package archive).
type Archive interface {
	Ensure(ctx context.Context, namespace string, of checksum.Source, name string) error
	Content(ctx context.Context, namespace, name string, of checksum.Source) (*checksum.Content, error)
}

// Options are what a Collector needs.
type Options struct {
	Store   Store
	Archive Archive
	Ring    func() *checksum.Ring
	// Tell tells people of an object.
	Tell func(about *corev1.ObjectReference, why reason.Reason, text string)
	// Bounds say what stays although nothing names it.
	Bounds snapshot.Bounds
	// Interval is how often a namespace is looked at where something has happened.
	Interval time.Duration
	Clock    clock.WithTicker
	Registry prometheus.Registerer
}

// configMaps reads those of a namespace, and deletes.
type configMaps interface {
	Get(ctx context.Context, name string) (*corev1.ConfigMap, error)
	Delete(ctx context.Context, name string, preconditions metav1.Preconditions) error
}

// finder reads all names in a namespace, or none.
type finder interface {
	in(ctx context.Context, namespace string) (*names, error)
}

// Collector collects snapshots, namespace by namespace.
type Collector struct {
	options Options
	names   finder
	client  func(namespace string) configMaps
	metrics metrics
	told    map[about]bool // what people were told

	mu sync.Mutex
	// namespaces are those in which something has happened, or was looked at.
	namespaces map[string]*namespace
	unused     snapshot.Unused
	gone       map[types.NamespacedName]bool // snapshots that were there
}

// namespace is what is to be done in one.
type namespace struct {
	changed bool      // since it was looked at
	hurry   time.Time // look then, zero: in the next round
	looked  time.Time // thoroughly
}

const (
	// tick is how often the Collector sees what is due.
	tick = time.Second
	// hurryAfter is how long after a snapshot has gone its namespace is looked at, so that
	// many make one look.
	hurryAfter = 2 * time.Second
	// eachOf is in how many rounds a namespace is looked at where nothing has happened:
	// revisions go without our knowing.
	eachOf = 6
	// mostGone bounds what is remembered of snapshots that are gone.
	mostGone = 4096
)

// New makes a Collector. It must be before the Store runs.
func New(config *rest.Config, options Options) (*Collector, error) {
	lists, err := newLists(config)
	if err != nil {
		return nil, err
	}
	client, err := objects.New[*corev1.ConfigMap](config, corev1.SchemeGroupVersion, corev1.AddToScheme, "configmaps", "")
	if err != nil {
		return nil, err
	}
	return newCollector(lists, func(namespace string) configMaps { return client.In(namespace) }, options), nil
}

func newCollector(names finder, client func(namespace string) configMaps, options Options) *Collector {
	c := &Collector{options: options, names: names, client: client, metrics: newMetrics(options.Registry)}
	c.begin()
	options.Store.OnSnapshot(c.snapshot)
	options.Store.OnChange(c.edited)
	return c
}

// begin forgets everything: what was unused before may have been used meanwhile.
func (c *Collector) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.namespaces, c.unused, c.gone = map[string]*namespace{}, snapshot.Unused{}, map[types.NamespacedName]bool{}
	c.told = map[about]bool{}
}

// Run collects until ctx ends. It is for the leader.
func (c *Collector) Run(ctx context.Context) {
	c.begin()
	ticker := c.options.Clock.NewTicker(tick)
	defer ticker.Stop()
	next := c.options.Clock.Now().Add(min(c.options.Interval, time.Minute))
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if !c.options.Store.HasSynced() || c.options.Ring() == nil {
			continue
		}
		round := !c.options.Clock.Now().Before(next)
		if round {
			next = c.options.Clock.Now().Add(c.options.Interval)
		}
		for namespace, thorough := range c.due(round) {
			if ctx.Err() == nil {
				c.try(ctx, namespace, thorough)
			}
		}
	}
}

// try looks at a namespace. After a failure, or a panic, it is looked at again.
func (c *Collector) try(ctx context.Context, namespace string, thorough bool) {
	logger := klog.FromContext(ctx)
	defer func() {
		if value := recover(); value != nil {
			logger.Error(nil, "Collecting snapshots panicked", "namespace", namespace, "panic", panics.What(value), "stack", panics.Where())
			c.again(namespace)
		}
	}()
	if err := c.look(ctx, namespace, thorough); err != nil && ctx.Err() == nil {
		logger.Error(err, "Snapshots are not collected, and stay", "namespace", namespace)
		c.again(namespace)
	}
}

func (c *Collector) again(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at(namespace).hurry = c.options.Clock.Now().Add(c.options.Interval)
}

// at is a namespace; the caller holds the lock.
func (c *Collector) at(name string) *namespace {
	n := c.namespaces[name]
	if n == nil {
		n = &namespace{}
		c.namespaces[name] = n
	}
	return n
}

// due are the namespaces to look at now, and whether thoroughly: for what is gone too. In a
// round these are all in which something has happened, something may go, or that were not
// looked at for long.
func (c *Collector) due(round bool) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.options.Clock.Now()
	if round {
		c.list()
	}
	due := map[string]bool{}
	for name, n := range c.namespaces {
		ripe := c.unused.Ripe(name, c.options.Bounds)
		thorough := !n.hurry.IsZero() && !now.Before(n.hurry) || round && !now.Before(n.looked.Add(eachOf*c.options.Interval))
		if thorough || round && (n.changed || !ripe.IsZero() && !now.Before(ripe)) {
			due[name] = thorough
			n.changed = false
		}
		if thorough {
			n.hurry, n.looked = time.Time{}, now
		}
	}
	return due
}

// list takes the namespaces in that hold snapshots, and forgets those of which there is
// nothing to say any more; the caller holds the lock.
func (c *Collector) list() {
	holding := map[string]bool{}
	for _, name := range c.options.Store.SnapshotNamespaces() {
		c.at(name)
		holding[name] = true
	}
	maps.DeleteFunc(c.namespaces, func(name string, n *namespace) bool {
		return !holding[name] && !n.changed && n.hurry.IsZero()
	})
}

// snapshot is told that a snapshot appeared, changed or disappeared.
func (c *Collector) snapshot(namespace, name string) {
	_, there := c.options.Store.Snapshot(namespace, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.at(namespace)
	n.changed = true
	if there {
		delete(c.gone, types.NamespacedName{Namespace: namespace, Name: name})
		return
	}
	c.miss(namespace, name)
	c.hurry(n)
}

// missed notes that a snapshot is gone: as soon as its source holds that again, it is made.
func (c *Collector) missed(namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.miss(namespace, name)
}

// miss is missed for who holds the lock.
func (c *Collector) miss(namespace, name string) {
	if len(c.gone) >= mostGone {
		clear(c.gone)
	}
	c.gone[types.NamespacedName{Namespace: namespace, Name: name}] = true
}

// hurry has a namespace looked at soon; the caller holds the lock.
func (c *Collector) hurry(n *namespace) {
	if n.hurry.IsZero() {
		n.hurry = c.options.Clock.Now().Add(hurryAfter)
	}
}

// edited is told that a source holds something else. What it held, or holds, is not unused;
// if a snapshot of that is gone, somebody may name it who did not know.
func (c *Collector) edited(namespace string, source checksum.Source, was *checksum.Content) {
	if source.Kind != checksum.ConfigMap {
		return
	}
	is, ring := c.options.Store.Content(namespace, source), c.options.Ring()
	all := c.options.Store.Snapshots(namespace)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range all {
		s := &all[i]
		if s.Of == source && (s.Content.SameEntries(was) || s.Content.SameEntries(is)) {
			c.unused.Used(namespace, s.Name)
		}
	}
	for _, content := range []*checksum.Content{was, is} {
		if content != nil && ring != nil && c.gone[types.NamespacedName{Namespace: namespace, Name: ring.SnapshotName(namespace, source, content)}] {
			c.hurry(c.at(namespace))
		}
	}
}
