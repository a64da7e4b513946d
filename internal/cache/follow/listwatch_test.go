package follow

import (
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A Reflector lists everything anew after any error but 429.
func TestWatchesThatFailAgainAndAgainEndInAList(t *testing.T) {
	for name, c := range map[string]struct {
		status, between int // between two errors that are none of 429
		initial         bool
	}{
		"a server that restarts":         {http.StatusServiceUnavailable, mostFailures, false},
		"a server that fails":            {http.StatusInternalServerError, mostFailures, false},
		"a right that is missing":        {http.StatusForbidden, 0, false},
		"a version that is no more":      {http.StatusGone, 0, false},
		"a server without initial lists": {http.StatusServiceUnavailable, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) }))
			defer server.Close()
			client, err := Typed(&rest.Config{Host: server.URL, QPS: -1}, corev1.SchemeGroupVersion, corev1.AddToScheme)
			if err != nil {
				t.Fatal(err)
			}
			l := lister{keep: whole, client: client, resource: "configmaps", pageWithin: pageWithin}
			options := metav1.ListOptions{}
			if c.initial {
				options.SendInitialEvents = new(true)
			}
			for try := range 3 * (c.between + 1) {
				_, err := l.watch(t.Context(), options)
				if again := try%(c.between+1) != c.between; err == nil || apierrors.IsTooManyRequests(err) != again {
					t.Errorf("try %d: %v", try, err)
				}
			}
		})
	}
}
