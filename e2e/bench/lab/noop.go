package lab

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/certs"
	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/internal/admission"
)

// NoOpCommand is the command of the program by which it serves as a webhook that does
// nothing, in a process of its own: ServeNoOp.
const NoOpCommand = "no-op"

// AnnotateCommand is the same for one that adds an annotation to Pods.
const AnnotateCommand = "annotate-pods"

// ServeNoOp serves, behind the product's own TLS server, a webhook that decodes nothing
// and allows, until ctx ends. One that annotates adds one annotation, another one each time,
// to a Pod, which must have annotations already.
func ServeNoOp(ctx context.Context, annotates bool, address, certFile, keyFile string) error {
	answer := allowing
	if annotates {
		var calls atomic.Int64
		answer = func(uid []byte) string {
			patch := fmt.Sprintf(`[{"op":"add","path":"/metadata/annotations/example.com~1floor","value":"%d"}]`, calls.Add(1))
			return fmt.Sprintf(reviewHead+`,"patchType":"JSONPatch","patch":%q}}`, uid, base64.StdEncoding.EncodeToString([]byte(patch)))
		}
	}
	certificate, err := certs.FromFiles(certs.Files{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listening for a webhook: %w", err)
	}
	go func() { _ = certificate.Run(ctx) }() // ends with ctx
	server := &admission.Server{Handler: answering(answer), GetCertificate: certificate.GetCertificate}
	return server.Serve(ctx, listener)
}

// NoOp starts this program as a webhook that does nothing, and has the API server call
// it, as our own for warnings, for the ConfigMaps of a namespace. Stop it.
func (l *Lab) NoOp(ctx context.Context, namespace string) (*Process, error) {
	process, address, err := l.another(NoOpCommand)
	if err != nil {
		return nil, err
	}
	return process, l.validate(ctx, namespace, "https://"+address+"/")
}

// AnnotatePods starts this program as a webhook that adds one annotation, has the API server
// call it for the Pods of a namespace, and waits until it does. Stop it.
func (l *Lab) AnnotatePods(ctx context.Context, namespace string) (*Process, error) {
	process, address, err := l.another(AnnotateCommand)
	if err != nil {
		return nil, err
	}
	rule := admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}
	if err := l.mutate(ctx, namespace, "https://"+address+"/", rule); err != nil {
		return process, err
	}
	return process, Until(ctx, "the API server to call the webhook of namespace "+namespace, time.Minute, func(ctx context.Context) error {
		pod, err := l.Client.CoreV1().Pods(namespace).Create(ctx, Workload{Namespace: namespace, Name: "probe"}.Pod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && pod.Annotations["example.com/floor"] == "" {
			err = errors.New("it was not called yet")
		}
		return err
	})
}

// another starts this program as a webhook, in a process of its own.
func (l *Lab) another(command string) (process *Process, address string, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, "", fmt.Errorf("looking for this program: %w", err)
	}
	certificate, key, err := l.Authority.Pair(time.Now().Add(24 * time.Hour))
	if err != nil {
		return nil, "", err
	}
	if address, err = freeAddress(); err != nil {
		return nil, "", err
	}
	certFile, keyFile := l.File(command+".crt"), l.File(command+".key")
	if err := errors.Join(os.WriteFile(certFile, certificate, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		return nil, "", fmt.Errorf("writing a serving certificate: %w", err)
	}
	process, err = Start(command, l.File(command+".log"), program, []string{command, address, certFile, keyFile}, nil)
	return process, address, err
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// validate copies the product's own configuration for warnings, for one namespace and
// another webhook, and waits until the API server heeds it.
func (l *Lab) validate(ctx context.Context, namespace, url string) error {
	all := l.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	ours, err := all.Get(ctx, harness.OwnNamespace, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading how the product's warnings are configured: %w", err)
	}
	copied := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "no-op"}}
	for _, one := range ours.Webhooks {
		one.Name = strings.Replace(one.Name, "configstamp.dev", "no-op.example.com", 1)
		one.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
		one.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: l.Authority.PEM}
		copied.Webhooks = append(copied.Webhooks, one)
	}
	if _, err := all.Create(ctx, copied, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("configuring the webhook that does nothing: %w", err)
	}
	return nil
}

// WarningsOf are those with which a write of a ConfigMap that stores nothing is answered.
func (l *Lab) WarningsOf(ctx context.Context, namespace, name, value string) ([]string, error) {
	heard := &heard{}
	config := rest.CopyConfig(l.Config)
	config.WarningHandler = heard
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	_, err = client.CoreV1().ConfigMaps(namespace).Update(ctx, NewConfigMap(namespace, name, value), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	return heard.texts, err
}

// heard are the warnings of one request.
type heard struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (h *heard) HandleWarningHeader(_ int, _, text string) { h.texts = append(h.texts, text) }
