package scenario

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

// outcome is what became of the edit.
type outcome struct {
	*stepping
	meter             *meter
	restMiB, restLive float64   // of the controller, before
	begin, edited     time.Time // before the first edit, and after the last
	rolled            report.Curve
}

// rolls are the rollouts since the edit, without those by hand.
func (o *outcome) rolls() map[types.NamespacedName][]lab.Roll {
	rolls := o.rollouts.Since(o.begin)
	maps.DeleteFunc(rolls, func(key types.NamespacedName, _ []lab.Roll) bool { return key.Namespace == handNamespace })
	return rolls
}

// done is how many Deployments have rolled to the end.
func (o *outcome) done() (n int) {
	for _, rolls := range o.rolls() {
		if !rolls[len(rolls)-1].Done.IsZero() {
			n++
		}
	}
	return n
}

func (o *outcome) progress(elapsed time.Duration) {
	done := o.done()
	o.rolled.Add(elapsed.Seconds(), float64(done))
	shares := o.meter.shares["controller"]
	o.Say("%d have rolled; the controller takes %.1f %% of a core", done, shares[len(shares)-1])
}

// sums are what the rollouts of the fleet come to, in seconds after the edit.
type sums struct {
	each, often []float64 // seconds and number of rollouts, by Deployment
	last        time.Time
	finish      map[string]time.Time // by namespace
	slots       usage
}

func (o *outcome) sums() sums {
	s := sums{finish: map[string]time.Time{}}
	rolls := o.rolls()
	for key, of := range rolls {
		done := of[len(of)-1].Done
		if done.After(s.finish[key.Namespace]) {
			s.finish[key.Namespace] = done
		}
		if slices.Contains(aside(), key.Namespace) || done.IsZero() {
			continue
		}
		s.often, s.each = append(s.often, float64(len(of))), append(s.each, done.Sub(of[0].Began).Seconds())
		if done.After(s.last) {
			s.last = done
		}
	}
	s.slots = usage{begin: o.edited, end: s.last, soak: o.Soak}
	for _, of := range rolls {
		for _, roll := range of {
			if !roll.Done.IsZero() && roll.Began.Before(s.last) {
				s.slots.add(roll.Began, roll.Done)
			}
		}
	}
	return s
}

func (o *outcome) figures() {
	s := o.sums()
	if len(s.each) == 0 {
		o.r.Skip("nothing rolled")
		return
	}
	o.time(s)
	o.namespaces(s)
	o.cost()
}

func (o *outcome) time(s sums) {
	own := report.Of(s.each...)
	mean := func(int) time.Duration { return time.Duration(own.Mean * float64(time.Second)) }
	total := s.last.Sub(o.edited).Seconds()
	theory := o.inTheory(o.Workloads, o.width(), o.hand.took).Seconds()
	recipe := fmt.Sprintf("%s of settling and %d batches of one change, with %s of soak between them", settle, len(batches(o.Workloads, o.width())), o.Soak)
	o.r.Add(
		report.One(fmt.Sprintf("%d workloads: until the last has rolled", o.Workloads), "s", total).
			Over(recipe+", each as long as by hand", report.Of(theory)).AtMost(report.Ratio, 1.1).
			Saying("%d of %d rolled; at most %d at once in the cluster and %d in each of %d namespaces", len(s.each), o.Workloads, o.Slots, o.SlotsPerNamespace, o.Namespaces),
		report.One("the same, with rollouts as they were", "s", total).
			Over(recipe+", each as long as one rollout of the product took on the average", report.Of(o.inTheory(o.Workloads, o.width(), mean).Seconds())),
		report.New("one rollout", "s", own).Over("one of a batch by hand", report.Of(o.hand.rolls...)),
		report.New("rollouts of one workload", "rollouts", report.Of(s.often...)).AtMost(report.Max, 1).AtLeast(report.Min, 1),
		report.One("slots taken, on the average", "slots", s.slots.mean()).Saying("by what rolls and what soaks, as a watch sees it; from the edit until the last, steps and settling included"),
		report.One("slots taken, most at once", "slots", float64(s.slots.most())).Saying("a watch may see a slot taken a moment before it sees another freed"),
	)
	o.rolled.Name, o.rolled.X, o.rolled.Y = "Workloads rolled by time", "seconds since the edit", "workloads, those of aa-prod and zz-prod among them"
	o.r.Curves = append(o.r.Curves, &o.rolled)
}

func (o *outcome) namespaces(s sums) {
	finish := &report.Curve{Name: "When each namespace was done, in the order of the alphabet", X: "namespace", Y: "seconds since the last edit"}
	var all []float64
	for i := range o.Namespaces {
		at, rolled := s.finish[team(i)]
		if rolled && !at.IsZero() {
			all = append(all, at.Sub(o.edited).Seconds())
			finish.Add(float64(i+1), all[len(all)-1])
		}
	}
	if o.Namespaces > 1 {
		o.r.Add(report.New("a namespace of the fleet: until its last workload has rolled", "s", report.Of(all...)).
			Saying("%d namespaces; their ConfigMaps were written by one client within %.1f s", len(all), o.edited.Sub(o.begin).Seconds()))
		o.r.Curves = append(o.r.Curves, finish)
	}
	theory := o.inTheory(asides, o.width(), o.hand.took).Seconds()
	for _, namespace := range aside() {
		figure := report.New(namespace+": until its last workload has rolled", "s", report.Of())
		if at := s.finish[namespace]; !at.IsZero() {
			figure = report.One(figure.Name, figure.Unit, at.Sub(o.edited).Seconds())
		}
		o.r.Add(figure.Over(fmt.Sprintf("%d workloads in theory, alone in the cluster", asides), report.Of(theory)).
			Saying("edited at the same moment as the fleet's source"))
	}
}

// cost adds what the controller took, and in one line each what the others did.
func (o *outcome) cost() {
	m := o.meter
	name := func(process string) string { return process + ": CPU in windows of 10 s" }
	o.r.Add(report.New(name("controller"), "% of a core", report.Of(m.shares["controller"]...)).AtMost(report.Max, 20))
	for _, process := range slices.Sorted(maps.Keys(m.processes)) {
		if process != "controller" {
			o.r.Add(report.New(name(process), "% of a core", report.Of(m.shares[process]...)))
		}
	}
	ours := report.Of(m.shares["controller"]...)
	o.r.Add(report.One("controller: CPU, mean of all windows", "% of a core", ours.Mean).
		Saying("%.1f ms for each workload", 10*ours.Mean*o.meter.ends[len(o.meter.ends)-1]/float64(o.Workloads)))
	waiting := float64(o.Workloads)
	o.r.Add(report.One("controller: memory for each waiting workload", "KiB", (m.most["controller"]-o.restMiB)*1024/waiting).
		Saying("the most at the end of a window (VmRSS, %.1f MiB) less what it held before the edit (%.1f MiB)", m.most["controller"], o.restMiB))
	if m.live > 0 && o.restLive > 0 {
		o.r.Add(report.One("controller: live heap for each waiting workload", "KiB", (m.live-o.restLive)*1024/waiting).
			Saying("the most (%.1f MiB) less that before the edit (%.1f MiB), each as its last garbage collection found it", m.live, o.restLive))
	}
	curve := &report.Curve{Name: "CPU of the controller by time", X: "seconds since the edit", Y: "% of a core"}
	for i, share := range m.shares["controller"] {
		curve.Add(m.ends[i], share)
	}
	o.r.Curves = append(o.r.Curves, curve)
}
