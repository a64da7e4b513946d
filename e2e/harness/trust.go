package harness

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trusted says why the API server would not trust what the webhooks serve, were
// it to call them by their Service.
func (r *Run) Trusted(ctx context.Context) error {
	configuration, err := r.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "configstamp", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading whom the API server trusts: %w", err)
	}
	at, err := url.Parse(r.Product.Balancer.URL())
	if err != nil {
		return fmt.Errorf("reading where the webhooks are: %w", err)
	}
	var errs []error
	for i := range configuration.Webhooks {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(configuration.Webhooks[i].ClientConfig.CABundle)
		connection, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: "configstamp." + OwnNamespace + ".svc"}}).DialContext(ctx, "tcp", at.Host)
		if err != nil {
			errs = append(errs, fmt.Errorf("webhook %s: %w", configuration.Webhooks[i].Name, err))
			continue
		}
		errs = append(errs, connection.Close())
	}
	return errors.Join(errs...)
}
