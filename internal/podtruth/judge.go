package podtruth

import "time"

// What is assumed of clusters.
const (
	// Skew is how far two clocks differ: nodes', API servers', ours.
	Skew = 3 * time.Second
	// Heard is how long it may take until a watch tells of an edit.
	Heard = 10 * time.Second
	// ByTime is how long after an edit a kubelet may start a container with content from
	// before, where nothing but the time tells.
	ByTime = time.Minute
	// Refreshed is how long after an edit a kubelet has refreshed the files of a volume: it
	// looks every 60 to 90 s, and its cache may be as old.
	Refreshed = 150 * time.Second

	second = time.Second // the resolution of times in the API
)

// Rules are the rules, with what is set for the installation.
type Rules struct {
	// Settle is --settle: how long after an edit kubelets have seen it, so that new pods start
	// with it.
	Settle time.Duration
}

func (r Rules) settle() time.Duration { return max(r.Settle, leastSettle) }

// leastSettle is taken where less is set.
const leastSettle = 2 * time.Second

// Has is what is known of one use.
type Has int

// What may be known.
const (
	Holds   Has = iota // the container has what the source holds now
	Lacks              // it has content from before
	Unclear            // it may have either
	Idle               // it does not run, so it has nothing
)

// Answer is what is known of a pod, and why: by one of its containers and sources, as far as
// these have to do with it.
type Answer struct {
	State             State
	Why               Why
	Container, Source string
}

// Judge tells what a pod really has.
func (r Rules) Judge(pod *Pod, now time.Time) Answer {
	if len(pod.Uses) == 0 {
		return Answer{State: Uncounted, Why: UsesNothing}
	}
	if pod.Lost {
		return Answer{State: Unknown, Why: NodeSilent}
	}
	var count [Idle + 1]int
	var first [Idle + 1]Answer
	for i := range pod.Uses {
		has, why := r.Use(pod, i, now)
		if count[has]++; count[has] == 1 {
			use := pod.Uses[i]
			first[has] = Answer{Why: why, Container: pod.Containers[use.Container].Name, Source: pod.Sources[use.Source].String()}
		}
	}
	answer, state := first[Holds], Current
	switch {
	case count[Lacks] > 0 && count[Holds]+count[Unclear] > 0:
		answer, state = first[Lacks], Mixed
	case count[Lacks] > 0:
		answer, state = first[Lacks], Old
	case count[Unclear] > 0:
		answer, state = first[Unclear], Unknown
	case count[Holds] == 0:
		answer, state = Answer{Why: NotRunning}, Unknown
	}
	answer.State = state
	return answer
}

// Use tells what is known of one use of a pod whose node answers.
func (r Rules) Use(pod *Pod, i int, now time.Time) (Has, Why) {
	use := &pod.Uses[i]
	source, container := &pod.Sources[use.Source], &pod.Containers[use.Container]
	switch {
	case container.Started.IsZero():
		return Idle, NotRunning
	case use.Pinned:
		return pinned(source)
	case source.Missing:
		return Unclear, SourceMissing
	case use.How == Live:
		return live(pod, container, source, now)
	}
	proven := NoStamp
	if pod.Proven != nil {
		proven = pod.Proven[i]
	}
	return r.startup(pod, use, proven)
}

// pinned is about a snapshot: no time matters, as it never changes.
func pinned(source *Source) (Has, Why) {
	switch source.Stamp {
	case Same:
		return Holds, Snapshot
	case Differs:
		return Lacks, Snapshot
	case NoStamp:
	}
	return Unclear, Uncompared
}

// startup is about what a container reads when it starts.
func (r Rules) startup(pod *Pod, use *Use, proven Match) (Has, Why) {
	source, container := &pod.Sources[use.Source], &pod.Containers[use.Container]
	switch {
	case proven == Same:
		return Holds, SeenToStart
	case proven == Differs && source.Stamp == Differs:
		return Lacks, StartedBefore
	case proven == Differs:
		return Unclear, Withdrawn
	}
	low, high := started(pod, container)
	rolled := !container.Restarted && source.Stamp == Same // made from a template that was stamped with it
	wait := ByTime
	switch {
	case rolled:
		wait = r.settle()
	case container.Restarted && use.How == File:
		wait = Refreshed // a container that restarts finds the files that the kubelet has
	}
	last, known := source.lastEdit()
	if known && !low.Before(last.Add(wait)) {
		return Holds, StartedAfter
	}
	if source.untouched(r.settle()) && (!source.Removable || !container.Restarted) {
		return Holds, StampTrue
	}
	if rolled && (source.Unwritten || source.noTrace() && !source.Written.IsZero() && !low.Before(source.Written.Add(wait))) {
		return Holds, StampTrue
	}
	if source.Stamp == Differs && !container.Restarted && !source.Blurred && source.editedSince(high) {
		return Lacks, StartedBefore
	}
	return Unclear, doubt(source, container, rolled, known && high.After(last.Add(-2*Skew)), high)
}

// doubt says why it is not known what a container has read.
func doubt(source *Source, container *Container, rolled, near bool, high time.Time) Why {
	dated := !source.Written.IsZero()
	switch {
	case rolled && !source.noTrace() && dated && high.After(source.Written.Add(ByTime)):
		return RemovedUnseen
	case near && rolled, rolled && dated && high.After(source.Written):
		return StartedAtOnce
	case near:
		return StartedSoon
	case source.Stamp == NoStamp && (!dated || !source.Removable || !high.After(source.Written)):
		return Unstamped
	case source.Stamp != NoStamp && dated && !high.After(source.Written) && (source.Stamp == Same || source.Blurred && !container.Restarted):
		return WrittenSince
	case container.Restarted:
		return RestartedUnseen
	case !source.Since.IsZero() && high.After(source.Since):
		return StartUnseen
	case dated && source.Removable:
		return RemovedUnseen
	}
	return Undated
}

// live is about files that the kubelet refreshes.
func live(pod *Pod, container *Container, source *Source, now time.Time) (Has, Why) {
	last, known := source.lastEdit()
	if !known && (source.Stamp != Differs && (source.Unwritten || source.noTrace()) || source.untouched(leastSettle)) {
		last, known = source.Written.Add(second), source.Unwritten || !source.Written.IsZero()
	}
	low, _ := started(pod, container)
	switch {
	case !known && source.Written.IsZero():
		return Unclear, Undated
	case !known:
		return Unclear, RemovedUnseen
	case source.Made.After(pod.Created):
		return Unclear, Remade
	case !container.Restarted && !low.Before(last.Add(ByTime)):
		return Holds, StartedAfter
	case now.Before(last.Add(Refreshed + Skew)):
		return Unclear, Refreshing
	}
	return Holds, FilesRefreshed
}

// started are the bounds of the moment at which a container started, by the API server's
// clock.
func started(pod *Pod, container *Container) (low, high time.Time) {
	low, high = container.Started.Add(-Skew), container.Started.Add(second+Skew)
	if pod.Created.After(low) {
		low = pod.Created
	}
	return low, high
}

// lastEdit is a moment, by the API server's clock, after which the content has not changed,
// by what is certain.
func (s *Source) lastEdit() (last time.Time, known bool) {
	if !s.Written.IsZero() && !s.Removable {
		last, known = s.Written.Add(second), true
	}
	if seen := s.Still.Add(Skew); !s.Still.IsZero() && (!known || seen.Before(last)) {
		last, known = seen, true
	}
	return last, known
}

// untouched reports whether the source has held what it holds now ever since the pod's
// template was stamped with that, but for a key that was added and removed again: nothing was
// written since then that leaves a time. A container that restarted may have that key, if it
// reads all of them: a bad key that crashes an app is taken out in this way.
func (s *Source) untouched(settle time.Duration) bool {
	if s.Stamp != Same || s.Written.IsZero() || s.Stamped.IsZero() {
		return false
	}
	neverEdited := !s.Made.IsZero() && !s.Written.After(s.Made) && !s.Stamped.Before(s.Made)
	return neverEdited || !s.Stamped.Before(s.Written.Add(settle))
}

// noTrace reports whether a key that was added and removed again would have left a trace, as
// far as somebody has looked for it.
func (s *Source) noTrace() bool { return !s.Removable || s.Stamped.IsZero() }

// editedSince reports whether a source was written after a container started, which nobody
// has seen: who has, has a proof, or a doubt.
func (s *Source) editedSince(high time.Time) bool {
	return !s.Written.IsZero() && !high.After(s.Written) && (s.Since.IsZero() || high.Before(s.Since))
}

// ProvenFrom is when a container that holds the content of a source by Use is proven to, if a
// watch of the source has told something since: what was edited before its start is known by
// then.
func ProvenFrom(container *Container) time.Time {
	return container.Started.Add(second + Skew + Heard)
}

// MayHaveStartedAfter reports whether a container may have started after a moment, by the API
// server's clock.
func MayHaveStartedAfter(container *Container, moment time.Time) bool {
	return container.Started.Add(second + Skew).After(moment)
}
