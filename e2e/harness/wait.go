package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// Eventually waits until ok returns nil; its last error says why not.
func (s *Space) Eventually(what string, ok func() error) {
	s.t.Helper()
	s.EventuallyIn(patience, what, ok)
}

// EventuallyIn is Eventually with another bound.
func (s *Space) EventuallyIn(bound time.Duration, what string, ok func() error) {
	s.t.Helper()
	deadline := time.Now().Add(bound)
	for {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %v\n%s", what, err, s.Report())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Counts are the counters of the namespace's workloads now.
func (s *Space) Counts() Counts { return s.Run.Recorder.Counts(s.Namespace) }

// Settled waits until every workload of the namespace was taken in by its own
// controller, and returns the counters then.
func (s *Space) Settled(workloads ...string) Counts {
	s.t.Helper()
	s.Eventually("waiting for "+strings.Join(workloads, ", "), func() error {
		counts := s.Counts()
		for _, workload := range workloads {
			kind, _, _ := strings.Cut(workload, "/")
			count, ok := counts[workload]
			if !ok || count.Revisions == 0 && kind != "cronjob" {
				return fmt.Errorf("%s has no revision yet", workload)
			}
		}
		return nil
	})
	return s.Counts()
}

// Rolls are how often workloads are to roll.
type Rolls map[string]int

// WantRolls waits until workloads have rolled as often as wanted since before,
// each time with a new revision, and checks that nothing else rolls, then or
// within the time in which a second rollout would come.
func (s *Space) WantRolls(before Counts, want Rolls) {
	s.t.Helper()
	s.wantRolls(before, want, true)
}

// WantRollsBack is WantRolls for templates that were there before: no new
// revision is made for them.
func (s *Space) WantRollsBack(before Counts, want Rolls) {
	s.t.Helper()
	s.wantRolls(before, want, false)
}

func (s *Space) wantRolls(before Counts, want Rolls, newRevisions bool) {
	s.t.Helper()
	s.Eventually("waiting for rollouts", func() error {
		now := s.Counts()
		for workload, times := range want {
			kind, _, _ := strings.Cut(workload, "/")
			done := now[workload].Rolls - before[workload].Rolls
			made := now[workload].Revisions - before[workload].Revisions
			if done < times || newRevisions && kind != "cronjob" && made < times {
				return fmt.Errorf("%s rolled %d times with %d new revisions, want %d", workload, done, made, times)
			}
		}
		return nil
	})
	s.Quiet()
	now := s.Counts()
	for workload := range now {
		done := now[workload].Rolls - before[workload].Rolls
		made := now[workload].Revisions - before[workload].Revisions
		if _, known := before[workload]; !known {
			made-- // its first one
		}
		kind, _, _ := strings.Cut(workload, "/")
		if done != want[workload] || newRevisions && kind != "cronjob" && made != want[workload] {
			s.t.Fatalf("%s rolled %d times with %d new revisions, want %d\n%s", workload, done, made, want[workload], s.Report())
		}
	}
}

// Quiet waits longer than the product takes to act, and checks that no workload
// of the namespace was written to meanwhile, status aside.
func (s *Space) Quiet() {
	s.t.Helper()
	s.catchUp()
	before := s.Counts()
	time.Sleep(s.Run.settle() + margin)
	now := s.Counts()
	for workload, count := range now {
		if count != before[workload] {
			s.t.Fatalf("%s was touched while nothing should happen: %+v, then %+v\n%s", workload, before[workload], count, s.Report())
		}
	}
}

// catchUp waits until workloads' own controllers have made what follows from what
// the API server holds now, a revision above all, and the recorder has seen it.
func (s *Space) catchUp() {
	s.t.Helper()
	counts := s.Counts()
	for _, kind := range []string{"deployment", "statefulset", "daemonset", "cronjob"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(counts)), func(workload string) bool { return strings.HasPrefix(workload, kind+"/") }) {
			continue
		}
		all, err := client(s.dynamic, kind, s.Namespace)
		Must(s.t, err)
		list, err := all.List(context.Background(), metav1.ListOptions{})
		Must(s.t, err)
		s.Eventually("waiting for the recorder", func() error {
			counts := s.Counts()
			for i := range list.Items {
				if name := kind + "/" + list.Items[i].GetName(); counts[name].Generation < list.Items[i].GetGeneration() {
					return fmt.Errorf("it has not seen generation %d of %s", list.Items[i].GetGeneration(), name)
				}
			}
			return nil
		})
		if kind != "cronjob" {
			s.Eventually("waiting for the controllers of workloads", func() error { return observed(all) })
		}
	}
	for _, kind := range []string{"replicaset", "controllerrevision"} {
		all, err := client(s.dynamic, kind, s.Namespace)
		Must(s.t, err)
		list, err := all.List(context.Background(), metav1.ListOptions{})
		Must(s.t, err)
		s.Eventually("waiting for the recorder", func() error {
			for i := range list.Items {
				if !s.Run.Recorder.knows(&list.Items[i]) {
					return fmt.Errorf("it has not seen %s/%s", kind, list.Items[i].GetName())
				}
			}
			return nil
		})
	}
}

// observed reports whether every workload of a kind was looked at by its own
// controller as it is now.
func observed(all dynamic.ResourceInterface) error {
	list, err := all.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		o := &list.Items[i]
		if seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); seen < o.GetGeneration() && o.GetDeletionTimestamp() == nil {
			return fmt.Errorf("that of %s has seen generation %d, and there is %d", o.GetName(), seen, o.GetGeneration())
		}
	}
	return nil
}

// Unchanged checks that nothing has rolled since before, after having waited
// for what might.
func (s *Space) Unchanged(before Counts) {
	s.t.Helper()
	s.WantRolls(before, nil)
}

// Events are those about an object, in the order of their making.
func (s *Space) Events(name string) []eventsv1.Event {
	s.t.Helper()
	kind, bare, _ := strings.Cut(name, "/")
	list, err := s.Run.Client.EventsV1().Events(s.Namespace).List(context.Background(), metav1.ListOptions{})
	Must(s.t, err)
	var found []eventsv1.Event
	for _, event := range list.Items {
		if strings.EqualFold(event.Regarding.Kind, kind) && event.Regarding.Name == bare && event.ReportingController == "configstamp" {
			found = append(found, event)
		}
	}
	slices.SortFunc(found, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return found
}

// Notes are the events about an object, as "Reason: note".
func (s *Space) Notes(name string) []string {
	s.t.Helper()
	var notes []string
	for _, event := range s.Events(name) {
		notes = append(notes, event.Reason+": "+event.Note)
	}
	return notes
}

// WantNote waits for an event about an object that holds text. How often it is said is no
// question of a test: a new leader, or a retry, says it again.
func (s *Space) WantNote(name, text string) {
	s.t.Helper()
	s.Eventually("waiting for an event about "+name, func() error {
		for _, note := range s.Notes(name) {
			if strings.Contains(note, text) {
				return nil
			}
		}
		return fmt.Errorf("none says %q; there are:\n%s", text, strings.Join(s.Notes(name), "\n"))
	})
}

// WantNoNote checks that no event about an object holds text.
func (s *Space) WantNoNote(name, text string) {
	s.t.Helper()
	for _, note := range s.Notes(name) {
		if strings.Contains(note, text) {
			s.t.Errorf("about %s: unexpected event %q", name, note)
		}
	}
}

// Report is what a person wants to see of a failure: workloads, events, logs.
func (s *Space) Report() string {
	var report strings.Builder
	fmt.Fprintf(&report, "=== namespace %s\ncounters: %+v\n", s.Namespace, s.Counts())
	for _, kind := range []string{"deployment", "statefulset", "daemonset", "cronjob"} {
		all, err := client(s.dynamic, kind, s.Namespace)
		if err != nil {
			continue
		}
		list, err := all.List(context.Background(), metav1.ListOptions{Limit: 3})
		if err != nil {
			continue
		}
		for i := range list.Items {
			o := &list.Items[i]
			text, err := yaml.Marshal(map[string]any{
				"annotations": o.GetAnnotations(), "generation": o.GetGeneration(), "template": TemplateAnnotations(o), "labels": o.GetLabels(),
			})
			if err == nil {
				fmt.Fprintf(&report, "%s/%s:\n%s", kind, o.GetName(), text)
			}
			for _, note := range s.Notes(kind + "/" + o.GetName()) {
				fmt.Fprintln(&report, "event:", note)
			}
		}
	}
	report.WriteString(s.Run.logs(12, s.Namespace, `"level":"ERROR"`, "To be tried again"))
	return report.String()
}
