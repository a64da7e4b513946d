package eventqueue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// A change that concerns a thousand workloads makes as many events. Each is a
// write, like a roll; all at once they would halve the rate of the rolls.
const (
	perSecond = 10
	atOnce    = 10
)

// An event that the API server does not take is tried again, as often and about as
// long as client-go does it. Its namespace rests meanwhile.
const (
	writeWithin = 10 * time.Second
	mostTries   = 12
	firstRest   = time.Second
	longestRest = 10 * time.Second
	// mostWrites is how many events of one type are being written at any time.
	mostWrites = 20
	// reportEvery is how often the log tells of events that were lost.
	reportEvery = time.Minute
)

// Queue takes events as client-go's events.EventRecorder does. Its methods may be called at any time and from
// anywhere, unless they say otherwise.
type Queue struct {
	write    func(context.Context, *eventsv1.Event) error
	reporter string
	instance string

	mu       sync.Mutex
	warnings *lines
	normals  *lines
	written  int                       // events that the API server has taken
	lost     map[string]map[string]int // how many, by why and by the event's reason
	reported time.Time
	woken    chan struct{} // holds one when something waits
}

// New makes a queue for the events of reporter. Nothing is written before Run.
func New(reporter string, write func(context.Context, *eventsv1.Event) error) *Queue {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Queue{
		write: write, reporter: reporter, instance: reporter + "-" + host,
		warnings: newLines(), normals: newLines(), lost: map[string]map[string]int{}, woken: make(chan struct{}, 1),
	}
}

// Eventf queues an event. Both objects are *corev1.ObjectReference;
// related is the source that the event is about, nil when there are several or none.
func (q *Queue) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	about, _ := regarding.(*corev1.ObjectReference)
	if about == nil {
		q.lose("without an object", reason, 1)
		return
	}
	source, _ := related.(*corev1.ObjectReference)
	now := time.Now()
	w := waiting{Event: &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: about.Namespace, Name: nameOf(about.Name, now)},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: q.reporter,
		ReportingInstance:   q.instance,
		Action:              action,
		Reason:              reason,
		Regarding:           *about,
		Related:             source,
		Note:                shorten(fmt.Sprintf(note, args...)),
		Type:                eventType,
	}}
	if w.Namespace == "" {
		w.Namespace = metav1.NamespaceDefault
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(q.linesOf(eventType), subjectOf(w.Event), w)
	q.wake()
}

// add has an event wait. The caller holds the lock.
func (q *Queue) add(to *lines, about subject, w waiting) {
	if lost := to.add(about, w); lost != nil {
		q.count("the queue was full", lost.Reason, 1)
	}
}

// wake has write look whether there is something to write, or whether it is done.
func (q *Queue) wake() {
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

func nameOf(object string, now time.Time) string {
	return util.GenerateEventName(object, now.UnixNano())
}

// subjectOf is the source that an event is about, else its Namespace.
func subjectOf(event *eventsv1.Event) subject {
	about := aboutNamespace(event.Namespace)
	switch {
	case event.Related != nil:
		about = *event.Related
	case event.Regarding.Kind == "ConfigMap", event.Regarding.Kind == "Secret", event.Regarding.Kind == "SecretProviderClass":
		about = event.Regarding
	}
	about.ResourceVersion, about.FieldPath = "", ""
	return subject{event.Reason, about}
}

func aboutNamespace(name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: name, Name: name}
}

func (q *Queue) linesOf(eventType string) *lines {
	if eventType == corev1.EventTypeWarning {
		return q.warnings
	}
	return q.normals
}

// take takes the next event out of its lines, nil when there is none.
func (q *Queue) take() (from *lines, about subject, w waiting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, from := range []*lines{q.warnings, q.normals} {
		if about, w, some := from.take(); some {
			return from, about, w
		}
	}
	return nil, subject{}, waiting{}
}

// Run writes events until ctx ends; Finish is for what waits then.
func (q *Queue) Run(ctx context.Context) {
	limiter := flowcontrol.NewTokenBucketRateLimiter(perSecond, atOnce)
	defer limiter.Stop()
	q.send(ctx, limiter, longestRest, func() bool { return false })
}

// send writes events until ctx ends, or done reports true. A namespace whose event is not taken rests, at most
// for longest, and the others go on.
func (q *Queue) send(ctx context.Context, limiter flowcontrol.RateLimiter, longest time.Duration, done func() bool) {
	var writers sync.WaitGroup
	defer writers.Wait()
	for !done() {
		// Which one is the next is known when its time has come.
		for q.ready() && limiter.Wait(ctx) == nil {
			from, about, w := q.take()
			if from == nil {
				break
			}
			writers.Go(func() {
				q.try(ctx, from, about, w, longest)
				q.report(ctx, reportEvery)
			})
		}
		select {
		case <-q.woken:
		case <-ctx.Done():
			return
		}
	}
}

// ready reports whether an event can be written now.
func (q *Queue) ready() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.warnings.ready() || q.normals.ready()
}

// empty reports whether nothing waits and nothing is being written.
func (q *Queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.warnings.total+q.normals.total+q.warnings.writes+q.normals.writes == 0
}

// try writes an event. One that is to be tried again waits behind the other lines of its namespace, which rests.
//
// A failed try counts if the API server has taken another event since the last one that counted: while it takes
// none at all, no event is to blame, and none is given up.
func (q *Queue) try(ctx context.Context, from *lines, about subject, w waiting, longest time.Duration) {
	why, again := q.create(ctx, w.Event)
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.wake()
	from.writes--
	namespace := about.about.Namespace
	switch {
	case why == "":
		q.written++
	case q.written > w.after:
		w.tries, w.after = w.tries+1, q.written
	}
	if why == "" || !again || w.tries >= mostTries {
		if why != "" {
			q.count(why, w.Reason, 1)
		}
		delete(from.failed, namespace)
		delete(from.busy, namespace)
		return
	}
	q.add(from, about, w)
	time.AfterFunc(from.rest(namespace, longest), func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(from.busy, namespace)
		q.wake()
	})
}

// create writes an event, or returns why it could not and whether another try may help.
func (q *Queue) create(ctx context.Context, event *eventsv1.Event) (why string, again bool) {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	err := q.write(ctx, event)
	var refusal apierrors.APIStatus
	switch {
	case err == nil, apierrors.IsAlreadyExists(err): // by a try whose answer was lost
		return "", false
	case errors.As(err, &refusal):
		status := refusal.Status()
		return "the API server refused: " + string(status.Reason), status.Code >= http.StatusInternalServerError || status.Code == http.StatusTooManyRequests
	}
	return "the API server did not answer", true
}

// Finish writes what waits, Warnings first, as far as that can be done within some time. The log counts the rest. Run
// has ended by then.
func (q *Queue) Finish(ctx context.Context, within time.Duration) {
	q.mu.Lock()
	clear(q.warnings.busy) // no namespace rests any more
	clear(q.normals.busy)
	q.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	q.send(bounded, flowcontrol.NewFakeAlwaysRateLimiter(), firstRest, q.empty)
	q.mu.Lock()
	for _, left := range []*lines{q.warnings, q.normals} {
		for about, line := range left.of {
			q.count("the process ended first", about.reason, len(line))
		}
	}
	q.mu.Unlock()
	q.report(ctx, 0)
}

func (q *Queue) lose(why, reason string, events int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count(why, reason, events)
}

func (q *Queue) count(why, reason string, events int) {
	if q.lost[why] == nil {
		q.lost[why] = map[string]int{}
	}
	q.lost[why][reason] += events
}

// report logs how many events were lost, unless it did so a moment ago.
func (q *Queue) report(ctx context.Context, every time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if len(q.lost) == 0 || now.Sub(q.reported) < every {
		return
	}
	for why, events := range q.lost {
		klog.FromContext(ctx).Info("Events were lost", "why", why, "events", maps.Clone(events))
	}
	clear(q.lost)
	q.reported = now
}

// shorten keeps a note within what an event holds, 1 kB.
func shorten(note string) string {
	const enough = 1000
	if len(note) <= enough {
		return note
	}
	return strings.ToValidUTF8(note[:enough], "") + "…"
}
