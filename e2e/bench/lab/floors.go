package lab

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Floor is a mutating webhook that does as little as a webhook can. It is what
// others are compared with. Close it.
type Floor struct {
	listener net.Listener
	server   *http.Server
	calls    atomic.Int64
}

// AllowingFloor decodes nothing and allows; the request's uid is cut out of the bytes.
func (l *Lab) AllowingFloor() (*Floor, error) {
	return l.floor(func(uid []byte, _ int64) string { return fmt.Sprintf(reviewHead+`}}`, uid) })
}

// AnnotatingFloor adds one annotation, another one each time, to the pod
// template, which must have annotations already.
func (l *Lab) AnnotatingFloor() (*Floor, error) {
	return l.floor(func(uid []byte, call int64) string {
		patch := fmt.Sprintf(`[{"op":"add","path":"/spec/template/metadata/annotations/example.com~1floor","value":"%d"}]`, call)
		return fmt.Sprintf(reviewHead+`,"patchType":"JSONPatch","patch":%q}}`, uid, base64.StdEncoding.EncodeToString([]byte(patch)))
	})
}

const reviewHead = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"%s","allowed":true`

func (l *Lab) floor(answer func(uid []byte, call int64) string) (*Floor, error) {
	pair, err := l.Authority.TLS()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for a webhook: %w", err)
	}
	f := &Floor{listener: listener}
	f.server = &http.Server{
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
		Handler:           answering(func(uid []byte) string { return answer(uid, f.calls.Add(1)) }),
	}
	go func() { _ = f.server.ServeTLS(listener, "", "") }() // ends with Close
	return f, nil
}

// answering is a webhook that decodes nothing; answer makes its answer.
func answering(answer func(uid []byte) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		uid, ok := requestUID(body)
		if err != nil || !ok {
			http.Error(w, "this is no admission review", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer(uid)) // whoever does not listen has hung up
	})
}

// requestUID cuts the first uid out of an AdmissionReview, which is the request's.
func requestUID(body []byte) ([]byte, bool) {
	_, rest, found := bytes.Cut(body, []byte(`"uid":"`))
	uid, _, ended := bytes.Cut(rest, []byte(`"`))
	return uid, found && ended
}

// Calls is how often the webhook was called.
func (f *Floor) Calls() int64 { return f.calls.Load() }

// Close stops the webhook.
func (f *Floor) Close() { _ = f.server.Close() }

// Serve has the API server call the webhook for the Deployments of a namespace,
// and waits until it does.
func (l *Lab) Serve(ctx context.Context, f *Floor, namespace string) error {
	probe := Workload{Namespace: namespace, Name: "probe"}.Deployment()
	if err := l.mutate(ctx, namespace, "https://"+f.listener.Addr().String()+"/"); err != nil {
		return err
	}
	return Until(ctx, "the API server to call the webhook of namespace "+namespace, time.Minute, func(ctx context.Context) error {
		_, err := l.Client.AppsV1().Deployments(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if f.Calls() == 0 {
			return errors.New("it was not called yet")
		}
		return nil
	})
}

// mutate configures a webhook for the Deployments of a namespace.
func (l *Lab) mutate(ctx context.Context, namespace, url string) error {
	fail, none, seconds := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, int32(10)
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "floor-" + namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:              "floor.example.com",
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: l.Authority.PEM},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
			FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	_, err := l.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, configuration, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("configuring the webhook of namespace %s: %w", namespace, err)
	}
	return nil
}
