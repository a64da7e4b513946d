package rollout_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// A large cluster: 20,000 workloads wait for 500 changes, five in each of 100
// namespaces. One of the five is a copy of the bundle, which is replicated, and one in
// five of the others is halted.
const (
	benchNamespaces = 100
	benchChanges    = 5  // in each namespace
	benchWorkloads  = 40 // of each change
)

func benchLimits() rollout.Limits {
	return rollout.Limits{
		Step: 1, Settle: time.Second, Soak: 10 * time.Second, CrashDeadline: 30 * time.Second,
		RolloutDeadline: 10 * time.Minute,
	}
}

// big is a large cluster, and a planner for it. It implements rollout.Cluster.
type big struct {
	planner  *rollout.Planner
	now      time.Time
	edits    int
	bySource map[rollout.SourceRef][]workload.Ref
	contents map[rollout.SourceRef]*checksum.Content
	facts    map[workload.Ref]*rollout.Facts
	all      []workload.Ref
}

func (c *big) Using(at rollout.SourceRef) []workload.Ref         { return c.bySource[at] }
func (c *big) Content(at rollout.SourceRef) *checksum.Content    { return c.contents[at] }
func (c *big) Written(rollout.SourceRef) time.Time               { return time.Time{} }
func (c *big) Copies(checksum.Source) (none []rollout.SourceRef) { return none }
func (c *big) Workloads() int                                    { return len(c.facts) }

// content is another one each time.
func (c *big) content() *checksum.Content {
	c.edits++
	content := &checksum.Content{Entries: []checksum.Entry{{Name: "key"}}}
	copy(content.Entries[0].Sum[:], strconv.Itoa(c.edits))
	return content
}

func (c *big) place(namespace, change int) rollout.SourceRef {
	return place(fmt.Sprintf("team-%d", namespace), []string{"bundle", "a", "b", "c", "d"}[change])
}

// newBig is a cluster whose planner leads, and in which nothing has changed yet.
func newBig() *big {
	c := &big{
		now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), bySource: map[rollout.SourceRef][]workload.Ref{},
		contents: map[rollout.SourceRef]*checksum.Content{}, facts: map[workload.Ref]*rollout.Facts{},
	}
	bundle := c.content()
	for namespace := range benchNamespaces {
		for change := range benchChanges {
			at := c.place(namespace, change)
			if c.contents[at] = bundle; change > 0 {
				c.contents[at] = c.content()
			}
			for n := range benchWorkloads {
				c.add(at, fmt.Sprintf("%s-%02d", at.Source.Name, n))
			}
		}
	}
	c.planner = rollout.NewPlanner(benchLimits(), c)
	c.planner.Lead(c.all, c.now)
	for _, ref := range c.all {
		c.look(ref, false)
	}
	return c
}

func (c *big) add(at rollout.SourceRef, name string) {
	ref := workload.Ref{Kind: deploymentKind, Namespace: at.Namespace, Name: name}
	c.bySource[at], c.all = append(c.bySource[at], ref), append(c.all, ref)
	c.facts[ref] = &rollout.Facts{
		UID: name, Served: true, Sources: []checksum.Source{at.Source}, Records: checksum.Records{Stamps: map[string]string{at.Source.Name: "0"}},
		Status: workload.Status{Phase: workload.RolledOut, Wanted: 3, Available: 3, Updated: 3, Gentle: true},
	}
}

func (c *big) look(ref workload.Ref, waits bool) {
	f := *c.facts[ref]
	if f.Mark = c.planner.Mark(); waits {
		f.Review.Untrue = f.Sources
	}
	c.planner.Look(ref, &f, c.now)
}

// editAll has all 20,000 wait. It is over when all have been looked at, and settled.
func (c *big) editAll() {
	bundle := c.content()
	for namespace := range benchNamespaces {
		for change := range benchChanges {
			at, content := c.place(namespace, change), bundle
			if change > 0 {
				content = c.content()
			}
			was := c.contents[at]
			c.contents[at] = content
			c.planner.Edited(at, was, content, c.now)
		}
	}
	c.now = c.now.Add(time.Minute)
	for _, ref := range c.all {
		c.look(ref, true)
	}
}

// BenchmarkCycle measures a cycle while 20,000 workloads wait for 500 changes, and 100 have their
// turn. The recount of the planner before this one, which kept its counts, took 3.4 times as long
// (2026-11-27, in one run).
func BenchmarkCycle(b *testing.B) {
	c := newBig()
	c.editAll()
	if out := c.planner.Cycle(c.now); len(out.Roll) != 100 {
		b.Fatalf("%d roll, want 100", len(out.Roll))
	}
	for b.Loop() {
		c.planner.Cycle(c.now)
	}
}

// BenchmarkLook measures a look at one of 20,000 workloads that wait.
func BenchmarkLook(b *testing.B) {
	c := newBig()
	c.editAll()
	for i := 0; b.Loop(); i++ {
		c.look(c.all[i*7919%len(c.all)], true)
	}
}

// BenchmarkMemory measures, once, what the planner keeps for each workload that waits, beside what
// the cluster's caches keep of it anyway.
func BenchmarkMemory(b *testing.B) {
	c := newBig()
	before := bytesInUse()
	c.editAll()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(bytesInUse()-before)/float64(len(c.all)), "B/waiter")
	runtime.KeepAlive(c)
}

// bytesInUse is how many bytes of the heap live.
func bytesInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
