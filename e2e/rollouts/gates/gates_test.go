package gates

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/faults/judge"
	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/rollouts/timeline"
)

// crowd is the workloads of one namespace.
type crowd struct {
	*faults.Trial
	workloads []one
	// free is when each gate ends; none: it holds nothing, or for ever.
	free map[string]time.Time
	// edited is how often each source was edited since it was made.
	edited map[string]int
	// apart tells that the machine was too slow to edit the sources together, so that
	// they are a change each.
	apart bool
}

func (c *crowd) make(t *testing.T, source string) {
	t.Helper()
	harness.Must(t, c.Set(source, map[string]string{"k": judge.Marker}))
}

func (c *crowd) edit(t *testing.T, source string) {
	t.Helper()
	c.edited[source]++
	harness.Must(t, c.Set(source, map[string]string{"k": fmt.Sprintf("%s-%d", judge.Marker, c.edited[source])}))
}

// set writes a setting on an object, and unset takes it away.
func (c *crowd) set(t *testing.T, object, setting, value string) {
	t.Helper()
	harness.Must(t, c.Patch(object, fmt.Sprintf(`{"metadata":{"annotations":{"configstamp.dev/%s":%q}}}`, setting, value)))
}

func (c *crowd) unset(t *testing.T, object, setting string) {
	t.Helper()
	harness.Must(t, c.Patch(object, fmt.Sprintf(`{"metadata":{"annotations":{"configstamp.dev/%s":null}}}`, setting)))
}

// Everything that can hold a workload, in several namespaces, and all sources
// edited at once: all roll in the end, once for each change, and never more than
// --max-unsettled at a time.
func TestTwoHundredWorkloadsWithMixedGates(t *testing.T) {
	const spaces, count = 4, 200
	opens := time.Now().Add(90 * time.Second).Truncate(time.Minute) // in 30 s at least: when all is made and edited
	var crowds []*crowd
	for i := range spaces {
		trial := court.Trial(t)
		c := &crowd{Trial: trial, edited: map[string]int{}, free: map[string]time.Time{"window": opens}, workloads: workloads(count/spaces, i*count/spaces, opens)}
		crowds = append(crowds, c)
		for _, source := range sources {
			c.make(t, source)
		}
		for _, w := range c.workloads {
			harness.Must(t, c.Create(w.manifest(t)))
		}
	}
	for _, c := range crowds {
		c.wantReady(t)
	}
	since := now(t)

	// One namespace is paused as a whole, until a time; another has a pace.
	until := time.Now().Add(12 * time.Second).Truncate(time.Second)
	for _, g := range []string{"", order, "min-interval"} {
		crowds[1].free[g] = until
	}
	crowds[1].set(t, "namespace/"+crowds[1].Namespace, pause, until.UTC().Format(time.RFC3339))
	crowds[2].set(t, "namespace/"+crowds[2].Namespace, "min-interval", "3s")
	time.Sleep(time.Second) // the controllers know of it
	for _, c := range crowds {
		begun := time.Now()
		for _, source := range sources {
			c.edit(t, source)
		}
		c.apart = time.Since(begun) >= settle
	}
	// In the midst of it a source changes again, and pauses end.
	waitFor(t, 3*time.Minute, "a third of what is free to roll", func() error {
		if rolls := seen(t, crowds...).Rolls(since, 0); len(rolls) < count/6 {
			return fmt.Errorf("%d have begun", len(rolls))
		}
		return nil
	})
	crowds[0].edit(t, "configmap/a")
	for _, c := range crowds {
		c.free[pause] = time.Now()
		for _, w := range c.workloads {
			if w.setting == pause {
				c.unset(t, w.object(), pause)
			}
		}
	}
	for _, c := range crowds {
		c.wantTruth(t)
	}
	for _, c := range crowds {
		c.wantVerdict(t)
		c.wantTimes(t, since)
		c.wantHeld(t, since)
	}
	wantFewAtOnce(t, since, crowds...)
}

// slack is how much earlier the product may know that something is rolled out than
// its status tells.
const slack = 700 * time.Millisecond

// wantFewAtOnce checks how many were rolling at the same time, in the cluster and
// in each namespace.
func wantFewAtOnce(t *testing.T, since timeline.Since, crowds ...*crowd) {
	t.Helper()
	check := func(where string, crowds []*crowd, limit int) {
		rolls := seen(t, crowds...).Rolls(since, 0)
		rolling, unhealthy := rolls.MostAtOnce(0), rolls.MostAtOnce(soak-slack)
		t.Logf("%s: %d rollouts; at most %d not rolled out at once, %d not healthy", where, len(rolls), len(rolling), len(unhealthy))
		if len(rolling) > limit { // a slot is held while pods are replaced, and no longer
			t.Errorf("%s: %d at once, want at most %d:\n%s", where, len(rolling), limit, rolling[:min(len(rolling), 2*limit)])
		}
		if len(unhealthy) < 2 {
			t.Errorf("%s: never more than %d at once: nothing was seen of steps that grow", where, len(unhealthy))
		}
	}
	check("in the cluster", crowds, maxUnsettled)
	for _, c := range crowds {
		check("in "+c.Namespace, []*crowd{c}, maxUnsettled-1)
	}
}

// wantTimes checks that each workload rolled once for each change of what it
// reads, those that observe not at all.
func (c *crowd) wantTimes(t *testing.T, since timeline.Since) {
	t.Helper()
	times := seen(t, c).Rolls(since, 0).Times()
	for _, w := range c.workloads {
		if w.kind == "CronJob" {
			continue // it has no rollouts; the judge has counted its templates
		}
		most := 0
		for _, source := range w.reads {
			if c.apart {
				most += c.edited[source]
			} else {
				most = max(most, c.edited[source]) // sources that are edited together are one change
			}
		}
		least := 1
		if w.setting == mode {
			least, most = 0, 0
		}
		if got := times[c.Namespace+"/"+w.object()]; got < least || got > most {
			t.Errorf("%s (%s, %s) rolled %d times, want %d to %d", w.object(), w.spec, w.gate, got, least, most)
		}
	}
}

// wantHeld checks that nothing rolled before its gate ended, and that min-interval
// lay between any two rolls.
func (c *crowd) wantHeld(t *testing.T, since timeline.Since) {
	t.Helper()
	last := map[string]time.Time{}
	for _, roll := range seen(t, c).Rolls(since, 0) {
		for _, w := range c.workloads {
			if roll.Workload != c.Namespace+"/"+w.object() {
				continue
			}
			if free := c.free[w.setting]; roll.Begun.Before(free) {
				t.Errorf("%s (%s) rolled at %s, and was held until %s", w.object(), w.gate, roll.Begun.Format(time.TimeOnly), free.Format(time.TimeOnly))
			}
			if between := roll.Begun.Sub(last[w.name]); w.setting == "min-interval" && between < interval-time.Second { // it counts from whole seconds
				t.Errorf("%s rolled twice within %s", w.object(), between)
			}
			last[w.name] = roll.NotBefore
		}
	}
}

// observes reports whether a violation is that one which observes has old stamps.
func (c *crowd) observes(v judge.Violation) bool {
	return v.Invariant == "I1" && slices.ContainsFunc(c.workloads, func(w one) bool { return w.setting == mode && w.object() == v.Object })
}

// wantTruth waits until everything that may roll carries true stamps.
func (c *crowd) wantTruth(t *testing.T) {
	t.Helper()
	var untrue []judge.Violation
	t.Cleanup(func() {
		if len(untrue) > 0 {
			t.Log(c.describe(t, untrue))
		}
	})
	waitFor(t, 5*time.Minute, "true stamps", func() (err error) {
		if untrue, err = c.Converge(t.Context(), 0); err != nil {
			return err
		}
		if untrue = slices.DeleteFunc(untrue, c.observes); len(untrue) > 0 {
			return fmt.Errorf("%d in %s are untrue", len(untrue), c.Namespace)
		}
		return nil
	})
	c.wantReady(t)
}

// describe tells of workloads that are not as they should be: what they are, what
// holds them, and what people were told.
func (c *crowd) describe(t *testing.T, found []judge.Violation) string {
	t.Helper()
	space := court.Run.Existing(t, c.Namespace)
	text := fmt.Sprintf("%d in %s", len(found), c.Namespace)
	for _, violation := range found {
		for _, w := range c.workloads {
			if w.object() == violation.Object {
				text += fmt.Sprintf("\n%s (%s, %s): %s", w.object(), w.spec, w.gate, violation.Text)
			}
		}
		text += "\n  " + strings.Join(space.Notes(violation.Object), "\n  ")
	}
	return text
}

// wantVerdict is the judge's, on I1 to I6.
func (c *crowd) wantVerdict(t *testing.T) {
	t.Helper()
	found, err := c.Verdict(t.Context())
	harness.Must(t, err)
	for _, violation := range slices.DeleteFunc(found, c.observes) {
		t.Error(violation)
	}
}

// wantReady waits until all is rolled out that can be.
func (c *crowd) wantReady(t *testing.T) {
	t.Helper()
	waitFor(t, 3*time.Minute, "rollouts to be done", func() error {
		for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
			resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: strings.ToLower(kind) + "s"}
			list, err := court.Run.Dynamic.Resource(resource).Namespace(c.Namespace).List(context.Background(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				if object := list.Items[i]; timeline.Reports(&object) && !timeline.RolledOut(&object) {
					return fmt.Errorf("%s %s/%s is not: %v", kind, c.Namespace, object.GetName(), status(&object))
				}
			}
		}
		return nil
	})
}

func status(object *unstructured.Unstructured) any { return object.Object["status"] }

// seen is all that was seen of some crowds, in order.
func seen(t *testing.T, crowds ...*crowd) timeline.Events {
	t.Helper()
	var all timeline.Events
	for _, c := range crowds {
		events, _, err := court.Witness.Events(c.Namespace)
		harness.Must(t, err)
		all = append(all, events...)
	}
	judge.Sort(all)
	return all
}

// now is the present moment.
func now(t *testing.T) timeline.Since {
	t.Helper()
	list, err := court.Run.Client.CoreV1().ConfigMaps("default").List(context.Background(), metav1.ListOptions{})
	harness.Must(t, err)
	var version int64
	_, err = fmt.Sscan(list.ResourceVersion, &version)
	harness.Must(t, err)
	return timeline.Since(version)
}

func waitFor(t *testing.T, bound time.Duration, what string, ok func() error) {
	t.Helper()
	for deadline := time.Now().Add(bound); ; time.Sleep(time.Second) {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting for %s: %v\n%s", what, err, court.Run.Product.Logs(30, `"level":"ERROR"`, "To be tried again", "Leading"))
		}
	}
}
