package follow

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func TestTheMostSilentOneCounts(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	var early, late, never Progress
	early.Made(now)
	late.Made(now.Add(time.Minute))
	for sentence, test := range map[string]struct {
		all  []*Progress
		want time.Time
	}{
		"none":                   {nil, time.Time{}},
		"one":                    {[]*Progress{&late}, now.Add(time.Minute)},
		"the older of two":       {[]*Progress{&late, &early}, now},
		"in any order":           {[]*Progress{&early, &late}, now},
		"one that said nothing":  {[]*Progress{&early, &never}, time.Time{}},
		"and in any order again": {[]*Progress{&never, &early}, time.Time{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := Oldest(test.all...); !got.Equal(test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// A Reflector shows life whatever the API server does: one that is not there, that
// refuses, or that takes a request and never answers.
func TestAReflectorShowsLifeWhileTheAPIServerIsAway(t *testing.T) {
	over := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	defer hangs.Close()
	defer close(over)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }))
	defer refuses.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for sentence, server := range map[string]*httptest.Server{"it hangs": hangs, "it refuses": refuses, "it is gone": gone} {
		t.Run(sentence, func(t *testing.T) {
			client, err := Typed(&rest.Config{Host: server.URL}, corev1.SchemeGroupVersion, corev1.AddToScheme)
			if err != nil {
				t.Fatal(err)
			}
			var progress Progress
			l := lister{keep: whole, client: asking{client, func() { progress.Asked(time.Now()) }}, resource: "configmaps", pageWithin: 100 * time.Millisecond}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return l.list(ctx, options)
			}
			go cache.NewReflectorWithOptions(&cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: l.watch}, nil, cache.NewStore(cache.MetaNamespaceKeyFunc),
				cache.ReflectorOptions{Backoff: Backoff()}).RunWithContext(ctx)
			first := time.Time{}
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				sign := progress.Sign()
				if first.IsZero() {
					first = sign
				} else if sign.After(first) {
					break // it has asked again
				}
				if time.Now().After(deadline) {
					t.Fatal("it asks once, and no more")
				}
			}
			if !progress.Last().IsZero() {
				t.Error("that is taken for progress")
			}
		})
	}
}
