package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/snapshot/archive"
	"github.com/configstamp/configstamp/internal/workload"
)

// store is an archive of which everything is told.
type store struct {
	mu        sync.Mutex
	ring      *checksum.Ring
	sources   checksum.Contents // what they hold now
	snapshots map[string]kept
	// fails is why the snapshot of a source cannot be made.
	fails map[checksum.Source]error
	// unread is why none can be read.
	unread error
	made   []string
}

type kept struct {
	of      checksum.Source
	content *checksum.Content
}

var snapshotsMade = time.Date(2026, 3, 14, 9, 26, 0, 0, time.UTC)

// put is a snapshot of what a source holds or held.
func (s *store) put(of checksum.Source, content *checksum.Content) string {
	name := s.ring.SnapshotName(caseNamespace, of, content)
	s.snapshots[name] = kept{of, content}
	return name
}

func (s *store) EnsureAll(ctx context.Context, namespace string, names map[checksum.Source]string) map[checksum.Source]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := map[checksum.Source]error{}
	for of, name := range names {
		if err := s.ensure(ctx, namespace, of, name); err != nil {
			failed[of] = err
		}
	}
	return failed
}

func (s *store) ensure(ctx context.Context, namespace string, of checksum.Source, name string) error {
	if found, ok := s.snapshots[name]; ok && found.of == of {
		return nil
	}
	if err := errors.Join(s.fails[of], ctx.Err()); err != nil {
		return err
	}
	if !s.ring.NamesSnapshot(namespace, of, s.sources[of], name) {
		return archive.ErrChanged
	}
	s.snapshots[name] = kept{of, s.sources[of]}
	s.made = append(s.made, name)
	slices.Sort(s.made)
	return nil
}

func (s *store) Content(_ context.Context, _, name string, of checksum.Source) (*checksum.Content, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.snapshots[name]; ok && found.of == of && s.unread == nil {
		return found.content, nil
	}
	return nil, s.unread
}

func (s *store) Known(namespace, name string, of checksum.Source) *checksum.Content {
	content, _ := s.Content(context.Background(), namespace, name, of)
	return content
}

func (s *store) MadeAt(_, name string) time.Time {
	if _, ok := s.snapshots[name]; ok {
		return snapshotsMade
	}
	return time.Time{}
}

// revisions are those of a workload, as the API server tells them.
type revisions struct {
	all     []*workload.Revision
	pods    []string // the names of those that have pods
	unknown error
	// podless is why pods cannot be listed.
	podless error
	asked   int
	// stored is the workload, nil: there is none; unread is why it cannot be read, and reads
	// counts the questions for it.
	stored []byte
	unread error
	reads  int
}

func (r *revisions) Stored(_ context.Context, kind *workload.Kind, _, _ string) (*workload.Object, error) {
	r.reads++
	if r.stored == nil || r.unread != nil {
		return nil, r.unread
	}
	return kind.Decode(r.stored)
}

func (r *revisions) HasPods(_ context.Context, _, _ string, of *workload.Revision) (bool, error) {
	return slices.Contains(r.pods, of.Name) && r.podless == nil, r.podless
}

func (r *revisions) Of(_ context.Context, _ *workload.Kind, _, _ string, owner types.UID) ([]*workload.Revision, error) {
	r.asked++
	if r.unknown != nil {
		return nil, r.unknown
	}
	return slices.DeleteFunc(slices.Clone(r.all), func(one *workload.Revision) bool { return one.Owner != owner }), nil
}

// pinning has a handler pin, with what a case says that there is.
func (c *testCase) pinning(t testing.TB, handler *Handler) *store {
	t.Helper()
	if !c.Pins {
		return nil
	}
	s := &store{ring: checksum.NewRing(newKey, oldKey), snapshots: map[string]kept{}, sources: contents(t, c.Sources), fails: map[checksum.Source]error{}}
	why := map[string]error{"quota": archive.ErrQuota, "forbidden": archive.ErrForbidden, "foreign": archive.ErrForeign, "changed": archive.ErrChanged, "late": context.DeadlineExceeded}
	for name, text := range c.Unmade {
		source, err := checksum.ParseSource(name)
		if err != nil || why[text] == nil {
			t.Fatalf("unmade: %s: %s", name, text)
		}
		s.fails[source] = why[text]
	}
	for _, name := range c.Snapshots {
		of, content := snapshotOf(t, c, name)
		s.put(of, content)
	}
	handler.Pins = &pins.Pins{Snapshots: s, Revisions: handler.Revisions}
	return s
}

// snapshotsOf is the store of a handler; nil: it does not pin.
func snapshotsOf(handler *Handler) *store {
	if handler.Pins == nil {
		return nil
	}
	return handler.Pins.Snapshots.(*store)
}

// kept are the revisions that a case says there are.
func (c *testCase) kept(t testing.TB) *revisions {
	t.Helper()
	told := &revisions{pods: c.Pods, stored: c.Stored}
	if c.Invented {
		told.stored = nil
	}
	for _, raw := range c.Revisions {
		read, err := workload.DecodeRevision(raw)
		if err != nil {
			t.Fatal(err)
		}
		told.all = append(told.all, read)
	}
	if c.NoRevisions {
		told.unknown = errUnproven
	}
	return told
}

// snapshotOf finds by its name of what a snapshot is.
func snapshotOf(t testing.TB, c *testCase, name string) (of checksum.Source, content *checksum.Content) {
	t.Helper()
	for _, held := range []map[string]map[string]string{c.Sources, c.Before} {
		for source, content := range contents(t, held) {
			if checksum.NewRing(newKey, oldKey).NamesSnapshot(caseNamespace, source, content, name) {
				return source, content
			}
		}
	}
	t.Fatalf("%s is no snapshot of what a source holds or held", name)
	return
}

// testCase's part for pins; see case_test.go.
type pinsCase struct {
	// Pins: the process pins.
	Pins bool
	// Snapshots are those that there are, by name. Names are written as
	// <snapshot configmap/web-message>, or <snapshot configmap/web-message before>.
	Snapshots []string
	// Unmade are sources of which no snapshot can be made, and why: quota, forbidden,
	// foreign, changed or late.
	Unmade map[string]string
	// Invented: the API server does not know the workload of an update.
	Invented bool
	// Revisions are ReplicaSets and ControllerRevisions; NoRevisions: they cannot be listed.
	Revisions   []json.RawMessage
	NoRevisions bool
	// Pods are the names of the revisions that have pods.
	Pods []string
}
