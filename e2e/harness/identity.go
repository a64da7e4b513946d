package harness

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// APIServerName is the common name of the client certificate by which the API server of a run
// says who it is, to webhooks that ask for one.
const APIServerName = "e2e-api-server"

// The API server says who it is to whatever webhook it calls; a cluster in production names its
// users by the host and port of a Service instead, as docs/security.md#client-certificates has it.
const (
	admissionConfiguration = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
  - name: MutatingAdmissionWebhook
    configuration: &webhooks {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %[1]s}
  - name: ValidatingAdmissionWebhook
    configuration: *webhooks
`
	webhookUsers = `apiVersion: v1
kind: Config
users:
  - name: "*"
    user: {client-certificate: %s, client-key: %s}
`
)

// ClientAuthority is the file of who signs the API server's client certificate.
func (r *Run) ClientAuthority() string { return filepath.Join(r.Dir, "clients.crt") }

// identityArgs are the arguments of the driver's "up" that give the API server a client
// certificate for webhooks.
func (r *Run) identityArgs() ([]string, error) {
	authority, err := NewAuthority()
	if err != nil {
		return nil, err
	}
	certificate, key, err := authority.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: APIServerName}, NotAfter: time.Now().Add(24 * time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, err
	}
	file := func(name string) string { return filepath.Join(r.Dir, name) }
	users, configuration := file("webhook-users.kubeconfig"), file("admission.yaml")
	var errs []error
	for name, text := range map[string][]byte{
		r.ClientAuthority(): authority.PEM, file("api-server.crt"): certificate, file("api-server.key"): key,
		users:         fmt.Appendf(nil, webhookUsers, file("api-server.crt"), file("api-server.key")),
		configuration: fmt.Appendf(nil, admissionConfiguration, users),
	} {
		errs = append(errs, os.WriteFile(name, text, 0o600))
	}
	return []string{"--apiserver-arg=admission-control-config-file=" + configuration}, errors.Join(errs...)
}
