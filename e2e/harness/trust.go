package harness

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trusted says why the API server would not trust what our processes serve, were
// it to call them by their Service.
func (r *Run) Trusted(ctx context.Context) error {
	all := r.Client.AdmissionregistrationV1()
	stamps, err := all.MutatingWebhookConfigurations().Get(ctx, "configstamp", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading whom the API server trusts: %w", err)
	}
	warns, err := all.ValidatingWebhookConfigurations().Get(ctx, "configstamp", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading whom the API server trusts: %w", err)
	}
	var errs []error
	for _, webhook := range stamps.Webhooks {
		errs = append(errs, trusted(ctx, r.Product.Balancer, webhook.Name, webhook.ClientConfig.CABundle))
	}
	for _, webhook := range warns.Webhooks {
		errs = append(errs, trusted(ctx, r.Product.Impact, webhook.Name, webhook.ClientConfig.CABundle))
	}
	return errors.Join(errs...)
}

func trusted(ctx context.Context, served *Balancer, webhook string, caBundle []byte) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(caBundle)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: "configstamp." + OwnNamespace + ".svc"}}
	connection, err := dialer.DialContext(ctx, "tcp", served.listener.Addr().String())
	if err != nil {
		return fmt.Errorf("webhook %s: %w", webhook, err)
	}
	return connection.Close()
}
