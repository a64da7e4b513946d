package follow_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

// What is no list would be taken for an empty one.
func TestListOfNothingElse(t *testing.T) {
	for body, items := range map[string]int{
		`{"kind":"SecretList","apiVersion":"v1","items":[]}`:                                0,
		`{"kind":"SecretList","apiVersion":"v1","items":[{"metadata":{"name":"hunter2"}}]}`: 1,
		`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"hunter2"}}`:                 -1,
		`{"kind":"SecretList","apiVersion":"v1","items":"hunter2"}`:                         -1,
		`{"error":"hunter2"}`: -1,
		`{}`:                  -1,
		`hunter2`:             -1,
		``:                    -1,
	} {
		server := fakeapi.New(t)
		server.Intercept = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(body))
			return true
		}
		list, err := follow.List(t.Context(), connect(t, server.Config(), dynamicCore).Get().Resource("secrets"))
		if (err != nil) != (items < 0) || err == nil && len(list.Items) != items {
			t.Errorf("%s: %v, %v", body, list, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
