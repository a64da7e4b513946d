package controller

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/follow"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// denying is an API server behind somebody's webhook, which quotes what it denies.
type denying struct{}

func (denying) RoundTrip(r *http.Request) (*http.Response, error) {
	status := apierrors.NewInternalError(errors.New("admission webhook quotes S3CR3T")).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, _ := json.Marshal(status)
	return &http.Response{StatusCode: http.StatusInternalServerError, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

// Whatever is asked, no word of the API server's comes into an error.
func TestWords_NoRequestRepeatsTheAnswer(t *testing.T) {
	kind := workload.Builtin()[0]
	d := workload.Ref{Kind: kind, Namespace: "shop", Name: "d"}
	api := &restAPI{clients: map[*workload.Kind]rest.Interface{}}
	unknown := workload.Ref{Kind: workload.Builtin()[1], Namespace: "shop", Name: "d"}
	for _, version := range []func(rest.Interface){func(c rest.Interface) { api.core = c }, func(c rest.Interface) { api.put(kind, c) }} {
		client, err := follow.NewRaw(&rest.Config{Host: "http://api", QPS: -1, Transport: denying{}}, corev1.SchemeGroupVersion, unwatched)
		if err != nil {
			t.Fatal(err)
		}
		version(client)
	}
	for request, ask := range map[string]func() error{
		"get":       func() error { _, err := api.get(t.Context(), d); return err },
		"readmit":   func() error { _, _, err := api.readmit(t.Context(), d, "configstamp", false); return err },
		"pods":      func() error { _, err := api.pods(t.Context(), "shop", "app=d"); return err },
		"nodeReady": func() error { _, err := api.nodeReady(t.Context(), "n"); return err },
		"sourceUID": func() error {
			_, err := api.sourceUID(t.Context(), rollout.SourceRef{Namespace: "shop", Source: configMap("c")})
			return err
		},
		"a kind that is not watched": func() error { _, err := api.get(t.Context(), unknown); return err },
	} {
		err := ask()
		if err == nil || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%s: %v", request, err)
		}
		if statusOf(err).Code == 0 {
			t.Errorf("%s: it is not known what the API server answered: %v", request, err)
		}
	}
}
