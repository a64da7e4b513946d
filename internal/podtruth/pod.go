package podtruth

import (
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// State is what is known of a pod.
type State int

// The states.
const (
	// Current: each container has what its sources hold now.
	Current State = iota
	// Old: no container has what its sources hold now.
	Old
	// Mixed: some container has content from before, and others have not, or may not.
	Mixed
	// Unknown: no container is known to have content from before, and some may have it.
	Unknown
	// Uncounted: the pod uses nothing that counts.
	Uncounted
)

// States are those that people see, in the order of the constants.
func States() []State { return []State{Current, Old, Mixed, Unknown} }

// String is the state as metrics and people read it.
func (s State) String() string {
	return [...]string{"current", "old", "mixed", "unknown", "uncounted"}[s]
}

// Pod is what has to be known of one pod. Pods that have ended, or are being deleted, are not
// to be asked about.
type Pod struct {
	// Created is metadata.creationTimestamp.
	Created time.Time
	// Lost tells that the pod's node does not answer: see NodeLost.
	Lost       bool
	Containers []Container
	Sources    []Source
	Uses       []Use
	// Proven tells of each use how the content that its container was proven to have compares
	// with what the source holds now; nil, or NoStamp: nothing is proven.
	Proven []Match
}

// Container is one container of a pod, init containers among them.
type Container struct {
	Name string
	// Started is when it last started: a container that runs, or an init container that has
	// ended. It is zero for one that does not run. Whole seconds of its node's clock.
	Started time.Time
	// Restarted tells that it was not its first start.
	Restarted bool
}

// NeverStamped is for Source.Stamped where no revision was found.
func NeverStamped() time.Time { return time.Unix(0, 0) }

// How is the way in which a container uses a source.
type How int

// The ways.
const (
	// Variable: env and envFrom. It is read once, when the container starts.
	Variable How = iota
	// File: a mount by subPath, or any mount of an init container that ends. It is read when
	// the container starts, from a volume that the kubelet refreshes.
	File
	// Live: a mount whose files the kubelet refreshes.
	Live
)

// Use says that a container uses a source; both are places in the lists of a Pod.
type Use struct {
	Container, Source int
	How               How
	// Pinned tells that the container reads a snapshot: what the source held when the pod's
	// template was stamped.
	Pinned bool
}

// Source is what has to be known of one source for one pod.
type Source struct {
	checksum.Source
	// Stamp compares the pod's stamp with what the source holds now.
	Stamp Match
	// Missing tells that the source is not there, or a key without which containers of the pod
	// cannot start.
	Missing bool
	// Written is when the content was last written as far as managedFields tell, in whole
	// seconds, and never earlier than it was, but for keys that were removed; zero when that is
	// not known.
	Written time.Time
	// Unwritten tells that an optional source is not there, and nothing says that it ever was.
	Unwritten bool
	// Removable tells that a key could have been removed without a trace: see Removable.
	Removable bool
	// Blurred tells that annotations, or keys that the pod does not use, may have been what was
	// written at Written.
	Blurred bool
	// Made is metadata.creationTimestamp, zero when that is not known.
	Made time.Time
	// Stamped is when the pod's revision was made, that is its ReplicaSet or ControllerRevision:
	// the source held what the pod's stamp is of then. Zero: nobody has looked. Who has, and has
	// not found it, says NeverStamped.
	Stamped time.Time
	// Since and Still are what the leader has seen itself: it has watched the source without a
	// gap since Since, and since Still the source has held what it holds now. Zero: nobody has.
	Since, Still time.Time
}
