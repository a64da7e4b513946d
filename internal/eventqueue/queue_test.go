package eventqueue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// server takes events.
type server struct {
	mu     sync.Mutex
	events []*eventsv1.Event
	times  []time.Time
	answer func(*eventsv1.Event) error // nil: it takes all
	takes  time.Duration
	// hangs selects the events that are never answered.
	hangs func(*eventsv1.Event) bool
}

func (s *server) write(ctx context.Context, event *eventsv1.Event) error {
	takes := s.takes
	if s.hangs != nil && s.hangs(event) {
		takes = time.Hour
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil {
		if err := s.answer(event); err != nil {
			return err
		}
	}
	s.events, s.times = append(s.events, event), append(s.times, time.Now())
	return nil
}

// at is when an event of a reason was first written, and how many of them were.
func (s *server) at(reason string) (first time.Time, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, event := range s.events {
		if event.Reason != reason {
			continue
		}
		if times++; times == 1 {
			first = s.times[i]
		}
	}
	return first, times
}

func (s *server) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.events)
}

// about is a workload, and its source, "" for none.
func tell(q *Queue, eventType, reason, namespace, workload, source string) {
	regarding := &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: workload}
	if source == "" {
		q.Eventf(regarding, nil, eventType, reason, "Readmit", "%s of %s", reason, workload)
		return
	}
	q.Eventf(regarding, &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: source}, eventType, reason, "Readmit", "%s of %s", reason, workload)
}

// running runs a queue in a bubble of simulated time; stop ends Run.
func running(t *testing.T, s *server) (q *Queue, ctx context.Context, log *bytes.Buffer, stop func()) {
	t.Helper()
	log = &bytes.Buffer{}
	ctx = klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log))))
	runs, cancel := context.WithCancel(ctx)
	q = New("configstamp", s.write)
	var ended sync.WaitGroup
	ended.Go(func() { q.Run(runs) })
	return q, ctx, log, func() {
		cancel()
		ended.Wait()
	}
}

func TestEventsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		q, _, _, stop := running(t, s)
		for i := range 200 {
			tell(q, corev1.EventTypeNormal, "ConfigRecorded", "shop", fmt.Sprint("d", i), "c")
		}
		time.Sleep(10*time.Second + time.Millisecond)
		if got := s.written(); got != atOnce+10*perSecond {
			t.Errorf("%d events within ten seconds, want %d", got, atOnce+10*perSecond)
		}
		time.Sleep(10 * time.Second)
		stop()
		for i, event := range s.events {
			if want := fmt.Sprint("d", i); event.Regarding.Name != want {
				t.Fatalf("%s is told of as number %d", event.Regarding.Name, i)
			}
		}
		if s.written() != 200 {
			t.Errorf("%d events in the end, want 200", s.written())
		}
	})
}

func TestWarningsNeverWaitBehindNormalEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		q, _, _, stop := running(t, s)
		for i := range 50_000 {
			tell(q, corev1.EventTypeNormal, "ConfigRecorded", "shop", fmt.Sprint("d", i), "c")
		}
		time.Sleep(time.Minute)
		said := time.Now()
		tell(q, corev1.EventTypeWarning, "ChangeHalted", "shop", "d1", "c")
		time.Sleep(time.Minute)
		if at, times := s.at("ChangeHalted"); times != 1 || at.Sub(said) > time.Second {
			t.Errorf("it was written %d times, after %s", times, at.Sub(said))
		}
		stop()
	})
}

// Of a thousand Warnings about one source, the one about another is not the last.
func TestTheNewestSubjectDoesNotStarve(t *testing.T) {
	for _, eventType := range []string{corev1.EventTypeNormal, corev1.EventTypeWarning} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{}
			q, _, _, stop := running(t, s)
			for i := range 50_000 {
				tell(q, eventType, "RolloutHeld", "shop", fmt.Sprint("d", i), "c")
			}
			time.Sleep(time.Second)
			said := time.Now()
			tell(q, eventType, "RolloutHeld", "shop", "other", "other")
			tell(q, eventType, "RolloutFailed", "shop", "d1", "c")
			time.Sleep(time.Minute)
			if at, times := s.at("RolloutFailed"); times != 1 || at.Sub(said) > time.Second {
				t.Errorf("%s: it was written %d times, after %s", eventType, times, at.Sub(said))
			}
			stop()
		})
	}
}

// A namespace that has thousands of sources of which something is told delays no other one, and
// takes no other one's room.
func TestALoudNamespaceDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		q, _, _, stop := running(t, s)
		for i := range 2 * most {
			tell(q, corev1.EventTypeWarning, "SettingUnreadable", "loud", "d", fmt.Sprint("c", i))
		}
		time.Sleep(time.Second)
		said := time.Now()
		tell(q, corev1.EventTypeWarning, "RolloutFailed", "shop", "d", "c")
		time.Sleep(time.Minute)
		if at, times := s.at("RolloutFailed"); times != 1 || at.Sub(said) > time.Second {
			t.Errorf("it was written %d times, after %s", times, at.Sub(said))
		}
		stop()
	})
}

func TestWhatWaitsAtTheEndIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: 20 * time.Millisecond}
		q, ctx, log, stop := running(t, s)
		stop()
		for i := range 200 {
			tell(q, corev1.EventTypeNormal, "ConfigRecorded", fmt.Sprint("shop", i%10), fmt.Sprint("d", i), "c")
		}
		tell(q, corev1.EventTypeWarning, "RolloutFailed", "shop", "d7", "c")
		began := time.Now()
		q.Finish(ctx, 15*time.Second)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
		if at, _ := s.at("RolloutFailed"); s.written() != 201 || at.Sub(began) != s.takes {
			t.Errorf("there are %d events, or the Warning waited", s.written())
		}
		if strings.Contains(log.String(), "lost") {
			t.Errorf("something is lost: %s", log)
		}
	})
}

func TestWhatCannotBeSentInTimeIsCountedInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(*eventsv1.Event) error { return errors.New("connection refused") }}
		q, ctx, log, stop := running(t, s)
		for i := range 300 {
			tell(q, corev1.EventTypeNormal, "ConfigRecorded", fmt.Sprint("shop", i%10), fmt.Sprint("d", i), "c")
		}
		tell(q, corev1.EventTypeWarning, "RolloutFailed", "shop", "d7", "c")
		time.Sleep(2 * time.Second)
		stop()
		began := time.Now()
		q.Finish(ctx, 15*time.Second)
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
		lost := map[string]int{}
		for line := range strings.Lines(log.String()) {
			for _, reason := range []string{"ConfigRecorded", "RolloutFailed"} {
				if _, rest, found := strings.Cut(line, `"`+reason+`":`); found {
					n := 0
					_, _ = fmt.Sscan(strings.Split(strings.Split(rest, ",")[0], "}")[0], &n)
					lost[reason] += n
				}
			}
		}
		if lost["ConfigRecorded"] != 300 || lost["RolloutFailed"] != 1 {
			t.Errorf("the log counts %v:\n%s", lost, log)
		}
	})
}

// A server that was away has every event in the end, and none twice.
func TestEventsOutliveAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back, known := time.Now().Add(40*time.Second), map[string]bool{}
		s := &server{}
		s.answer = func(event *eventsv1.Event) error {
			switch {
			case time.Now().Before(back):
				return errors.New("connection refused")
			case known[event.Name]:
				return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, event.Name)
			}
			known[event.Name] = true
			if len(known)%3 == 0 { // it is stored, and the answer is lost
				s.events = append(s.events, event)
				s.times = append(s.times, time.Now())
				return errors.New("connection reset")
			}
			return nil
		}
		q, _, _, stop := running(t, s)
		for i := range 20 {
			tell(q, corev1.EventTypeNormal, "ConfigRecorded", "shop", fmt.Sprint("d", i), "c")
		}
		time.Sleep(2 * time.Minute)
		if s.written() != 20 {
			t.Errorf("%d events were written, want 20", s.written())
		}
		stop()
	})
}

// One that the API server refuses keeps no other waiting.
func TestARefusedEventIsCountedAndTheOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(event *eventsv1.Event) error {
			if event.Namespace == "ending" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, event.Name, errors.New("it holds S3CR3T"))
			}
			return nil
		}}
		q, ctx, log, stop := running(t, s)
		tell(q, corev1.EventTypeWarning, "RolloutFailed", "ending", "d", "c")
		tell(q, corev1.EventTypeNormal, "ConfigRecorded", "shop", "d", "c")
		time.Sleep(time.Second)
		stop()
		q.Finish(ctx, time.Second)
		if s.written() != 1 {
			t.Errorf("%d events were written, want 1", s.written())
		}
		if said := log.String(); !strings.Contains(said, `"the API server refused: Forbidden"`) && !strings.Contains(said, `the API server refused: Forbidden`) || strings.Contains(said, "S3CR3T") {
			t.Errorf("the log says %s", said)
		}
	})
}

// However many wait, memory is bounded, and they are counted all the same.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("200,000 events are many for the race detector: make unit runs it without")
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	q := New("configstamp", func(context.Context, *eventsv1.Event) error { return nil })
	const all = 200_000
	note := strings.Repeat("x", 300)
	for i := range all {
		q.Eventf(&corev1.ObjectReference{Kind: "Deployment", Namespace: fmt.Sprint("n", i%100), Name: fmt.Sprint("d", i)}, nil, corev1.EventTypeNormal, "ConfigRecorded", "Readmit", "%s", note)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if more := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; more > 16 {
		t.Errorf("%d events take %d MiB", all, more)
	}
	if lost := q.lost["the queue was full"]["ConfigRecorded"]; lost+q.normals.total != all || q.normals.total != most {
		t.Errorf("%d of %d are lost, %d wait", lost, all, q.normals.total)
	}
}
