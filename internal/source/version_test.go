package source

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

func newVersionReader(t *testing.T, server *fakeapi.Server) *reader {
	store, _ := newStore(t, server)
	return &reader{store.client}
}

// answers are what may come instead of an object. Only the last is the API server's word
// that the object does not exist.
func TestVersionTakesNobodysWordButTheAPIServers(t *testing.T) {
	const notFound = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"hunter2","reason":"NotFound","details":%s,"code":404}`
	const object = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{%s}}`
	for name, c := range map[string]struct {
		code       int
		kind, body string
		absent     bool
		is         func(error) bool
		patience   string // Retry-After
	}{
		"a proxy's 404":                   {code: 404, kind: "text/html", body: "hunter2"},
		"a 404 in JSON that is no Status": {code: 404, kind: "application/json", body: `{"error":"hunter2"}`},
		"a 404 of the path":               {code: 404, kind: "application/json", body: fmt.Sprintf(notFound, `{}`)},
		"a 404 without details":           {code: 404, kind: "application/json", body: fmt.Sprintf(notFound, `null`)},
		"a 404 of another object":         {code: 404, kind: "application/json", body: fmt.Sprintf(notFound, `{"name":"other","kind":"configmaps"}`)},
		"a 404 of another kind":           {code: 404, kind: "application/json", body: fmt.Sprintf(notFound, `{"name":"web","kind":"namespaces"}`)},
		"a Status that is no failure":     {code: 404, kind: "application/json", body: `{"kind":"Status","status":"Success","reason":"NotFound","details":{"name":"web","kind":"configmaps"}}`},
		"a refusal":                       {code: 403, kind: "application/json", body: `{"kind":"Status","status":"Failure","message":"hunter2","reason":"Forbidden","code":403}`, is: apierrors.IsForbidden},
		"too many requests":               {code: 429, kind: "text/plain", body: "hunter2", is: apierrors.IsTooManyRequests},
		"something else":                  {code: 200, kind: "text/html", body: "hunter2"},
		"nothing":                         {code: 200},
		"a 429 that asks for patience":    {code: 429, kind: "text/plain", body: "hunter2", is: apierrors.IsTooManyRequests, patience: "1"},
		"an object of another name":       {code: 200, kind: "application/json", body: fmt.Sprintf(object, `"name":"other","resourceVersion":"7"`)},
		"an object without a version":     {code: 200, kind: "application/json", body: fmt.Sprintf(object, `"name":"web"`)},
		"an object cut off":               {code: 200, kind: "application/json", body: fmt.Sprintf(object, `"name":"web","resourceVersion":"7","labels":{"a":"hunter2"`)},
		"an object that is too large":     {code: 200, kind: "application/json", body: fmt.Sprintf(object, `"name":"web","resourceVersion":"7","annotations":{"a":"`+strings.Repeat("hunter2", mostBytes/7)+`"}`)},
		"the API server's 404":            {code: 404, kind: "application/json", body: fmt.Sprintf(notFound, `{"name":"web","kind":"configmaps"}`), absent: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := fakeapi.New(t)
			server.Intercept = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", c.kind)
				if c.patience != "" {
					w.Header().Set("Retry-After", c.patience)
				}
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.body))
				return true
			}
			version, err := newVersionReader(t, server).version(t.Context(), "shop", web)
			if version != "" || (err == nil) != c.absent {
				t.Fatalf("%q, %v", version, err)
			}
			if asked := server.Requests(); len(asked) != 1 {
				t.Errorf("asked %d times", len(asked))
			}
			if err == nil {
				return
			}
			if strings.Contains(err.Error(), "hunter") || !strings.Contains(err.Error(), "configmap/web") {
				t.Errorf("%v", err)
			}
			if c.is != nil && !c.is(err) {
				t.Errorf("%v is of another reason", err)
			}
		})
	}
}

func TestVersionsOfAllAreAllOrNone(t *testing.T) {
	server := fakeapi.New(t)
	for i := range firstPage + 1 {
		server.Put("configmaps", configMap("shop", fmt.Sprint("web-", i), nil))
	}
	server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("continue") {
			server.Compact()
		}
		return false
	}
	got, err := newVersionReader(t, server).versions(t.Context(), "shop", checksum.ConfigMap)
	var answer apierrors.APIStatus
	if got != nil || !apierrors.IsResourceExpired(err) || !errors.As(err, &answer) {
		t.Errorf("%d, %v", len(got), err)
	}
}

// A server, or a proxy before it, may answer JSON though protobuf was asked for.
func TestVersionsOfAServerThatAnswersJSON(t *testing.T) {
	server := fakeapi.New(t)
	for i := range firstPage + 1 {
		server.Put("configmaps", configMap("shop", fmt.Sprint("web-", i), nil))
	}
	want := server.Put("configmaps", configMap("shop", "web", nil))
	server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		r.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), "application/vnd.kubernetes.protobuf", "application/json"))
		return false
	}
	r := newVersionReader(t, server)
	if got, err := r.version(t.Context(), "shop", web); err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if got, err := r.versions(t.Context(), "shop", checksum.ConfigMap); err != nil || len(got) != firstPage+2 || got["web"] != want {
		t.Errorf("%v, %v", got, err)
	}
}
