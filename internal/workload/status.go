package workload

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Phase is how far the newest revision of an object is, as its status says.
type Phase uint8

const (
	// Unreported objects cannot report, or have nothing to report: then Status.Waits says
	// why.
	Unreported Phase = iota
	// Rolling objects have a controller that is not done, or has not looked yet.
	Rolling
	// RolledOut objects have all replicas at the newest revision that shall run it, and
	// all available, those too that a partition keeps back.
	RolledOut
	// Failed is what the object's own controller says.
	Failed
	// Suspended rollouts have begun, and stand at a pause of their own strategy, such as
	// a step of a canary, or a promotion: a user ends the pause, or its time does. They
	// are neither under way nor proven.
	Suspended
)

// Status is how far an object is on its way to its newest revision. The zero value
// of a time, a number or a text means that the object does not say it.
type Status struct {
	// Current is when the newest revision became current: lastUpdateTime of the
	// kind's Progress condition, else its lastTransitionTime.
	Current time.Time
	// FailedAt is when that condition became False, if it is what reports the
	// failure: its lastTransitionTime, else its lastUpdateTime. A Deployment that is
	// taken back to a revision that it still has a ReplicaSet of can show the failure
	// of the revision before for a moment: then this time is before the change.
	FailedAt time.Time
	// Why is the API's own word for the failure: the reason of the condition, such as
	// ProgressDeadlineExceeded, else the word of status.phase, such as Degraded; at
	// most 64 letters, and never (a part of) a message.
	Why string
	// Waits says why no pod starts by a new template, in words that continue a
	// sentence, such as "it is paused"; "" for every other phase, and for kinds that
	// report nothing of rollouts.
	Waits string
	// StatusHash is a hash of the status of a custom kind that does not say which
	// generation its status speaks of: while it stays the same, the status may speak
	// of the revision before. 0: the status says it.
	StatusHash uint64
	// MinReady is spec.minReadySeconds: for how long a pod is ready before it counts
	// as available.
	MinReady time.Duration
	// Wanted is how many replicas (of a DaemonSet: nodes) are wanted; 0 too for kinds
	// that count none.
	Wanted int32
	// Available is how many replicas (of a DaemonSet: nodes with one) are available,
	// of whatever revision. Updated is how many are of the newest one, as far as the
	// object's controller has looked at that.
	Available, Updated int32
	// Missing is at least how many replicas shall be of the newest revision and
	// available, and are not; 0 when rolled out, and for kinds that count none.
	Missing int32
	Phase   Phase
	// Old reports whether replicas of an older revision are left that are to be removed, or, of nodes,
	// some have none of the newest one; false when rolled out, and for kinds that count none.
	Old bool
	// Gentle reports a rolling update that keeps some of two or more available replicas.
	Gentle bool
	// Recreates reports whether all pods may end before new ones come (Recreate, or a maxUnavailable of all),
	// so that it may be unavailable meanwhile.
	Recreates bool
	// Deadline reports whether the object's own controller says when its rollout takes too long.
	Deadline bool
	// Behind reports that the object's controller has yet to see its newest generation, such as after
	// scaling: then Phase is Rolling, Updated is 0, and Available is that of before.
	Behind  bool
	PerNode bool // there is one replica for each node
	// Refused reports whether the condition ReplicaFailure is True with the reason FailedCreate: the API
	// server refuses the pods, for example because of a quota or PodSecurity.
	Refused bool
	// Ordered reports whether a StatefulSet replaces no pod while another one is not ready
	// (podManagementPolicy OrderedReady): also not one that is broken, by a template that
	// is mended.
	Ordered bool
}

// Why an object is Unreported.
const (
	waitsForRuns      = "later runs start with it"
	waitsForCreation  = "only objects that are created later start with it"
	waitsForReplicas  = "it has no replicas"
	waitsForNodes     = "it runs on no node"
	waitsPaused       = "it is paused"
	waitsForDeletion  = "its update strategy is OnDelete"
	waitsForPartition = "its partition keeps every replica at the old revision"
	waitsForCommand   = "it has no ConfigChange trigger: oc rollout latest rolls it"
	waitsForRestart   = "its update strategy changes pods in place, and their containers keep running"
)

// Counts is which numbers of a status count replicas.
type Counts uint8

const (
	// NoCounts kinds report by their condition alone, if the table names one.
	NoCounts Counts = iota
	// CountsReplicas kinds have the fields of a Deployment, StatefulSet or CloneSet:
	// spec.replicas is how many are wanted, status.updatedReplicas,
	// status.availableReplicas and the like how many there are.
	CountsReplicas
	// CountsNodes kinds have the fields of a DaemonSet: desiredNumberScheduled and
	// the like.
	CountsNodes
)

// Signs is the part of a row of the table that says by what a rollout is known to
// be done or failed, beside Kind.Progress: a Progress condition that is False reports
// a failure, and one that is True success where nothing is counted.
type Signs struct {
	// Over is the reason of a Progress condition that stays when a rollout has ended
	// well: from then on the controller gives no deadline, even when pods become
	// unavailable.
	Over string
	// Phases is what the words of status.phase mean, where they decide alone; an
	// unknown word means Rolling.
	Phases map[string]Phase
	Counts Counts
	// Ordered kinds wait for each pod, unless spec.podManagementPolicy is Parallel.
	Ordered bool
	// Trigger is the type that spec.triggers has to name for a change of the template to
	// restart pods; "" where nothing has to. No list at all has it by default.
	Trigger string
	// Deadline reports whether the kind's controller calls a rollout that takes too long
	// failed, unless spec.progressDeadlineSeconds switches that off (2147483647).
	Deadline bool
}

// statement is what an object reports by a condition alone. Nothing else is read, for
// in a custom kind that is not known its other fields may mean anything.
type statement struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Status struct {
		Observed   generation  `json:"observedGeneration"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// report is what an object of a kind that counts replicas reports.
type report struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Spec   rolloutSpec   `json:"spec"`
	Status rolloutStatus `json:"status"`
}

type rolloutSpec struct {
	Replicas                *int32    `json:"replicas"`
	Paused                  bool      `json:"paused"`
	MinReadySeconds         int32     `json:"minReadySeconds"`
	PodManagementPolicy     string    `json:"podManagementPolicy"` // StatefulSet
	ProgressDeadlineSeconds *int32    `json:"progressDeadlineSeconds"`
	Strategy                strategy  `json:"strategy"`       // Deployment, DeploymentConfig
	UpdateStrategy          strategy  `json:"updateStrategy"` // StatefulSet, DaemonSet, CloneSet
	Triggers                []trigger `json:"triggers"`       // DeploymentConfig
}

type rolloutStatus struct {
	Observed                 generation  `json:"observedGeneration"`
	Conditions               []condition `json:"conditions"`
	Phase                    string      `json:"phase"`
	Replicas                 int32       `json:"replicas"`
	UpdatedReplicas          int32       `json:"updatedReplicas"`
	AvailableReplicas        int32       `json:"availableReplicas"`
	UpdatedReadyReplicas     *int32      `json:"updatedReadyReplicas"`
	UpdatedAvailableReplicas *int32      `json:"updatedAvailableReplicas"`
	DesiredNumberScheduled   int32       `json:"desiredNumberScheduled"`
	UpdatedNumberScheduled   int32       `json:"updatedNumberScheduled"`
	NumberAvailable          int32       `json:"numberAvailable"`
}

// condition is one of status.conditions. Times are read when they are asked for:
// those of other conditions may have any form.
type condition struct {
	Type           string     `json:"type"`
	Status         string     `json:"status"`
	Reason         string     `json:"reason"`
	Observed       generation `json:"observedGeneration"`
	LastUpdate     string     `json:"lastUpdateTime"`
	LastTransition string     `json:"lastTransitionTime"`
}

// generation is an observedGeneration: a number, or its text (Argo). Anything else
// (a hash, in old versions of Argo) says nothing, and counts as the newest.
type generation int64

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (g *generation) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	value, err := decoder.ReadValue()
	if err != nil {
		return fmt.Errorf("reading a generation: %w", err)
	}
	*g = math.MaxInt64
	if value.Kind() == jsontext.KindNull {
		*g = 0
	} else if n, err := strconv.ParseInt(strings.Trim(string(value), `"`), 10, 64); err == nil {
		*g = generation(n)
	}
	return nil
}

// before reports whether something was observed before a generation was written;
// an absent or zero observedGeneration says nothing.
func (g generation) before(written int64) bool { return g > 0 && int64(g) < written }

func (g generation) reported() bool { return g > 0 && g < math.MaxInt64 } // as a number

// firstTime is the first of some times that is one (RFC 3339), else zero.
func firstTime(texts ...string) time.Time {
	for _, text := range texts {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// Status reads how far one object of the kind is from JSON. An error quotes nothing
// of the object.
func (k *Kind) Status(raw []byte) (Status, error) {
	var o report
	var err error
	switch {
	case !k.Restarts || k.Progress == "" && k.Signs.Counts == NoCounts:
		err = unmarshal(raw, &struct{}{})
	case k.Signs.Counts == NoCounts:
		var read statement
		err = unmarshal(raw, &read)
		o.Metadata, o.Status.Observed, o.Status.Conditions = read.Metadata, read.Status.Observed, read.Status.Conditions
	default:
		err = unmarshal(raw, &o)
	}
	var status Status
	if err = plain(err); err == nil {
		status, err = k.status(&o)
	}
	if err != nil {
		return Status{}, fmt.Errorf("reading how far a %s is: %w", k.Name, err)
	}
	if k.Custom && !o.Status.Observed.reported() && !o.Status.condition(k.Progress).Observed.reported() {
		status.StatusHash = statusHash(raw)
	}
	return status, nil
}

// status is how far an object is that reports this.
func (k *Kind) status(o *report) (Status, error) {
	number, err := k.Signs.count(o)
	if err != nil {
		return Status{}, err
	}
	progress := o.Status.condition(k.Progress)
	status := Status{
		Current:   firstTime(progress.LastUpdate, progress.LastTransition),
		MinReady:  time.Duration(max(o.Spec.MinReadySeconds, 0)) * time.Second,
		Wanted:    clamp(max(number.wanted, 0)),
		Available: int32(number.available), //nolint:gosec // it was one
		Updated:   int32(number.updated),   //nolint:gosec // it was one
		Gentle:    number.available >= 2 && o.Spec.rolls() && !o.Spec.interrupts(number.wanted),
		Recreates: o.Spec.interrupts(number.wanted),
		Deadline:  k.Signs.Deadline && o.Spec.hasDeadline() && (k.Signs.Over == "" || progress.Reason != k.Signs.Over),
		PerNode:   k.Signs.Counts == CountsNodes,
		Refused:   k.Signs.Counts == CountsReplicas && o.Status.refused(),
		Ordered:   k.Signs.Ordered && o.Spec.PodManagementPolicy != "Parallel",
	}
	if status.Waits = k.waits(o, number); status.Waits != "" || k.Signs.Counts == NoCounts && k.Progress == "" {
		return status, nil
	}
	status.Phase = k.phase(o, progress, number)
	switch status.Phase {
	case Failed:
		status.Why = word(o.Status.Phase)
		if progress.Status == "False" {
			status.FailedAt = firstTime(progress.LastTransition, progress.LastUpdate)
			if reason := word(progress.Reason); reason != "" {
				status.Why = reason
			}
		}
		status.Missing = clamp(number.missing())
	case Rolling, Suspended:
		if status.Behind = k.behind(o); status.Behind { // what it counts was new before
			number.updated, number.working, status.Updated = 0, 0, 0
		}
		status.Missing = clamp(number.missing())
	case RolledOut, Unreported:
		return status, nil
	}
	status.Old = number.total-number.updated > number.held || status.PerNode && number.wanted > number.updated
	return status, nil
}

// statusHash is a hash of the status of an object that was read already; never 0.
func statusHash(raw []byte) uint64 {
	var object struct {
		Status span `json:"status"`
	}
	_ = unmarshal(raw, &object)
	hash := fnv.New64a()
	_, _ = hash.Write(canonical(object.Status.of(raw))) // which never fails
	return max(hash.Sum64(), 1)
}

// waits says why an object is Unreported whatever its status holds, or "".
func (k *Kind) waits(o *report, number numbers) string {
	switch counted := k.Signs.Counts; {
	case k.CreateOnly:
		return waitsForCreation
	case !k.Restarts:
		return waitsForRuns
	case counted == CountsReplicas && number.wanted <= 0:
		return waitsForReplicas
	case counted == CountsNodes && number.wanted <= 0 && !k.behind(o):
		return waitsForNodes
	case o.Spec.Paused || o.Spec.UpdateStrategy.Paused:
		return waitsPaused
	case o.Spec.UpdateStrategy.Type == "OnDelete":
		return waitsForDeletion
	case k.Signs.Trigger != "" && o.Spec.Triggers != nil && !slices.ContainsFunc(o.Spec.Triggers, func(t trigger) bool { return t.Type == k.Signs.Trigger }):
		return waitsForCommand
	case strings.HasPrefix(o.Spec.UpdateStrategy.Type, "InPlace"): // apps.kruise.io: annotations alone recreate nothing
		return waitsForRestart
	case counted != NoCounts && number.held >= number.wanted && number.held > 0:
		return waitsForPartition
	}
	return ""
}

// behind reports whether the object's controller has not looked at its newest
// generation yet. Kinds that count replicas always say how far they have looked.
func (k *Kind) behind(o *report) bool {
	observed := o.Status.Observed
	return observed.before(o.Metadata.Generation) || observed <= 0 && k.Signs.Counts != NoCounts && o.Metadata.Generation > 0
}

// phase is how far an object is that has something to report.
func (k *Kind) phase(o *report, progress condition, number numbers) Phase {
	switch {
	case k.behind(o) || progress.Observed.before(o.Metadata.Generation):
		return Rolling
	case k.Signs.Phases != nil:
		if phase, known := k.Signs.Phases[o.Status.Phase]; known {
			return phase
		}
		return Rolling
	case progress.Status == "False":
		return Failed
	case k.Signs.Counts == NoCounts && progress.Status == "True", k.Signs.Counts != NoCounts && number.done():
		return RolledOut
	}
	return Rolling
}

// refused returns whether the API server refuses pods of the object.
func (s *rolloutStatus) refused() bool {
	failure := s.condition("ReplicaFailure")
	return failure.Status == "True" && failure.Reason == "FailedCreate"
}

// condition is the first condition of a type; empty when there is none.
func (s *rolloutStatus) condition(kind string) condition {
	for _, c := range s.Conditions {
		if kind != "" && c.Type == kind {
			return c
		}
	}
	return condition{}
}

// word is a text if it is one word, short and of letters alone, else "".
func word(text string) string {
	const longest = 64
	for _, letter := range []byte(text) {
		if lower := letter | 0x20; lower < 'a' || lower > 'z' {
			return ""
		}
	}
	if len(text) > longest {
		return ""
	}
	return text
}
