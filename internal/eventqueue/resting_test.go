package eventqueue

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failing is the API server's answer where somebody else's webhook on events fails.
func failing() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
	}}
}

func broken(event *eventsv1.Event) bool { return strings.HasPrefix(event.Namespace, "broken") }

// inBroken answers in the broken namespaces alone.
func inBroken(answer func() error) func(*eventsv1.Event) error {
	return func(event *eventsv1.Event) error {
		if broken(event) {
			return answer()
		}
		return nil
	}
}

// Events that the API server does not take delay those of their own namespace alone, however it refuses them, and
// also at the end of the process.
func TestANamespaceWithoutEventsDelaysNoOther(t *testing.T) {
	for about, s := range map[string]*server{
		"answered with 500": {answer: inBroken(failing)},
		"no answer":         {answer: inBroken(func() error { return errors.New("connection reset") })},
		"no answer in time": {hangs: broken},
	} {
		for _, broken := range []int{1, 15} {
			t.Run(fmt.Sprint(about, ", in ", broken), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &server{answer: s.answer, hangs: s.hangs}
					q, ctx, _, stop := running(t, s)
					for i := range 20 * broken {
						tell(q, corev1.EventTypeWarning, "ChangeHalted", fmt.Sprint("broken", i%broken), fmt.Sprint("d", i), fmt.Sprint("c", i))
					}
					time.Sleep(time.Minute)
					tell(q, corev1.EventTypeWarning, "ChangeHalted", "shop", "d", "c")
					tell(q, corev1.EventTypeNormal, "ConfigRecorded", "shop", "d", "c")
					time.Sleep(2 * time.Second)
					if s.written() != 2 {
						t.Errorf("%d of 2 events of another namespace were written within 2 s", s.written())
					}
					stop()
					tell(q, corev1.EventTypeNormal, "ConfigRecorded", "shop", "e", "c")
					q.Finish(ctx, 2*time.Second)
					if s.written() != 3 {
						t.Errorf("%d of 3 events of another namespace were written at the end", s.written())
					}
				})
			})
		}
	}
}

// While the API server is away, whether it answers or not, no event is lost, and none is written twice.
func TestNoOutageLosesAnEvent(t *testing.T) {
	for about, answer := range map[string]func() error{
		"answers with 500": failing,
		"does not answer":  func() error { return errors.New("connection refused") },
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				back := time.Now().Add(10 * time.Minute)
				s := &server{answer: func(*eventsv1.Event) error {
					if time.Now().Before(back) {
						return answer()
					}
					return nil
				}}
				q, _, log, stop := running(t, s)
				for i := range 300 {
					tell(q, corev1.EventTypeNormal, "ConfigRecorded", fmt.Sprint("n", i%50), fmt.Sprint("d", i), "c")
				}
				tell(q, corev1.EventTypeWarning, "ChangeHalted", "n1", "d", "c")
				time.Sleep(12 * time.Minute)
				if s.written() != 301 {
					t.Errorf("%d of 301 events were written", s.written())
				}
				if halted, _ := s.at("ChangeHalted"); halted.Sub(back) > longestRest+time.Second {
					t.Errorf("the Warning was written %s after the outage", halted.Sub(back))
				}
				stop()
				if log.Len() > 0 {
					t.Errorf("the log says %s", log)
				}
			})
		})
	}
}

// An event that the API server never takes is lost in the end, and counted; the others of its namespace are written.
func TestAnEventThatIsNeverTakenIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(event *eventsv1.Event) error {
			if event.Reason == "ChangeHalted" {
				return failing()
			}
			return nil
		}}
		q, _, log, stop := running(t, s)
		tell(q, corev1.EventTypeWarning, "ChangeHalted", "shop", "d", "c")
		for i := range 100 {
			time.Sleep(5 * time.Second)
			tell(q, corev1.EventTypeWarning, "RolloutFailed", "shop", fmt.Sprint("d", i), "c")
		}
		time.Sleep(time.Minute)
		stop()
		if s.written() != 100 {
			t.Errorf("%d of 100 other events were written", s.written())
		}
		if !strings.Contains(log.String(), "the API server refused: InternalError") || !q.empty() {
			t.Errorf("the log says %q; empty: %t", log, q.empty())
		}
	})
}

// A namespace in which no event is taken gets a try each ten seconds, not one for each event.
func TestANamespaceWithoutEventsRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		s := &server{answer: func(*eventsv1.Event) error { tries++; return failing() }}
		q, _, _, stop := running(t, s)
		for i := range 1000 {
			tell(q, corev1.EventTypeWarning, "RolloutFailed", "shop", fmt.Sprint("d", i), "c")
		}
		time.Sleep(10 * time.Minute)
		stop()
		if most := int(10*time.Minute/longestRest) + 5; tries > most {
			t.Errorf("%d tries in ten minutes, want %d at most", tries, most)
		}
	})
}
