package rollout

import (
	"cmp"
	"maps"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// SourceRef is a source in its namespace.
type SourceRef struct {
	Namespace string
	Source    checksum.Source
}

// Compare orders sources: by namespace, kind and name.
func (s SourceRef) Compare(other SourceRef) int {
	return cmp.Or(cmp.Compare(s.Namespace, other.Namespace), s.Source.Compare(other.Source))
}

// Facts are what is known of a workload at a look.
type Facts struct {
	UID     string // metadata.uid: another one is another workload of its name
	Records checksum.Records
	// Sources are those that concern it.
	Sources []checksum.Source
	// Served tells that it is opted in.
	Served bool
	// Review and Policy are what its references ask for, and what holds it. Of what is
	// followed, Policy tells for how long.
	Review checksum.Review
	Policy checksum.Policy
	// Carried are the sources of which its template has a stamp of what they hold now,
	// with that content, whatever its policy says.
	Carried map[checksum.Source]checksum.Fingerprint
	// Declined are the sources whose content of now an undo of it has sent back, with that
	// content, whatever its policy says.
	Declined map[checksum.Source]checksum.Fingerprint
	// Mark is Planner.Mark of the moment at which all this was found out.
	Mark   uint64
	Status workload.Status
	Standstill
	// Pods, Nodes, Muted and LastRoll are read when a Verdict asks for them; until then nil.
	Pods     *Pods
	Nodes    map[string]bool // whether a node is ready, by its name
	Muted    *workload.Muted
	LastRoll *LastRoll
}

// LastRoll is the last rollout of a workload, as its revisions tell.
type LastRoll struct {
	// Sources are those whose stamps it changed, if it changed nothing else.
	Sources []checksum.Source
	// Began is when its revision was made first.
	Began time.Time
}

// Standstill is what several statuses of a workload, one after the other, tell of
// the rollout of anybody.
type Standstill struct {
	Since    time.Time // since when it rolls without any progress
	Calm     time.Time // since when it rolls no more
	Relapsed bool      // it was rolled out before, at this generation, and fell back
	Empty    time.Time // when it last ceased to have an available replica, but for moments
	Filled   time.Time // since when it has some; zero: it has none
}

// Fills takes, beside what was known before, how many replicas are available now. One that
// crashes again and again has some for moments, which do not count.
func (s *Standstill) Fills(known Standstill, available int32, now time.Time) {
	s.Empty, s.Filled = known.Empty, known.Filled
	switch {
	case available > 0 && s.Filled.IsZero():
		s.Filled = now
	case available > 0:
	case s.Empty.IsZero(), !s.Filled.IsZero() && now.Sub(s.Filled) >= CalmAfter:
		s.Empty, s.Filled = now, time.Time{}
	default:
		s.Filled = time.Time{}
	}
}

// Pods are those of a workload, of every revision.
type Pods struct {
	All      []workload.Pod
	Access   Access
	Selector string // that was used, "" for none
}

// Access tells whether pods could be looked at.
type Access int

// The ways.
const (
	Seen       Access = iota
	Unselected        // the workload has no selector that can be read: its status alone tells
	Forbidden         // there is no right to list pods: its status alone tells
	Unread            // the API server did not answer
)

// Needs is what has to be read beside a workload, before the next look at it.
type Needs struct {
	Pods     bool
	Selector *string // of the pods; nil: it is not known yet
	Nodes    []string
	Muted    bool
	LastRoll bool
}

// Any reports whether anything has to be read.
func (n *Needs) Any() bool { return n.Pods || n.Muted || n.LastRoll || len(n.Nodes) > 0 }

// Verdict is what comes of a look.
type Verdict struct {
	Roll   bool  // now
	Return bool  // now, to its former content
	Needs  Needs // look again with that
	// Why is what it waits for, if anything. Hold is the setting that holds it. Halted is
	// the workload that has failed with its change, the zero Ref when that was in another
	// namespace, and HaltedWhy says why. It has waited for its turn since Since. Settles tells
	// that its sources are being written, so that people are told nothing yet.
	Why       reason.Reason
	Hold      checksum.Hold
	Halted    workload.Ref
	HaltedWhy Failure
	Since     time.Time
	Settles   bool
	// Wait is how long to wait before the next look; 0: until something happens.
	Wait time.Duration
}

// carries reports whether the template has a stamp of a content of a source.
func (f *Facts) carries(source checksum.Source, content checksum.Fingerprint) bool {
	its, known := f.Carried[source]
	return known && its == content
}

// RolledBetween reports whether a workload has rolled between two records: a recording
// changes the baseline alone.
func RolledBetween(was, is checksum.Records) bool { return !maps.Equal(was.Stamps, is.Stamps) }
