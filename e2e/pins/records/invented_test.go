package records

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/harness"
)

// opted has a workload opt in and pin, alone.
const opted = `configstamp.dev/pin: "true"}, labels: {configstamp.dev/inject: enabled`

// Whoever reaches the webhook's port has nothing copied where nobody opted in, whatever a
// review says; where a workload did, by its name and uid alone.
func TestAPeer_HasNothingCopied(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.WaitServiceAccount()
	s.SetPolicy("namespace", map[string]string{"pin": "true"}) // else the policy lets us make none
	s.Set(source, "MESSAGE", "hello world")
	s.Create(manifest("Deployment", "web-app", "") + manifest("Deployment", "alone", opted))
	uid := func(name string) types.UID { return s.Get(name).GetUID() }
	for _, test := range []struct {
		what, name string
		uid        types.UID
		operation  admissionv1.Operation
		want       int
	}{
		{"a creation", "web-app", "", admissionv1.Create, 0},
		{"one that did not opt in", "web-app", uid(web), admissionv1.Update, 0},
		{"a uid that there is not", "alone", "invented", admissionv1.Update, 0},
		{"one that pins", "alone", uid("deployment/alone"), admissionv1.Update, 1},
	} {
		if outcome := ask(t, s, test.operation, test.name, test.uid); outcome != "stamped" {
			t.Fatalf("%s: it came to %q, and says nothing of snapshots", test.what, outcome)
		}
		if found := snapshots(t, s); len(found) != test.want {
			t.Fatalf("%s: there are %d snapshots, want %d", test.what, len(found), test.want)
		}
	}
}

// ask sends a review that changes a Deployment's template, and of which everything says that
// it pins; it gives the outcome.
func ask(t *testing.T, s *harness.Space, operation admissionv1.Operation, name string, uid types.UID) string {
	t.Helper()
	object := s.Get("deployment/" + name)
	object.SetUID(uid)
	object.SetLabels(map[string]string{"configstamp.dev/inject": "enabled"})
	object.SetAnnotations(map[string]string{"configstamp.dev/pin": "true"})
	old := asJSON(t, object.Object)
	body := asJSON(t, admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Operation: operation, Namespace: s.Namespace, Name: name,
			Kind:      metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
			Resource:  metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			OldObject: runtime.RawExtension{Raw: []byte(old)},
			Object:    runtime.RawExtension{Raw: []byte(strings.Replace(old, "registry.example/app:1", "registry.example/app:2", 1))},
		},
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(run.Authority.PEM)
	peer := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, run.Product.Balancer.URL(), strings.NewReader(body))
	harness.Must(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := peer.Do(request)
	harness.Must(t, err)
	defer response.Body.Close()
	var answer admissionv1.AdmissionReview
	harness.Must(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer.Response.AuditAnnotations["outcome"]
}

// A workload that opts in alone is not pinned when it is created, and is from its first roll on,
// where the Namespace lets us make snapshots.
func TestAlone_IsPinnedFromTheFirstRoll(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.WaitServiceAccount()
	s.SetPolicy("namespace", map[string]string{"pin": "true"})
	s.Set(source, "MESSAGE", "hello world")
	wantSaid(t, s.KubectlInput(manifest("Deployment", "web-app", opted), "create", "-f", "-"), "its next rollout pins it")
	before := s.Settled(web)
	if pinned, _ := pinOf(s, web); pinned != "" {
		t.Errorf("it is pinned to %s", pinned)
	}
	s.Edit(source, "MESSAGE", "hello KodeKloud")
	s.WantRolls(before, rolls{web: 1})
	wantPin(t, s, web)
}

// While no webhook answers, a thief of our token pins a workload to old content: together with a
// stamp, as it cannot do it otherwise. It is found out, and taken away.
func TestStolenToken_PinsAreComparedWithStamps(t *testing.T) {
	product := run.Exclusive(t)
	s := space(t)
	s.Set(source, "MESSAGE", "hello world")
	s.Create(manifest("Deployment", "web-app", ""))
	before := s.Settled(web)
	was := wantPin(t, s, web)
	s.Edit(source, "MESSAGE", "hello KodeKloud")
	s.WantRolls(before, rolls{web: 1})
	wantPin(t, s, web)
	harness.Must(t, product.Stop())
	thief := run.Stolen(t).AppsV1().Deployments(s.Namespace)
	stamp := s.Stamp(web, source)
	s.Patch(string(web), `{"metadata":{"managedFields":[{}]}}`) // else the policy refuses what the token owns
	for _, steals := range []map[string]string{
		{harness.StampKey(source): "v1:absent", "configstamp.dev/pins": fmt.Sprintf(`{%q:"%s startup,live"}`, source, was)},
		{harness.StampKey(source): stamp},
	} {
		_, err := thief.Patch(t.Context(), "web-app", types.MergePatchType, []byte(asJSON(t, map[string]any{
			"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": steals}}},
		})), metav1.PatchOptions{})
		harness.Must(t, err)
	}
	wantPinnedTo(t, s, was)
	harness.Must(t, product.Start(t.Context()))
	s.Eventually("waiting for the pin to go", func() error {
		if pinned, _ := pinOf(s, web); pinned != "" {
			return fmt.Errorf("it is pinned to %s", pinned)
		}
		return nil
	})
	if s.Record(web, source) != s.Digest(source) {
		t.Error("what is on record is not what the source holds")
	}
	s.Edit(source, "MESSAGE", "hello again")
	wantPin(t, s, web)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	harness.Must(t, err)
	return string(text)
}
