package main

import (
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// plan is what the planner does with the workload when all that it names is edited at once, and
// it fails with that; then all is edited again.
func (w *world) plan() {
	_, _, sources := w.kept()
	now, ref := time.Unix(100, 0), workload.Ref{Kind: deployments(), Namespace: namespace, Name: "web"}
	p := rollout.NewPlanner(rollout.Limits{Step: 1, CrashDeadline: time.Second, RolloutDeadline: time.Hour}, planned{w, ref})
	p.Lead([]workload.Ref{ref}, now)
	f := rollout.Facts{UID: "u-1", Sources: sources, Served: true, Policy: w.policy()}
	look := func(phase workload.Phase, untrue []checksum.Source) rollout.Orders {
		given := f
		given.Mark, given.Review.Untrue = p.Mark(), untrue
		given.Status = workload.Status{Phase: phase, Wanted: 1, Available: 1, Gentle: true}
		p.Look(ref, &given, now)
		return p.Cycle(now)
	}
	look(workload.RolledOut, nil)
	for _, stamp := range []string{"1", "2"} {
		for _, source := range sources {
			p.Edited(rollout.SourceRef{Namespace: namespace, Source: source}, &checksum.Content{}, w.contents[source], now)
		}
		f.Carried, now = nil, now.Add(time.Hour)
		if out := look(workload.RolledOut, sources); stamp == "1" && len(sources) > 0 && len(out.Roll) != 1 {
			panic("nothing rolls")
		}
		f.Carried, f.Records.Stamps = map[checksum.Source]checksum.Fingerprint{}, map[string]string{"stamp": stamp}
		for source, content := range w.contents {
			f.Carried[source] = content.Fingerprint()
		}
		look(workload.Rolling, nil)
		look(workload.Failed, nil)
	}
}

// planned is a cluster of one workload.
type planned struct {
	*world
	ref workload.Ref
}

func (c planned) Using(rollout.SourceRef) []workload.Ref         { return []workload.Ref{c.ref} }
func (c planned) Content(at rollout.SourceRef) *checksum.Content { return c.contents[at.Source] }
func (c planned) Written(rollout.SourceRef) time.Time            { return time.Unix(9, 0) }
func (c planned) Copies(checksum.Source) []rollout.SourceRef     { return nil }
func (c planned) Workloads() int                                 { return 1 }
