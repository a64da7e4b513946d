package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/podtruth"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/seen"
)

// Truth tells what running pods really have.
type Truth struct {
	// Pods are sorted by namespace, workload, state (old first) and name.
	Pods []PodTruth `json:"pods"`
	// Count is how many there are in each state.
	Count map[string]int `json:"count"`
}

// PodTruth is what one pod really has.
type PodTruth struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Node      string `json:"node"`
	// Workload is kind/name.
	Workload string `json:"workload"`
	// State is current, old, mixed or unknown; Why says why, in words.
	State string `json:"state"`
	Why   string `json:"why"`
	// Since is when the last of its containers started (UTC). Restarted tells that one of
	// them has been restarted.
	Since     *time.Time `json:"since,omitempty"`
	Restarted bool       `json:"restarted"`
	// Sources are the same of each source.
	Sources []SourceTruth `json:"sources"`
}

// SourceTruth is what a pod has of one source.
type SourceTruth struct {
	Source checksum.Source `json:"source"`
	State  string          `json:"state"`
	Why    string          `json:"why"`
}

// TruthOf says what the pods of a fleet have, of one source if using is not the zero Source.
// Those that use nothing that counts are left out.
func TruthOf(f *seen.Fleet, using checksum.Source, now time.Time) Truth {
	pods := Truth{Pods: []PodTruth{}, Count: map[string]int{}}
	for _, state := range podtruth.States() {
		pods.Count[state.String()] = 0
	}
	judge := podJudge{f: f, using: using, now: now, rules: podtruth.Rules{Settle: f.Settings.Limits.Settle}, is: trueValues(f)}
	for _, w := range f.Workloads {
		if standing, _ := f.Serves(w); standing == seen.NotServed {
			continue
		}
		own := judge.workload(w)
		for _, pod := range f.Running[w.Ref] {
			if truth := own.pod(pod); truth != nil {
				pods.Pods = append(pods.Pods, *truth)
				pods.Count[truth.State]++
			}
		}
	}
	slices.SortStableFunc(pods.Pods, func(a, b PodTruth) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload), cmp.Compare(worst(a.State), worst(b.State)), cmp.Compare(a.Why, b.Why), cmp.Compare(a.Pod, b.Pod))
	})
	return pods
}

// worst is the order in which people want to see states.
func worst(state string) int {
	return slices.Index([]string{podtruth.Old.String(), podtruth.Mixed.String(), podtruth.Unknown.String(), podtruth.Current.String()}, state)
}

// trueValues are the values on record that are of what a source holds now: those of
// workloads that the webhook calls in step.
func trueValues(f *seen.Fleet) map[rollout.SourceRef][]string {
	is := map[rollout.SourceRef][]string{}
	for _, w := range f.Workloads {
		if outcome := f.Outcome(w); outcome.Code != seen.InStep || outcome.Moved {
			continue
		}
		for _, source := range f.Selected(w) {
			at := rollout.SourceRef{Namespace: w.Namespace, Source: source}
			if value, recorded := w.Records.Of(source); recorded && !slices.Contains(is[at], value) {
				is[at] = append(is[at], value)
			}
		}
	}
	return is
}

// podJudge judges pods; workload is what it knows of those of one.
type podJudge struct {
	f     *seen.Fleet
	using checksum.Source
	now   time.Time
	rules podtruth.Rules
	is    map[rollout.SourceRef][]string

	w          *seen.Workload
	selections []checksum.Selection
	stale      bool
}

func (j podJudge) workload(w *seen.Workload) *podJudge {
	j.w, j.stale = w, j.f.Outcome(w).Stale()
	j.selections = j.f.Selections(w)
	return &j
}

// pod judges one pod, nil if it uses nothing that counts.
func (j *podJudge) pod(pod *seen.RunningPod) *PodTruth {
	facts := j.facts(pod)
	state, why := j.judge(facts)
	if state == podtruth.Uncounted {
		return nil
	}
	truth := &PodTruth{Namespace: pod.Namespace, Pod: pod.Name, Node: pod.Node, Workload: j.w.Text(), State: state.String(), Why: why}
	var since time.Time
	for _, container := range pod.Containers {
		since = newestOf(since, container.Started)
		truth.Restarted = truth.Restarted || container.Restarted
	}
	if !since.IsZero() {
		truth.Since = &since
	}
	all := facts.Uses
	for i := range facts.Sources {
		facts.Uses = slices.DeleteFunc(slices.Clone(all), func(use podtruth.Use) bool { return use.Source != i })
		state, why := j.judge(facts)
		truth.Sources = append(truth.Sources, SourceTruth{Source: facts.Sources[i].Source, State: state.String(), Why: why})
	}
	return truth
}

func (j *podJudge) judge(facts *podtruth.Pod) (podtruth.State, string) {
	answer := j.rules.Judge(facts, j.now)
	return answer.State, answer.Sentence()
}

// facts are what is known of a pod.
func (j *podJudge) facts(pod *seen.RunningPod) *podtruth.Pod {
	facts := &podtruth.Pod{Created: pod.Created, Lost: pod.Lost}
	for _, c := range pod.Containers {
		facts.Containers = append(facts.Containers, podtruth.Container{Name: c.Name, Started: c.Started, Restarted: c.Restarted})
	}
	for _, use := range podtruth.Read(pod.Spec, pod.Pinned) {
		if (j.using != checksum.Source{}) && use.Source != j.using {
			continue
		}
		at := slices.IndexFunc(j.selections, func(s checksum.Selection) bool { return s.Source == use.Source })
		if at < 0 {
			continue // it does not count
		}
		source := slices.IndexFunc(facts.Sources, func(s podtruth.Source) bool { return s.Source == use.Source })
		if source < 0 {
			source = len(facts.Sources)
			facts.Sources = append(facts.Sources, j.source(pod, &j.selections[at]))
		}
		container := slices.IndexFunc(facts.Containers, func(c podtruth.Container) bool { return c.Name == use.Container })
		facts.Uses = append(facts.Uses, podtruth.Use{Container: container, Source: source, How: use.How, Pinned: use.Pinned})
	}
	return facts
}

// source is what is known of a source for a pod.
func (j *podJudge) source(pod *seen.RunningPod, s *checksum.Selection) podtruth.Source {
	source := j.f.Source(j.w.Namespace, s.Source)
	facts := podtruth.Source{
		Source: s.Source, Stamp: j.match(pod, s.Source), Written: source.Edited().At, Made: source.Created,
		Unwritten: source.Looked && !source.Exists,
		Removable: podtruth.Removable(*s, func(key string) bool { return source.Keys[key] }),
		Blurred:   podtruth.Blurred(*s, source.Wrote), Stamped: j.stamped(pod, s.Source),
	}
	if facts.Removable && len(source.Writers) > 0 && source.Writers[0].At.After(facts.Written) {
		facts.Written, facts.Blurred = source.Writers[0].At, true // it may have owned a key that is gone
	}
	lacks := func(key checksum.RequiredKey) bool { return source.Keys != nil && !source.Keys[key.Name] }
	facts.Missing = source.Looked && (!source.Exists && s.Required || source.Exists && slices.ContainsFunc(s.RequiredKeys, lacks))
	return facts
}

// stamped is when the revision that a pod is of was made with the pod's stamp of a source.
func (j *podJudge) stamped(pod *seen.RunningPod, source checksum.Source) time.Time {
	key := checksum.StampKey(source)
	for _, revision := range j.f.Revisions[j.w.Object.UID] {
		its := revision.Name == pod.Owner.Name || pod.Revision != "" && (revision.Name == pod.Revision || revision.Name == j.w.Name+"-"+pod.Revision)
		if its && revision.Stamps[key] == pod.Stamps[key] {
			return revision.Created
		}
	}
	return podtruth.NeverStamped()
}

// match compares a pod's stamp with what its source holds now: with the record of a
// workload that is in step. That of one that is not differs, if it has no other source.
func (j *podJudge) match(pod *seen.RunningPod, source checksum.Source) podtruth.Match {
	stamp := pod.Stamps[checksum.StampKey(source)]
	for _, is := range j.is[rollout.SourceRef{Namespace: j.w.Namespace, Source: source}] {
		if match := podtruth.CompareTexts(stamp, is); match != podtruth.NoStamp {
			return match
		}
	}
	record, recorded := j.w.Records.Of(source)
	if j.stale && len(j.selections) == 1 && recorded && stamp != "" && record == stamp {
		return podtruth.Differs
	}
	return podtruth.NoStamp
}

// Said counts states in words: "1 old, 2 current".
func (t *Truth) Said() string {
	var parts []string
	for _, state := range []podtruth.State{podtruth.Old, podtruth.Mixed, podtruth.Unknown, podtruth.Current} {
		if n := t.Count[state.String()]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}
