package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
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

// ServeNoOp serves, behind the product's own TLS server, a webhook that decodes nothing
// and allows, until ctx ends.
func ServeNoOp(ctx context.Context, address, certFile, keyFile string) error {
	certificate, err := certs.FromFiles(certs.Files{CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listening for a webhook: %w", err)
	}
	go func() { _ = certificate.Run(ctx) }() // ends with ctx
	server := &admission.Server{Handler: answering(allowing), GetCertificate: certificate.GetCertificate}
	return server.Serve(ctx, listener)
}

// NoOp starts this program as a webhook that does nothing, and has the API server call
// it, as our own for warnings, for the ConfigMaps of a namespace. Stop it.
func (l *Lab) NoOp(ctx context.Context, namespace string) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("looking for this program: %w", err)
	}
	certificate, key, err := l.Authority.Pair(time.Now().Add(24 * time.Hour))
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.WriteFile(l.File("no-op.crt"), certificate, 0o600), os.WriteFile(l.File("no-op.key"), key, 0o600)); err != nil {
		return nil, fmt.Errorf("writing a serving certificate: %w", err)
	}
	process, err := Start("no-op", l.File("no-op.log"), program, []string{NoOpCommand, address, l.File("no-op.crt"), l.File("no-op.key")}, nil)
	if err != nil {
		return nil, err
	}
	return process, l.validate(ctx, namespace, "https://"+address+"/")
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
