package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Edits are answered from the start, by TLS alone: who asks before the caches are full is not
// warned, and not kept waiting either.
func TestImpactWarningsAreServed(t *testing.T) {
	certificate, trust := certificateFiles(t)
	served := start(t, 2, append([]string{"controller", "--metrics-address=127.0.0.1:0", "--impact-address=127.0.0.1:0"}, certificate...)...)
	address := served["impact warnings"]
	for path, want := range map[string]int{"/impact": http.StatusMethodNotAllowed, "/": http.StatusNotFound, "/metrics": http.StatusNotFound, "/readyz": http.StatusNotFound} {
		if got, _ := get(t, trust, "https://"+address+path); got != want {
			t.Errorf("%s answers with %d, want %d", path, got, want)
		}
	}
	wantTLS(t, trust, address, tls.VersionTLS13)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}}}
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"7","namespace":"shop","operation":"DELETE","resource":{"version":"v1","resource":"configmaps"},"oldObject":{"metadata":{"name":"web"},"data":{"a":"1"}}}}`
	response, err := client.Post("https://"+address+"/impact?timeout=30s", "application/json", strings.NewReader(review))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if want := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"7","allowed":true}}`; err != nil || string(answer) != want {
		t.Errorf("%s, %v; want %s", answer, err, want)
	}
	if _, text := get(t, trust, "http://"+served["metrics and probes"]+"/metrics"); !strings.Contains(text, `configstamp_impact_reviews_total{result="not-ready"} 1`) {
		t.Error("it was not counted")
	}
}
