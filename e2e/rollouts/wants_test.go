package rollouts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What a fleet is to show. Whatever is wrong fails the fleet's test.

// patience is how long something may take that needs many Pods.
const patience = 4 * time.Minute

// wantServing waits until every workload is rolled out, or serves as well as it can.
func (f *fleet) wantServing() {
	f.t.Helper()
	f.space.EventuallyIn(patience, "waiting for the fleet to be rolled out", func() error {
		for _, name := range f.names {
			object, err := f.space.TryGet(name)
			if err != nil {
				return err
			}
			if !f.serves(object) && !slices.Contains(f.ill, name) {
				return fmt.Errorf("%s is not: %v", name, object.Object["status"])
			}
		}
		return nil
	})
	harness.Must(f.t, court.Witness.CatchUp(f.t.Context(), f.Namespace))
}

// touched are the workloads that are not as they were before the last edit.
func (f *fleet) touched() map[string][]string { return f.seen().Touched(f.since) }

// wantHalt waits until the change halts because one more workload than those
// that failed already has, and checks that this is all that happened since the
// last edit, and all that happens. It returns the one that failed.
func (f *fleet) wantHalt(already ...string) string {
	f.t.Helper()
	failed := f.wantFailed(already...)
	f.wantEvents(failed, already...)
	f.wantStill(append(slices.Clone(already), failed)...)
	return failed
}

// wantFailed waits until a workload has failed, and no other is touched.
func (f *fleet) wantFailed(already ...string) string {
	f.t.Helper()
	failed := ""
	f.space.EventuallyIn(patience, "waiting for a rollout that fails", func() error {
		touched := f.touched()
		if len(touched) > len(already)+1 {
			f.t.Fatalf("the bad edit reached %d workloads, want %d:\n%s", len(touched), len(already)+1, listing(touched))
		}
		for name := range touched {
			if name = f.name(name); !slices.Contains(already, name) {
				failed = name
			}
		}
		if failed == "" {
			return fmt.Errorf("none rolls")
		}
		return f.says(failed, "RolloutFailed", "")
	})
	return failed
}

// name is that of a workload in its namespace, of its name in the whole cluster.
func (f *fleet) name(workload string) string { return strings.TrimPrefix(workload, f.Namespace+"/") }

// appOf is the name of a workload without its kind.
func appOf(name string) string { return name[strings.Index(name, "/")+1:] }

// wantEvents checks what people are told when a rollout failed.
func (f *fleet) wantEvents(failed string, already ...string) {
	f.t.Helper()
	f.wantSaid(source, "ChangeHalted", appOf(failed))
	f.wantSaid(failed, "RolloutFailed", "")
	for _, name := range f.names {
		if name != failed && !slices.Contains(already, name) {
			f.wantSaid(name, "RolloutHalted", appOf(failed))
		}
	}
}

// wantSaid waits for an event that names something, and checks that it is said
// once.
func (f *fleet) wantSaid(about, reason, naming string) {
	f.t.Helper()
	f.space.Eventually("waiting for an event", func() error { return f.says(about, reason, naming) })
	if times := f.times(about, reason); times != 1 && !f.retold {
		f.t.Errorf("%s was said %d times about %s, want once:\n%s", reason, times, about, strings.Join(f.space.Notes(about), "\n"))
	}
}

// wantUnsaid checks that an event was not said.
func (f *fleet) wantUnsaid(about, reason string) {
	f.t.Helper()
	if times := f.times(about, reason); times > 0 {
		f.t.Errorf("%s was said %d times about %s:\n%s", reason, times, about, strings.Join(f.space.Notes(about), "\n"))
	}
}

// says reports whether there is an event that counts and names something.
func (f *fleet) says(about, reason, naming string) error {
	for _, event := range f.events(about, reason) {
		if strings.Contains(event.Note, naming) {
			return nil
		}
	}
	return fmt.Errorf("no event %s about %s that names %q since %s; there are:\n%s", reason, about, naming,
		f.heard.Format(time.TimeOnly), strings.Join(f.space.Notes(about), "\n"))
}

// times is how often a reason was given, counted up or not. How often one was
// given before that is counted up now, is not told: it counts once.
func (f *fleet) times(about, reason string) int {
	times := 0
	for _, event := range f.events(about, reason) {
		times++
		if event.Series != nil && !event.EventTime.Time.Before(f.heard) {
			times += int(event.Series.Count) - 1
		}
	}
	return times
}

func (f *fleet) events(about, reason string) []eventsv1.Event {
	return slices.DeleteFunc(f.space.Events(about), func(event eventsv1.Event) bool {
		last := event.EventTime
		if event.Series != nil {
			last = event.Series.LastObservedTime
		}
		return event.Reason != reason || last.Time.Before(f.heard)
	})
}

// wantStill checks that nothing happens for longer than the next step would take,
// and that, since the last edit, nothing but some workloads was touched.
func (f *fleet) wantStill(but ...string) {
	f.t.Helper()
	f.passStep()
	f.wantUntouched(but...)
}

// passStep lets longer pass than the next step would take.
func (f *fleet) passStep() {
	f.t.Helper()
	time.Sleep(settle + f.steady + time.Second)
	harness.Must(f.t, court.Witness.CatchUp(f.t.Context(), f.Namespace))
}

func (f *fleet) wantUntouched(but ...string) {
	f.t.Helper()
	harness.Must(f.t, court.Witness.CatchUp(f.t.Context(), f.Namespace))
	touched := f.touched()
	maps.DeleteFunc(touched, func(name string, _ []string) bool { return slices.Contains(but, f.name(name)) })
	if len(touched) > 0 {
		f.t.Fatalf("%d workloads were touched beside %v:\n%s", len(touched), but, listing(touched))
	}
}

// wantCrashing checks that a workload has Pods of the last edit, and that they
// crash.
func (f *fleet) wantCrashing(name string) {
	f.t.Helper()
	if pods, ok := f.seen().Crashed(f.since, f.Namespace+"/"+name); !ok {
		f.t.Errorf("the new Pods of %s, %v, do not all crash", name, pods)
	}
}

// wantServed checks that every Service has had a ready endpoint at every moment
// since before the first edit, but for those of some apps.
func (f *fleet) wantServed(but ...string) {
	f.t.Helper()
	harness.Must(f.t, court.Witness.CatchUp(f.t.Context(), f.Namespace))
	var services []string
	for _, name := range f.names {
		if !slices.Contains(but, name) && !slices.Contains(f.ill, name) {
			services = append(services, f.Namespace+"/"+appOf(name))
		}
	}
	for _, span := range f.seen().Unserved(f.began, services...) {
		f.t.Errorf("no ready endpoint: %s", span)
	}
}

// slack is how much earlier the product may know that something is rolled out than
// its status tells: a new leader looks at Pods.
const slack = 700 * time.Millisecond

// wantRolledOut waits until the last edit has reached every workload, and checks
// that it did so once, and in growing steps, and that people were told.
func (f *fleet) wantRolledOut() {
	f.t.Helper()
	f.wantAllRoll()
	f.wantServing()
	f.wantSteps()
	f.wantSaid(source, "ChangeRolledOut", "")
}

// wantAllRoll waits until the last edit has reached every workload.
func (f *fleet) wantAllRoll() {
	f.t.Helper()
	f.space.EventuallyIn(patience, "waiting for every workload to roll", func() error {
		if times := f.seen().Rolls(f.since, soak).Times(); len(times) < len(f.names) {
			return fmt.Errorf("%d of %d have", len(times), len(f.names))
		}
		return nil
	})
}

// wantSteps checks that the rollouts since the last edit came in growing steps,
// and reached every workload once.
func (f *fleet) wantSteps() {
	f.t.Helper()
	harness.Must(f.t, court.Witness.CatchUp(f.t.Context(), f.Namespace))
	rolls := f.seen().Rolls(f.since, soak-slack)
	times := rolls.Times()
	for _, name := range f.names {
		if times[f.Namespace+"/"+name] != 1 {
			f.t.Errorf("%s rolled %d times, want once", name, times[f.Namespace+"/"+name])
		}
	}
	for _, text := range rolls.TooEarly(soak - slack) {
		f.t.Errorf("too early: %s", text)
	}
	most := rolls.MostAtOnce(0)
	f.t.Logf("%d rollouts in %.0fs, at most %d not rolled out at once, %d not healthy", len(rolls),
		rolls[len(rolls)-1].Begun.Sub(rolls[0].Begun).Seconds(), len(most), len(rolls.MostAtOnce(soak-slack)))
	if len(most) > maxUnsettled-1 {
		f.t.Errorf("%d at once:\n%s", len(most), most)
	}
	if f.t.Failed() {
		f.t.Logf("all rollouts:\n%s", rolls)
	}
}

// wantTruth is the judge's verdict on the whole history (I1 to I6): it must be
// true at its end.
func (f *fleet) wantTruth() {
	f.t.Helper()
	untrue, err := f.Converge(f.t.Context(), patience)
	harness.Must(f.t, err)
	found, err := f.Verdict(f.t.Context())
	harness.Must(f.t, err)
	for _, violation := range append(untrue, found...) {
		f.t.Error(violation)
	}
}

func listing(touched map[string][]string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(touched)) {
		lines = append(lines, name+": "+strings.Join(touched[name], "; "))
	}
	return strings.Join(lines, "\n")
}

// report is what a person wants to see of a failure.
func (f *fleet) report() string {
	var text strings.Builder
	fmt.Fprintf(&text, "rollouts since the last edit:\n%s\n", f.seen().Rolls(f.since, soak))
	for _, name := range slices.Sorted(maps.Keys(f.touched())) {
		fmt.Fprintf(&text, "Pods of %s:\n  %s\n", name, strings.Join(f.seen().Lives(f.since, name), "\n  "))
	}
	for _, about := range append([]string{source}, f.names...) {
		for _, note := range f.space.Notes(about) {
			fmt.Fprintf(&text, "event about %s: %s\n", about, note)
		}
	}
	text.WriteString(court.Run.Product.Logs(40, f.Namespace+"/", `"level":"ERROR"`, "Leading"))
	return text.String()
}
