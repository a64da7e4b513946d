package pods

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/podtruth"
	"github.com/configstamp/configstamp/internal/rollout"
)

// judged is what holds for all pods of a group at one moment.
type judged struct {
	served     bool
	ring       *checksum.Ring
	selections []checksum.Selection // of group.sources, those that count
	contents   []*checksum.Content  // of these
	uses       []int                // those of the group that count: pod.Uses are the same
	pod        podtruth.Pod         // with what is the same for all
	proven     map[*proof][]podtruth.Match
}

// judge finds out what holds for a group now.
func (r *Room) judge(ring *checksum.Ring, g *group) *judged {
	policy, served := r.options.Policy(g.makers)
	if !served {
		return &judged{}
	}
	n := len(g.sources)
	j := &judged{served: true, ring: ring, selections: make([]checksum.Selection, n), contents: make([]*checksum.Content, n), proven: map[*proof][]podtruth.Match{}}
	j.pod.Containers, j.pod.Sources = make([]podtruth.Container, len(g.containers)), make([]podtruth.Source, n)
	counts := make([]bool, n)
	for _, selection := range checksum.Selections(g.references, policy) {
		i := slices.Index(g.sources, selection.Source)
		if i < 0 {
			continue
		}
		memory := r.memory(rollout.SourceRef{Namespace: g.namespace, Source: selection.Source})
		if counts[i] = selection.Counts(memory.content); counts[i] {
			j.selections[i], j.contents[i] = selection, memory.content
			j.pod.Sources[i] = r.facts(ring, g, &selection, memory)
		}
	}
	for i, use := range g.uses {
		if counts[use.Source] && (use.How != podtruth.Live || slices.Contains(policy.Uses, checksum.Live)) {
			j.uses, j.pod.Uses = append(j.uses, i), append(j.pod.Uses, use)
		}
	}
	return j
}

// facts are those of one source for the pods of a group.
func (r *Room) facts(ring *checksum.Ring, g *group, selection *checksum.Selection, memory *remembered) podtruth.Source {
	match, missing := podtruth.Compare(ring, g.namespace, *selection, g.stamps[checksum.StampKey(selection.Source)], memory.content)
	_, created := r.options.Sources.Written(g.namespace, selection.Source)
	return podtruth.Source{
		Source: selection.Source, Stamp: match, Missing: missing,
		Written: memory.Written, Unwritten: memory.content == nil && !memory.edited && !missing, Made: created,
		Removable: podtruth.Removable(*selection, func(key string) bool { _, has := memory.content.Entry(key); return has }),
		Since:     memory.Since, Still: memory.Still,
	}
}

// put puts in what is one pod's own.
func (j *judged) put(pod *kept) {
	j.pod.Created, j.pod.Lost, j.pod.Proven = time.Unix(int64(pod.created), 0), pod.lost, j.matches(pod)
	for i, name := range pod.group.containers {
		j.pod.Containers[i] = pod.start(i).container(name)
	}
}

// matches compare what is proven of a pod with what its sources hold now.
func (j *judged) matches(pod *kept) []podtruth.Match {
	if known, done := j.proven[pod.proof]; done {
		return known
	}
	matches := make([]podtruth.Match, len(j.uses))
	if pod.proof != nil {
		for i, use := range j.uses {
			if value := pod.proof.values[use]; value != "" {
				source := pod.group.uses[use].Source
				matches[i], _ = podtruth.Compare(j.ring, pod.group.namespace, j.selections[source], value, j.contents[source])
			}
		}
	}
	j.proven[pod.proof] = matches
	return matches
}

// prove notes what containers are proven to have that hold what their sources hold now, if
// they started early enough. It reports whether that is new.
func (j *judged) prove(rules podtruth.Rules, pod *kept, now time.Time, early func(*podtruth.Container) bool) bool {
	var values []string
	for i, use := range j.pod.Uses {
		if j.pod.Proven[i] != podtruth.NoStamp || use.How == podtruth.Live || pod.lost || !early(&j.pod.Containers[use.Container]) {
			continue
		}
		if has, _ := rules.Use(&j.pod, i, now); has != podtruth.Holds {
			continue
		}
		if values == nil {
			values = make([]string, len(pod.group.uses))
			if pod.proof != nil {
				copy(values, pod.proof.values)
			}
		}
		values[j.uses[i]] = j.ring.Digest(pod.group.namespace, j.selections[use.Source], j.contents[use.Source])
	}
	if values == nil {
		return false
	}
	pod.proof = pod.group.proofOf(values)
	j.matches(pod) // so that the proof is not swept
	return true
}
