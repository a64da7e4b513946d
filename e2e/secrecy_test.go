package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/faults/judge"
	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// No source content leaves the processes, in any form (I6), and none stays in
// them.

// wantNowhere checks that a text holds a marker in no form.
func wantNowhere(t *testing.T, where string, text []byte, marker []byte) {
	t.Helper()
	if len(text) == 0 {
		t.Errorf("%s: there is nothing to look through", where)
	}
	for _, leak := range judge.Leaks(where, text, string(marker)) {
		t.Error(leak)
	}
}

func TestSecrecy_AMarkerIsFoundNowhere(t *testing.T) {
	product := run.Exclusive(t)
	binary := filepath.Join(t.TempDir(), "configstamp")
	harness.Must(t, run.Of(t).BuildWithHeapDump(t.Context(), binary))
	for _, process := range product.All() {
		harness.Must(t, process.Stop())
		process.Use(t, binary)
	}
	product.Set(harness.Options{Settle: harness.Settle, Webhook: []string{"-v=4"}, Controller: []string{"-v=4"}})
	began := map[*harness.Process]int{}
	for _, process := range product.All() {
		began[process] = len(process.Log())
	}
	harness.Must(t, product.Start(t.Context()))

	marker := []byte("MARK" + randomText(28))
	s := run.Space(t)
	live(t, s, product, marker)

	keys, err := s.Run.Keys()
	harness.Must(t, err)
	outside := map[string][]byte{
		"events":    dump(t, "/apis/events.k8s.io/v1/namespaces/"+s.Namespace+"/events"),
		"workloads": dumpWorkloads(t, s),
	}
	for _, process := range product.All() {
		outside["log of "+process.Name] = []byte(process.Log()[began[process]:])
		outside["metrics of "+process.Name] = []byte(process.MetricsText())
	}
	for where, text := range outside {
		wantNowhere(t, where, text, marker)
		for _, key := range keys {
			wantNowhere(t, where+" (digest key)", text, key.Material)
		}
	}
	for _, process := range product.All() {
		wantForgotten(t, process, marker, keys[0].Material)
	}
}

// wantForgotten waits until a process that collects its garbage holds a marker
// nowhere. A connection that was closed stays in the runtime, with its buffers,
// until the timer of its idleness would have been due, after 90 s.
func wantForgotten(t *testing.T, process *harness.Process, marker, key []byte) {
	t.Helper()
	began := time.Now()
	for {
		heap := process.HeapDump(t)
		if !bytes.Contains(heap, key) {
			t.Errorf("the heap of %s, %d bytes, does not even show its key: nothing is proven", process.Name, len(heap))
		}
		found := judge.Leaks("heap of "+process.Name, heap, string(marker))
		if len(found) == 0 {
			return
		}
		if time.Since(began) > 3*time.Minute {
			t.Fatal(found)
		}
		time.Sleep(5 * time.Second)
	}
}

func randomText(length int) string {
	random := make([]byte, length)
	_, _ = rand.Read(random) // never fails
	return base64.RawURLEncoding.EncodeToString(random)[:length]
}

// live lets the processes work on sources whose content is the marker.
func live(t *testing.T, s *harness.Space, product *harness.Product, marker []byte) {
	t.Helper()
	set := func(round int) {
		for _, source := range []string{"configmap/c", "secret/s"} {
			s.Set(source, "raw", string(marker), "base64", base64.StdEncoding.EncodeToString(marker), "hex", hex.EncodeToString(marker),
				"inside", fmt.Sprintf("password=%s;round=%d", marker, round), "changes", fmt.Sprintf("%s%d", marker, round))
		}
	}
	set(0)
	for _, kind := range restamped {
		s.Create(workload(kind, "w", envFrom("configmap/c", "secret/s")))
	}
	s.Create(workload("Deployment", "files", "volumeMounts: [{name: v, mountPath: /v, subPath: raw}]\n", "volumes: [{name: v, secret: {secretName: s}}]\n"))
	s.Create(workload("Deployment", "missing", "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: typo}}}]\n"))
	users := []string{"deployment/w", "statefulset/w", "daemonset/w", "cronjob/w"}
	s.Settled(users...)
	set(1)
	s.Eventually("waiting for the rolls", stampedTruly(s, users, "configmap/c", "secret/s"))

	// Errors on every way.
	for _, process := range product.All() {
		process.Proxy.Add(proxy.Rule{Match: proxy.Matching("patch,get", "deployments,configmaps,secrets"), Before: proxy.FailTimes(6, 500, "InternalError", "made by the test")})
	}
	set(2)
	s.Kubectl("set", "image", "deployment/w", "app=registry.example/app:2")
	s.Eventually("waiting for the rolls", stampedTruly(s, users, "configmap/c", "secret/s"))
	for _, process := range product.All() {
		process.Proxy.Clear()
		process.Proxy.Cut(nil)
	}
	set(3)
	s.Eventually("waiting for the rolls", stampedTruly(s, users, "configmap/c", "secret/s"))

	// Requests that are none. They are no source, but could be anything.
	sent := []byte("SENT" + randomText(28))
	for _, body := range []string{string(sent), `{"kind":"AdmissionReview","request":{"uid":"` + string(sent) + `","object":`,
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","resource":{"group":"apps","version":"v1","resource":"deployments"},"operation":"CREATE","object":{"metadata":{"name":{"` + string(sent) + `":1}}}}}`} {
		wantNowhere(t, "answer to a bad request", post(t, product.Balancer.URL(), body), sent)
	}
	for _, webhook := range product.Webhooks {
		wantNowhere(t, "log of "+webhook.Name, []byte(webhook.Log()), sent)
	}

	// What is gone must be forgotten.
	s.Delete("secret/s")
	s.Set("configmap/c", "raw", "harmless")
	time.Sleep(time.Second)
	// The buffers of HTTP/2 and TLS keep the last frames of a connection as long
	// as it lives, in any Go program. What they hold is not what this is about;
	// the API server ends watches every few minutes, and here it ends connections.
	for _, process := range product.All() {
		process.Proxy.CutConnections()
	}
	for i := range 20 {
		s.Set(fmt.Sprintf("configmap/filler-%d", i), "k", strings.Repeat("filler ", 3000))
		s.Set(fmt.Sprintf("secret/filler-%d", i), "k", strings.Repeat("filler ", 3000))
	}
	time.Sleep(4 * time.Second) // watches are back, and idle
}

// stampedTruly tells what is not stamped as its sources are now.
func stampedTruly(s *harness.Space, workloads []string, sources ...string) func() error {
	return func() error {
		for _, workload := range workloads {
			for _, source := range sources {
				if got, want := s.Stamp(workload, source), s.Digest(source); got != want {
					return fmt.Errorf("%s is stamped %q for %s, want %q", workload, got, source, want)
				}
			}
		}
		return nil
	}
}

func post(t *testing.T, url, body string) []byte {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(run.Of(t).Authority.PEM)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	harness.Must(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	harness.Must(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	harness.Must(t, err)
	return answer
}

// dump is an answer of the API server as it is.
func dump(t *testing.T, path string) []byte {
	t.Helper()
	body, err := run.Of(t).Client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(context.Background())
	harness.Must(t, err)
	return body
}

// dumpWorkloads is every object of a namespace that could carry an annotation of
// ours, and the keys of what could be noted elsewhere.
func dumpWorkloads(t *testing.T, s *harness.Space) []byte {
	t.Helper()
	var all []byte
	for _, path := range []string{"apps/v1/%s/deployments", "apps/v1/%s/statefulsets", "apps/v1/%s/daemonsets", "apps/v1/%s/replicasets", "apps/v1/%s/controllerrevisions", "batch/v1/%s/cronjobs", "batch/v1/%s/jobs"} {
		all = append(all, dump(t, "/apis/"+fmt.Sprintf(path, "namespaces/"+s.Namespace))...)
	}
	all = append(all, dump(t, "/api/v1/namespaces/"+s.Namespace+"/pods")...)
	for _, path := range []string{"/api/v1/namespaces/" + s.Namespace, "/apis/coordination.k8s.io/v1/namespaces/configstamp/leases"} {
		all = append(all, dump(t, path)...)
	}
	if !json.Valid(dump(t, "/api/v1/namespaces/"+s.Namespace)) {
		t.Error("the API server does not answer in JSON: annotations would be looked through in another encoding")
	}
	return all
}
