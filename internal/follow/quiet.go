package follow

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// bodyLevel is the verbosity from which on client-go logs the bodies of
// requests and responses.
const bodyLevel = 8

// Quiet keeps client-go from logging the bodies of requests made with the
// returned context, which it does from verbosity 8 on: bodies hold Secrets. All
// else that is logged with the context stays. NewListWatch does it by itself;
// requests made directly with a client need it.
func Quiet(ctx context.Context) context.Context {
	logger := klog.FromContext(ctx)
	sink := logger.GetSink()
	if sink == nil {
		return ctx
	}
	if _, done := sink.(quietSink); done {
		return ctx
	}
	return klog.NewContext(ctx, logger.WithSink(quietSink{sink}))
}

// quietSink is a sink that is not enabled at bodyLevel and above.
type quietSink struct{ logr.LogSink }

// Init does nothing: the inner sink has been initialised.
func (quietSink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (q quietSink) Enabled(level int) bool { return level < bodyLevel && q.LogSink.Enabled(level) }

// WithValues implements logr.LogSink.
func (q quietSink) WithValues(keysAndValues ...any) logr.LogSink {
	return quietSink{q.LogSink.WithValues(keysAndValues...)}
}

// WithName implements logr.LogSink.
func (q quietSink) WithName(name string) logr.LogSink { return quietSink{q.LogSink.WithName(name)} }

// WithCallDepth implements logr.CallDepthLogSink.
func (q quietSink) WithCallDepth(depth int) logr.LogSink {
	if sink, ok := q.LogSink.(logr.CallDepthLogSink); ok {
		return quietSink{sink.WithCallDepth(depth)}
	}
	return q
}
