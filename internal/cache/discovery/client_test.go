package discovery

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

func TestClientReadsWhatAGroupServes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/example.com/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[`+
				`{"name":"engines","singularName":"engine","namespaced":true,"kind":"Engine","verbs":["get","list","watch"]}]}`)
		case "/apis/example.com/v2":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		default:
			http.NotFound(w, r) // as the API server does, in plain text
		}
	}))
	t.Cleanup(server.Close)
	client, err := NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.ServerResourcesForGroupVersionWithContext(t.Context(), "example.com/v1")
	if err != nil {
		t.Fatal(err)
	}
	if kind, namespaced := kindOf(list, "engines"); kind != "Engine" || !namespaced {
		t.Errorf("%q, in namespaces: %t", kind, namespaced)
	}
	if _, err := client.ServerResourcesForGroupVersionWithContext(t.Context(), "example.com/v2"); !apierrors.IsForbidden(err) {
		t.Errorf("what is forbidden: %v", err)
	}
	if _, err := client.ServerResourcesForGroupVersionWithContext(t.Context(), "gone.example.com/v1"); !apierrors.IsNotFound(err) {
		t.Errorf("what is not served: %v", err)
	}
}
