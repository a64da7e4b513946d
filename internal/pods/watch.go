package pods

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/follow"
	"github.com/configstamp/configstamp/internal/panics"
)

const (
	// countEvery is how old the counts are at most.
	countEvery = 15 * time.Second
	// restAnew is how long a list of all pods is put off that namespaces ask for which are
	// opted in, so that many make one.
	restAnew = 30 * time.Second
)

// notFinished leaves out pods that have ended, on the server.
const notFinished = "status.phase!=Succeeded,status.phase!=Failed"

// Follower follows pods in a Room.
type Follower struct {
	*Room
	client rest.Interface
}

// NewFollower makes the Follower of a room, by the API server of config.
func NewFollower(config *rest.Config, room *Room) (*Follower, error) {
	client, err := follow.NewEither(config, corev1.SchemeGroupVersion, room.message, room.text)
	if err != nil {
		return nil, fmt.Errorf("making the client that follows pods: %w", err)
	}
	return &Follower{room, client}, nil
}

// Run follows pods until ctx ends, and forgets them then. It is for the leader.
func (f *Follower) Run(ctx context.Context) {
	f.begin(true)
	defer f.begin(false)
	for ctx.Err() == nil {
		f.watch(ctx)
	}
}

// watch follows pods until ctx ends, or all are to be listed anew.
func (f *Follower) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	f.passed.begin()
	stores := f.stores()
	for _, store := range stores {
		running.Go(func() { store.Run(ctx, f.client) })
	}
	ticker := f.options.Clock.NewTicker(countEvery)
	defer ticker.Stop()
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.passed.anew:
			again = f.options.Clock.After(restAnew)
		case <-again:
			return
		case <-ticker.C():
			if told, filled := heardOf(stores); filled {
				f.tryCount(ctx, told)
			}
		}
	}
}

// tryCount counts. After a panic the counts stay as they were until the next time.
func (f *Follower) tryCount(ctx context.Context, told time.Time) {
	defer func() {
		if value := recover(); value != nil {
			klog.FromContext(ctx).Error(nil, "Counting pods panicked", "panic", panics.What(value), "stack", panics.Where())
		}
	}()
	f.count(told)
}

func (r *Room) stores() (all []*follow.Store[*arrived]) {
	namespaces := r.options.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		all = append(all, &follow.Store[*arrived]{
			Resource: "pods", Namespace: namespace, Selector: fields.ParseSelectorOrDie(notFinished), Clock: r.options.Clock,
			Event: r.told,
			All:   func(all []*arrived, _ string) { r.replace(namespace, all) },
		})
	}
	return all
}

// heardOf is when the watch that has been silent longest last told anything, and whether all
// are filled.
func heardOf(stores []*follow.Store[*arrived]) (told time.Time, filled bool) {
	progress := make([]*follow.Progress, 0, len(stores))
	for _, store := range stores {
		if store.Pending() {
			return told, false
		}
		if store.Filled() { // else its namespace is gone
			progress = append(progress, &store.Progress)
		}
	}
	return follow.Oldest(progress...), true
}

// passed are the namespaces of which pods were passed over, as nobody wants them.
type passed struct {
	anew chan struct{}

	mu         sync.Mutex
	namespaces map[string]bool
}

func (p *passed) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.namespaces = map[string]bool{}
}

// wants reports whether the pods of a namespace are followed; a namespace whose pods are not
// is noted.
func (r *Room) wants(namespace string) bool {
	if r.options.Wanted(namespace) {
		return true
	}
	r.passed.mu.Lock()
	defer r.passed.mu.Unlock()
	r.passed.namespaces[namespace] = true
	return false
}

// NamespaceChanged tells that a Namespace says something else than before.
func (r *Room) NamespaceChanged(namespace string) {
	r.passed.mu.Lock()
	defer r.passed.mu.Unlock()
	if !r.passed.namespaces[namespace] || !r.options.Wanted(namespace) {
		return
	}
	delete(r.passed.namespaces, namespace)
	select {
	case r.passed.anew <- struct{}{}:
	default: // it is asked for
	}
}
