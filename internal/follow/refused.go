package follow

import (
	"context"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Refused tells whether the API server refused the last LIST of a Reflector (403):
// the right to it is missing, as it is when a namespace is gone and its Role with
// it. The zero value is not refused.
type Refused struct{ last atomic.Bool }

// Last reports whether the last LIST was refused.
func (r *Refused) Last() bool { return r.last.Load() }

// Of notes how the LISTs of lw end, which it returns.
func (r *Refused) Of(lw *cache.ListWatch) *cache.ListWatch {
	list := lw.ListWithContextFunc
	lw.ListWithContextFunc = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		found, err := list(ctx, options)
		r.last.Store(apierrors.IsForbidden(err))
		return found, err
	}
	return lw
}
