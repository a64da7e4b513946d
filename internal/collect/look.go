package collect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/snapshot"
	"github.com/configstamp/configstamp/internal/snapshot/archive"
)

// look does in one namespace what is to be done. An error says that not everything was.
func (c *Collector) look(ctx context.Context, namespace string, thorough bool) error {
	facts := &snapshot.Facts{
		Namespace: namespace, All: c.options.Store.Snapshots(namespace), Ring: c.options.Ring(),
		Now:    func(of checksum.Source) *checksum.Content { return c.options.Store.Content(namespace, of) },
		Listed: c.options.Clock.Now(),
	}
	c.unverified(facts)
	if !thorough && !facts.Idle(c.options.Bounds) {
		return nil
	}
	found, err := c.names.in(ctx, namespace)
	if err != nil {
		return err
	}
	facts.Named, facts.All = found.named, c.options.Store.Snapshots(namespace)
	errs := []error{c.restore(ctx, namespace, found)}
	c.mu.Lock()
	sweep := c.unused.Collect(facts, c.options.Bounds)
	c.mu.Unlock()
	for i := range sweep {
		errs = append(errs, c.sweep(ctx, &sweep[i], facts.Ring))
	}
	return errors.Join(errs...)
}

// sweep deletes a snapshot that nothing needs, if its source does not hold the same now.
func (c *Collector) sweep(ctx context.Context, s *snapshot.Snapshot, ring *checksum.Ring) error {
	source, err := c.client(s.Namespace).Get(ctx, s.Of.Name)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return c.failed(s, err)
	case ring.NamesSnapshot(s.Namespace, s.Of, checksum.ContentOfConfigMap(source), s.Name):
		c.used(s)
		return nil
	}
	if !c.still(s) { // somebody needed it meanwhile
		return nil
	}
	err = c.client(s.Namespace).Delete(ctx, s.Name, metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) {
		return c.failed(s, err)
	}
	c.metrics.collected.WithLabelValues(resultDeleted).Inc()
	klog.FromContext(ctx).V(2).Info("Deleted a snapshot that nothing names", "namespace", s.Namespace, "snapshot", s.Name)
	return nil
}

func (c *Collector) failed(s *snapshot.Snapshot, err error) error {
	c.metrics.collected.WithLabelValues(resultFailed).Inc()
	return fmt.Errorf("deleting snapshot %s: %w", s.Name, refusal.Plain(err))
}

func (c *Collector) used(s *snapshot.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unused.Used(s.Namespace, s.Name)
}

// still reports whether a snapshot is unused, and as it was.
func (c *Collector) still(s *snapshot.Snapshot) bool {
	now, there := c.options.Store.Snapshot(s.Namespace, s.Name)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, unused := c.unused[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]
	return there && unused && now.UID == s.UID && now.ResourceVersion == s.ResourceVersion
}

// restore makes those snapshots again that are named and gone. Of those whose source holds
// something else now, people are told.
func (c *Collector) restore(ctx context.Context, namespace string, found *names) error {
	referrers := map[string][]*referrer{}
	of := map[string]checksum.Source{}
	for _, u := range found.referrers {
		for source, name := range u.pins {
			if _, there := c.options.Store.Snapshot(namespace, name); !there {
				referrers[name], of[name] = append(referrers[name], u), source
			}
		}
	}
	var errs []error
	for name, by := range referrers {
		if content, err := c.options.Archive.Content(ctx, namespace, name, of[name]); err != nil || content != nil {
			errs = append(errs, err) // or memory is late
			continue
		}
		switch err := c.options.Archive.Ensure(ctx, namespace, of[name], name); {
		case err == nil:
			klog.FromContext(ctx).Info("Created a deleted snapshot again", "namespace", namespace, "snapshot", name)
		case errors.Is(err, archive.ErrChanged):
			c.lost(ctx, namespace, name, of[name], by, found)
		default:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// about is what people were told of a namespace, or of a snapshot in it.
type about struct {
	namespace, snapshot string
	uid                 types.UID // of whom it was told
}

// first reports whether people are to be told of something, once for each leader.
func (c *Collector) first(of about) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told[of] {
		return false
	}
	c.told[of] = true
	return true
}

// lost tells of a snapshot that cannot be made again, where Pods name it, or start from what
// names it. Old revisions alone start none.
func (c *Collector) lost(ctx context.Context, namespace, name string, of checksum.Source, by []*referrer, found *names) {
	c.missed(namespace, name)
	if c.first(about{namespace: namespace, snapshot: name}) {
		c.metrics.lost.Inc()
		klog.FromContext(ctx).Info("A snapshot in use was deleted, and its source holds other content", "namespace", namespace, "snapshot", name, "objects", len(by))
	}
	pods := map[*referrer][]string{} // by what made them
	for _, u := range by {
		switch {
		case u.Kind == "Pod":
			at := found.maker(u)
			pods[at] = append(pods[at], u.name)
		case starts(u):
			pods[u] = append(pods[u], []string(nil)...)
		}
	}
	for u, names := range pods {
		if !c.first(about{namespace, name, u.uid}) {
			continue
		}
		text := fmt.Sprintf("snapshot %s of %s was deleted, and %s now holds other content, with which new pods start", name, of, of)
		if len(names) > 0 {
			text += fmt.Sprintf("; containers of %s may fail to start again: delete these pods, and they are created again", list(names))
		}
		c.options.Tell(&corev1.ObjectReference{APIVersion: u.APIVersion, Kind: u.Kind, Namespace: namespace, Name: u.name, UID: u.uid}, reason.SnapshotLost, text)
	}
}

// starts reports whether Pods start from an object.
func starts(u *referrer) bool {
	for _, kind := range kinds() {
		if kind.name == u.Kind {
			return kind.template
		}
	}
	return false
}

// maker is what a Pod comes from in the end, as far as that names snapshots; else itself.
func (n *names) maker(pod *referrer) *referrer {
	const most = 4 // Job of a CronJob, and two to spare
	at := pod
	for range most {
		for _, u := range n.referrers {
			if at.owner != "" && u.uid == at.owner {
				at = u
				break
			}
		}
	}
	return at
}

func list(pods []string) string {
	const most = 5
	text := "pods " + strings.Join(pods[:min(len(pods), most)], ", ")
	if len(pods) == 1 {
		text = "pod " + pods[0]
	}
	if more := len(pods) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// unverified tells of snapshots that were made under another key, once for a Namespace.
func (c *Collector) unverified(facts *snapshot.Facts) {
	count, first := 0, ""
	for i := range facts.All {
		if s := &facts.All[i]; !s.Verified(facts.Ring) {
			if count++; first == "" {
				first = s.Name
			}
		}
	}
	if count == 0 || !c.first(about{namespace: facts.Namespace}) {
		return
	}
	what := first + " is"
	if count > 1 {
		what = fmt.Sprintf("%s and %d more are", first, count-1)
	}
	c.options.Tell(&corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: facts.Namespace, Name: facts.Namespace}, reason.SnapshotsUnverified,
		what+" labelled as a snapshot of configstamp, but cannot be verified: made with a lost key, in another cluster, or changed; not used, and never deleted by configstamp")
}
