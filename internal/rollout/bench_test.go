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
	benchChanges    = 5   // in each namespace
	benchWorkloads  = 40  // of each change
	benchFew        = 3   // users of the source that is edited
	benchWanted     = 500 // changes
)

func benchLimits() rollout.Limits {
	return rollout.Limits{
		Step: 1, Settle: time.Second, Soak: 10 * time.Second, CrashDeadline: 30 * time.Second,
		RolloutDeadline: 10 * time.Minute, ForeignHalt: time.Hour,
	}
}

// big is a large cluster, and a plan for it. It implements rollout.Cluster.
type big struct {
	b        *testing.B
	plan     *rollout.Plan
	now      time.Time
	edits    int
	bySource map[rollout.SourceRef][]workload.Ref
	contents map[rollout.SourceRef]*checksum.Content
	facts    map[workload.Ref]*rollout.Facts
	at       map[workload.Ref]rollout.SourceRef
	waiters  []workload.Ref
}

func (c *big) Using(at rollout.SourceRef) []workload.Ref         { return c.bySource[at] }
func (c *big) Content(at rollout.SourceRef) *checksum.Content    { return c.contents[at] }
func (c *big) Written(rollout.SourceRef) time.Time               { return time.Time{} }
func (c *big) Copies(checksum.Source) (none []rollout.SourceRef) { return none }
func (c *big) Workloads() int                                    { return len(c.facts) }
func (c *big) change(namespace, change int) (at rollout.SourceRef) {
	return place(fmt.Sprintf("team-%d", namespace), benchName(change))
}
func benchName(change int) string     { return []string{"bundle", "a", "b", "c", "d", "few"}[change] }
func (c *big) orders() rollout.Orders { o := c.plan.Next(c.now); c.plan.Requeues(); return o }

// content is another one each time.
func (c *big) content() *checksum.Content {
	c.edits++
	content := &checksum.Content{Entries: []checksum.Entry{{Name: "key"}}}
	copy(content.Entries[0].Sum[:], strconv.Itoa(c.edits))
	return content
}

// newBig is a cluster whose plan leads, and in which nothing has changed yet.
func newBig(b *testing.B) *big {
	b.Helper()
	c := &big{
		b: b, now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), bySource: map[rollout.SourceRef][]workload.Ref{},
		contents: map[rollout.SourceRef]*checksum.Content{}, facts: map[workload.Ref]*rollout.Facts{}, at: map[workload.Ref]rollout.SourceRef{},
	}
	bundle := c.content()
	for namespace := range benchNamespaces {
		for change := range benchChanges + 1 {
			at, count := c.change(namespace, change), benchWorkloads
			if change == benchChanges {
				count = benchFew
			}
			if c.contents[at] = bundle; change > 0 {
				c.contents[at] = c.content()
			}
			for n := range count {
				c.add(at, fmt.Sprintf("%s-%02d", at.Source.Name, n))
			}
		}
	}
	c.plan = rollout.New(benchLimits(), c)
	all := make([]workload.Ref, 0, len(c.facts))
	for _, refs := range c.bySource {
		all = append(all, refs...)
	}
	c.plan.Lead(all, c.now)
	for _, ref := range all {
		c.follow(ref)
	}
	c.orders()
	return c
}

func (c *big) add(at rollout.SourceRef, name string) {
	ref := workload.Ref{Kind: deploymentKind, Namespace: at.Namespace, Name: name}
	c.bySource[at], c.at[ref] = append(c.bySource[at], ref), at
	c.facts[ref] = &rollout.Facts{
		UID: name, Served: true, Sources: []checksum.Source{at.Source}, Records: checksum.Records{Stamps: map[string]string{at.Source.Name: "0"}},
		Status: workload.Status{Phase: workload.RolledOut, Wanted: 3, Available: 3, Updated: 3, Gentle: true},
	}
}

// edit gives a source another content, without having its users looked at.
func (c *big) edit(at rollout.SourceRef, content *checksum.Content) {
	was := c.contents[at]
	c.contents[at] = content
	c.plan.Edited(at, was, content, c.now)
	c.plan.Requeues()
}

// editAll has all 20,000 wait. It is over when all have been looked at, and settled.
func (c *big) editAll() {
	bundle := c.content()
	for namespace := range benchNamespaces {
		for change := range benchChanges {
			content := bundle
			if change > 0 {
				content = c.content()
			}
			c.edit(c.change(namespace, change), content)
		}
	}
	c.now = c.now.Add(time.Minute)
	for namespace := range benchNamespaces {
		for change := range benchChanges {
			for _, ref := range c.bySource[c.change(namespace, change)] {
				c.wait(ref)
				c.waiters = append(c.waiters, ref)
			}
		}
	}
	if n := c.plan.Counts(); n.Waiting != benchWanted {
		c.b.Fatalf("%d changes wait, want %d", n.Waiting, benchWanted)
	}
}

// wait looks at a workload whose source has changed.
func (c *big) wait(ref workload.Ref) rollout.Verdict {
	f := *c.facts[ref]
	f.Mark, f.Review.Untrue = c.plan.Mark(), f.Sources
	v := c.plan.Looked(ref, &f, c.now)
	if v.Do != rollout.Roll {
		c.follow(ref)
	}
	c.plan.Requeues()
	return v
}

// follow looks after the rollout of a workload.
func (c *big) follow(ref workload.Ref) rollout.Verdict {
	f := *c.facts[ref]
	f.Mark = c.plan.Mark()
	v := c.plan.Followed(ref, &f, c.now)
	c.plan.Requeues()
	return v
}

// send sends the patch of a workload whose turn has come; it begins to roll.
func (c *big) send(ref workload.Ref) {
	c.plan.Sent(ref, c.now)
	f := *c.facts[ref]
	f.Records = checksum.Records{Stamps: map[string]string{c.at[ref].Source.Name: strconv.Itoa(c.edits)}}
	f.Status.Phase, f.Status.Updated, f.Status.Missing = workload.Rolling, 1, 2
	c.facts[ref] = &f
	c.plan.Answered(ref, &f, c.now)
	c.plan.Requeues()
}

// end has a rollout be done, well or not, and the workload looked at.
func (c *big) end(ref workload.Ref, well bool) rollout.Verdict {
	f := *c.facts[ref]
	f.Carried = map[checksum.Source]*checksum.Content{c.at[ref].Source: c.contents[c.at[ref]]}
	if f.Status.Phase, f.Status.Updated, f.Status.Missing = workload.RolledOut, 3, 0; !well {
		f.Status.Phase, f.Status.Why = workload.Failed, "ProgressDeadlineExceeded"
	}
	c.facts[ref] = &f
	pods := rollout.Pods{Selector: "app", All: []workload.Pod{{Name: "pod", Stamps: f.Records.Stamps, Ready: true, Created: c.now.Add(-time.Hour), Started: c.now.Add(-time.Hour)}}}
	for {
		f.Mark = c.plan.Mark()
		v := c.plan.Followed(ref, &f, c.now)
		c.plan.Requeues()
		if v.Do != rollout.ReadPods {
			return v
		}
		f.Pods = &pods
	}
}

// meter is how long something took, on average and at most.
type meter struct {
	n         int
	sum, most time.Duration
}

func (m *meter) time(do func()) {
	began := time.Now()
	do()
	took := time.Since(began)
	m.n, m.sum, m.most = m.n+1, m.sum+took, max(m.most, took)
}

func (m *meter) report(b *testing.B, of string) {
	if m.n > 0 {
		b.ReportMetric(float64(m.sum.Microseconds())/float64(m.n), of+"-us")
		b.ReportMetric(float64(m.most.Microseconds())/1000, of+"-most-ms")
	}
}

// BenchmarkEvent measures single events, while 20,000 workloads wait. What is done
// between two of them, so that the next one finds the same, does not count.
func BenchmarkEvent(b *testing.B) {
	for name, event := range map[string]func(c *big, m *meter, ref workload.Ref){
		"Looked": func(c *big, m *meter, ref workload.Ref) {
			f := *c.facts[ref]
			f.Mark, f.Review.Untrue = c.plan.Mark(), f.Sources
			m.time(func() { c.plan.Looked(ref, &f, c.now) })
		},
		"Withdraw": func(c *big, m *meter, ref workload.Ref) {
			m.time(func() { c.plan.Withdraw(ref, c.now) })
			c.wait(ref)
		},
		"Forget": func(c *big, m *meter, ref workload.Ref) {
			m.time(func() { c.plan.Forget(ref, c.now) })
			c.wait(ref)
		},
		"Refused": func(c *big, m *meter, ref workload.Ref) {
			c.plan.Sent(ref, c.now)
			m.time(func() { c.plan.Refused(ref, true, rollout.LastRetry, c.now) })
			c.wait(ref)
		},
	} {
		b.Run(name, func(b *testing.B) {
			c, m := newBig(b), meter{}
			c.editAll()
			for i := range b.N {
				event(c, &m, c.waiters[i*7919%len(c.waiters)])
			}
			c.plan.Requeues()
			b.ReportMetric(0, "ns/op")
			m.report(b, "event")
		})
	}
}

// BenchmarkEdited measures the edit of a source that three workloads use.
func BenchmarkEdited(b *testing.B) {
	c, m := newBig(b), meter{}
	c.editAll()
	for i := range b.N {
		at := c.change(i%benchNamespaces, benchChanges)
		was, is := c.contents[at], c.content()
		c.contents[at] = is
		m.time(func() { c.plan.Edited(at, was, is, c.now) })
		c.now = c.now.Add(time.Second)
		for _, ref := range c.bySource[at] {
			c.wait(ref)
		}
	}
	b.ReportMetric(0, "ns/op")
	m.report(b, "event")
}

// BenchmarkStream measures a large cluster in which all the time rollouts end, and the
// next ones begin. A change that is done is followed by the next one of its source.
func BenchmarkStream(b *testing.B) {
	s := &stream{big: newBig(b)}
	s.editAll()
	for range 2_000 { // until all slots are taken, and what shall be halted is
		s.step()
	}
	s.meters = [5]meter{}
	for range b.N {
		s.step()
	}
	if n := s.plan.Counts(); n.Halted < benchNamespaces/2 || n.Unsettled < 90 {
		b.Fatalf("%+v, want more halts and more rollouts under way", n)
	}
	b.ReportMetric(0, "ns/op")
	for i, of := range []string{"Next", "Sent", "Looked", "Followed", "Ended"} {
		s.meters[i].report(b, of)
	}
}

type stream struct {
	*big
	rolling []rolling // the oldest first
	meters  [5]meter
}

type rolling struct {
	ref  workload.Ref
	well time.Time // since when
}

// fails reports whether a change is a bad one, for whom it reaches.
func fails(at rollout.SourceRef) bool {
	return at.Source.Name == benchName(benchChanges-1) || at == place("team-7", benchName(0))
}

// step ends one rollout, and begins those whose turn has come.
func (s *stream) step() {
	s.now = s.now.Add(100 * time.Millisecond)
	if len(s.rolling) > 0 && s.now.Sub(s.rolling[0].well) >= benchLimits().Soak {
		ref := s.rolling[0].ref
		s.rolling = s.rolling[1:]
		s.meters[4].time(func() { s.end(ref, true) })
	}
	var out rollout.Orders
	s.meters[0].time(func() { out = s.plan.Next(s.now) })
	s.plan.Requeues()
	for _, ref := range out.Roll {
		s.roll(ref)
	}
	for _, news := range out.Finished {
		for _, at := range news.Sources {
			s.edit(at, s.content())
			for _, ref := range s.bySource[at] {
				s.wait(ref)
			}
		}
	}
}

// roll rolls a workload whose turn has come, until it is rolled out.
func (s *stream) roll(ref workload.Ref) {
	s.meters[2].time(func() {
		if v := s.wait(ref); v.Do != rollout.Roll {
			s.b.Fatalf("%s: its turn has come, and it gets %+v", ref, v)
		}
	})
	s.meters[1].time(func() { s.send(ref) })
	s.meters[3].time(func() { s.follow(ref) })
	if at := s.at[ref]; fails(at) {
		s.end(ref, false)
	} else {
		s.end(ref, true)
		s.rolling = append(s.rolling, rolling{ref, s.now})
	}
}

// BenchmarkMemory measures, once, what the plan keeps for each workload that waits,
// beside what the cluster's caches keep of it anyway.
func BenchmarkMemory(b *testing.B) {
	c := newBig(b)
	c.waiters = make([]workload.Ref, 0, benchWanted*benchWorkloads)
	before := bytesInUse()
	c.editAll()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(bytesInUse()-before)/float64(len(c.waiters)), "B/waiter")
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
