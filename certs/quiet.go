package certs

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// remindEvery is how soon a line that was logged may be logged again.
const remindEvery = 10 * time.Minute

// mostRemembered bounds the lines that are remembered; error texts can vary without end.
const mostRemembered = 64

// quietly gives a logger that does not repeat itself, to what says the same line at each try for as
// long as something is broken. Each error passes through redact first.
func quietly(ctx context.Context, redact func(error) error) context.Context {
	sink := &quiet{
		// One more frame lies between the caller and the sink.
		LogSink: klog.FromContext(ctx).WithCallDepth(1).GetSink(),
		redact:  redact,
		said:    &memory{at: map[string]time.Time{}},
	}
	return logr.NewContext(ctx, logr.New(sink))
}

// quiet is a log sink that drops a line which was logged less than remindEvery ago. Two lines are the
// same when message and error are; the values beside them (a count of failures) do not matter.
type quiet struct {
	logr.LogSink
	redact func(error) error
	said   *memory
}

// Init does nothing: the sink inside has been initialised already.
func (q *quiet) Init(logr.RuntimeInfo) {}

func (q *quiet) Info(level int, msg string, values ...any) {
	if q.said.isNew(msg, time.Now()) {
		q.LogSink.Info(level, msg, values...)
	}
}

func (q *quiet) Error(err error, msg string, values ...any) {
	if err == nil {
		return
	}
	err = q.redact(err)
	if q.said.isNew(msg+"\x00"+err.Error(), time.Now()) {
		q.LogSink.Error(err, msg, values...)
	}
}

func (q *quiet) WithValues(values ...any) logr.LogSink {
	return &quiet{LogSink: q.LogSink.WithValues(values...), redact: q.redact, said: q.said}
}

func (q *quiet) WithName(name string) logr.LogSink {
	return &quiet{LogSink: q.LogSink.WithName(name), redact: q.redact, said: q.said}
}

type memory struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (m *memory) isNew(line string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, ok := m.at[line]; ok && now.Sub(last) < remindEvery {
		return false
	}
	if len(m.at) >= mostRemembered {
		clear(m.at)
	}
	m.at[line] = now
	return true
}
