package pods

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/podtruth"
	"github.com/configstamp/configstamp/internal/rollout"
)

// silentAfter is for how long a watch may be silent before nothing is known any more. There
// is a bookmark about once a minute.
const silentAfter = 3 * time.Minute

// count finds out what each pod has now, and what has been proven since the last time. told is
// when the watch of pods last told anything.
func (r *Room) count(told time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ring := r.options.Ring()
	if !r.leads || ring == nil {
		return
	}
	now, heard := r.options.Clock.Now(), r.options.Sources.LastProgress()
	silent := now.Sub(told) > silentAfter || now.Sub(heard) > silentAfter
	early := func(container *podtruth.Container) bool {
		return !silent && !heard.Before(podtruth.ProvenFrom(container))
	}
	counts, groups := map[string]*Counts{}, map[*group]*judged{}
	for namespace, pods := range r.pods {
		if !r.options.Wanted(namespace) {
			delete(r.pods, namespace)
			continue
		}
		of := &Counts{}
		for id, pod := range pods {
			g := groups[pod.group]
			if g == nil {
				g = r.judge(ring, pod.group)
				groups[pod.group] = g
			}
			if len(g.uses) == 0 {
				continue
			}
			g.put(&pod)
			state := r.rules.Judge(&g.pod, now).State
			if silent && state != podtruth.Uncounted {
				state = podtruth.Unknown
			}
			of[state]++
			if g.prove(r.rules, &pod, now, early) {
				pods[id] = pod
			}
		}
		if *of != (Counts{}) {
			counts[namespace] = of
		}
	}
	r.counts = counts
	r.sweep(groups)
}

// sweep forgets what no pod uses any more.
func (r *Room) sweep(groups map[*group]*judged) {
	used, sources := make(map[*group]bool, len(groups)), map[rollout.SourceRef]bool{}
	for g, judged := range groups {
		used[g] = true
		for _, source := range g.sources {
			sources[rollout.SourceRef{Namespace: g.namespace, Source: source}] = true
		}
		if judged.served {
			maps.DeleteFunc(g.proofs, func(_ string, p *proof) bool { _, is := judged.proven[p]; return !is })
		}
	}
	r.groups.sweep(used)
	maps.DeleteFunc(r.sources, func(at rollout.SourceRef, _ *remembered) bool { return !sources[at] })
}

// proveBefore notes what containers are proven to have that started before a source was
// edited, which was not before a given time, while what it held then is still known. What was
// proven of containers that may have started after that is dropped: the watch was behind.
func (r *Room) proveBefore(namespace string, source checksum.Source, edited time.Time) {
	ring, now := r.options.Ring(), r.options.Clock.Now()
	if ring == nil {
		return
	}
	groups, pods := map[*group]*judged{}, r.pods[namespace]
	for id, pod := range pods {
		g, known := groups[pod.group]
		if !known {
			if slices.Contains(pod.group.sources, source) {
				g = r.judge(ring, pod.group)
			}
			groups[pod.group] = g
		}
		if g == nil || len(g.uses) == 0 {
			continue
		}
		if pod.proof != nil {
			pod.proof = pod.group.without(pod.proof, func(i int) bool {
				use := pod.group.uses[i]
				container := pod.start(use.Container).container("")
				return pod.group.sources[use.Source] == source && podtruth.MayHaveStartedAfter(&container, edited)
			})
		}
		g.put(&pod)
		g.prove(r.rules, &pod, now, func(container *podtruth.Container) bool { return !podtruth.MayHaveStartedAfter(container, edited) })
		pods[id] = pod
	}
}

// proofOf is the one proof of a group with some values; nil when there is none.
func (g *group) proofOf(values []string) *proof {
	key := strings.Join(values, "\n")
	if strings.Trim(key, "\n") == "" {
		return nil
	}
	if known := g.proofs[key]; known != nil {
		return known
	}
	if g.proofs == nil {
		g.proofs = map[string]*proof{}
	}
	g.proofs[key] = &proof{values}
	return g.proofs[key]
}

// without is a proof less some of its uses.
func (g *group) without(p *proof, gone func(use int) bool) *proof {
	if !slices.ContainsFunc(p.uses(), gone) {
		return p
	}
	values := slices.Clone(p.values)
	for i := range values {
		if gone(i) {
			values[i] = ""
		}
	}
	return g.proofOf(values)
}

// uses are those of which something is proven.
func (p *proof) uses() (all []int) {
	for i, value := range p.values {
		if value != "" {
			all = append(all, i)
		}
	}
	return all
}
