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
	return newReader(store.client)
}

// answers are what may come instead of an object. Only the last is the API server's word
// that the object does not exist.
func TestVersionTakesNobodysWordButTheAPIServers(t *testing.T) {
	const notFound = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"hunter2","reason":"NotFound","details":%s,"code":404}`
	for name, c := range map[string]struct {
		code       int
		kind, body string
		absent     bool
		is         func(error) bool
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
		"an object of another name":       {code: 200, body: "k8s\x00\x12\x0f\x0a\x0d\x0a\x05other\x32\x047777"},
		"an object without a version":     {code: 200, body: "k8s\x00\x12\x07\x0a\x05\x0a\x03web"},
		"an object cut off":               {code: 200, body: "k8s\x00\x12\x0d\x0a\x0b\x0a\x03web\x32\x0477"},
		"the API server's 404":            {code: 404, kind: "application/json", body: fmt.Sprintf(notFound, `{"name":"web","kind":"configmaps"}`), absent: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := fakeapi.New(t)
			server.Intercept = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.body))
				return true
			}
			version, err := newVersionReader(t, server).version(t.Context(), "shop", web)
			if version != "" || (err == nil) != c.absent {
				t.Fatalf("%q, %v", version, err)
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

// TestNothingOfAnAnswerIsKept: the annotation of the last apply holds a Secret's content.
func TestNothingOfAnAnswerIsKept(t *testing.T) {
	server := fakeapi.New(t)
	applied := secret("shop", "token", "x")
	applied.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"hunter2"}}`}
	server.Put("secrets", applied)
	r := newVersionReader(t, server)
	for range 100 { // A pool may keep nothing, and under -race it keeps three of four.
		if version, err := r.version(t.Context(), "shop", token); version == "" || err != nil {
			t.Fatal(version, err)
		}
		body := r.body()
		if room := body.Bytes()[:body.Cap()]; strings.Contains(string(room), "hunter2") {
			t.Fatalf("what is kept for the next answer, %d bytes, holds the last one", len(room))
		} else if len(room) > 0 {
			return
		}
	}
	t.Error("nothing was kept for the next answer in 100 reads")
}
