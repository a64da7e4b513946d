package controller

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
	"github.com/configstamp/configstamp/internal/refusal"
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
		client, err := follow.Dynamic(&rest.Config{Host: "http://api", QPS: -1, Transport: denying{}}, corev1.SchemeGroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		version(client)
	}
	for request, ask := range map[string]func() error{
		"get":                        func() error { _, err := api.get(t.Context(), d); return err },
		"readmit":                    func() error { _, _, err := api.readmit(t.Context(), d, "configstamp", false); return err },
		"pods":                       func() error { _, err := api.pods(t.Context(), "shop", "app=d"); return err },
		"nodeReady":                  func() error { _, err := api.nodeReady(t.Context(), "n"); return err },
		"a kind that is not watched": func() error { _, err := api.get(t.Context(), unknown); return err },
	} {
		err := ask()
		if err == nil || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%s: %v", request, err)
		}
		if refusal.StatusOf(err).Code == 0 {
			t.Errorf("%s: it is not known what the API server answered: %v", request, err)
		}
	}
}

// What is watched comes in protobuf, and says what its JSON would; what is asked for
// comes as JSON.
func TestWatch_ProtobufSaysWhatJSONDoes(t *testing.T) {
	server, c := fakeapi.New(t), newCluster(t)
	d := c.deploy("d", "settings")
	typed := appsv1.Deployment{}
	if err := json.Unmarshal(c.body(d), &typed); err != nil {
		t.Fatal(err)
	}
	server.Put("deployments", &typed)
	server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if isJSON := !strings.HasPrefix(r.Header.Get("Accept"), runtime.ContentTypeProtobuf); isJSON != strings.HasSuffix(r.URL.Path, "/d") {
			t.Errorf("%s is asked for as %q", r.URL, r.Header.Get("Accept"))
		}
		return false
	}
	made, err := New(server.Config(), discovered{}, Options{Kinds: workload.Table{d.Kind}, Policy: c.policy, Workers: 1, Clock: clock.RealClock{}}, c, c, c, events.NewFakeRecorder(100), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { made.watches[0].store.Run(t.Context(), made.watches[0].client) })
	t.Cleanup(running.Wait)
	eventually(t, "it is known", func() bool { return made.index.Get(d) != nil })
	body, err := made.api.get(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	want, err := made.options.read(d.Kind, body)
	if err != nil {
		t.Fatal(err)
	}
	got := *made.index.Get(d)
	got.Standstill, got.Best, got.Sources = want.Standstill, want.Best, want.Sources
	if len(got.References) != 1 || !reflect.DeepEqual(&got, want) {
		t.Errorf("got  %+v\nwant %+v", &got, want)
	}
}
