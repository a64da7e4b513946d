package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/cache/objects"
)

// checkPatience is how long check asks until every webhook has answered. checkWithin bounds
// one question, and checkEvery is the time between two: a Service's address can refuse for a
// moment after its Pods are ready.
const (
	checkPatience = 30 * time.Second
	checkWithin   = 5 * time.Second
	checkEvery    = time.Second
)

type checkOptions struct {
	kubeconfig string
	name       string
	server     string
	refused    bool
}

func checkCommand() *cobra.Command {
	var o checkOptions
	command := &cobra.Command{
		Use:   "check",
		Short: "Ask the webhooks as the API server does, at the addresses and with the authorities of their configuration",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := fromEnvironment(command); err != nil {
				return err
			}
			return o.check(command.Context(), command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; empty: the Pod's service account")
	flags.StringVar(&o.name, "name", "configstamp", "name of its webhook configurations; needs the right to get them")
	flags.StringVar(&o.server, "server", "", "host of its Service, without a port; empty: by DNS")
	flags.BoolVar(&o.refused, "client-certificates", false, "the webhooks have --client-ca-file: check that they refuse this command")
	describeEnvironment(command)
	return command
}

// check asks every webhook until it answers, and prints a line about each.
func (o *checkOptions) check(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	config, err := clusterConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	configurations, err := objects.New[*admissionregistrationv1.MutatingWebhookConfiguration](config, admissionregistrationv1.SchemeGroupVersion, admissionregistrationv1.AddToScheme, "mutatingwebhookconfigurations", "")
	if err != nil {
		return err
	}
	configuration, err := configurations.Get(ctx, o.name)
	if err != nil {
		return fmt.Errorf("reading MutatingWebhookConfiguration %s: %w", o.name, err)
	}
	if len(configuration.Webhooks) == 0 {
		return fmt.Errorf("MutatingWebhookConfiguration %s has no webhooks: nothing is ever stamped", o.name)
	}
	warnings, err := o.warnings(ctx, config)
	if err != nil {
		return err
	}
	for _, webhook := range slices.Concat(configuration.Webhooks, warnings) {
		until, err := o.askUntil(ctx, &webhook)
		if err != nil {
			return fmt.Errorf("asking webhook %s: %w", webhook.Name, err)
		}
		does := "answers"
		if o.refused {
			does = "refuses whoever has no client certificate, so whether it answers the API server is not asked here"
		}
		if _, err := fmt.Fprintf(out, "%s %s; its certificate is trusted, and valid until %s\n", webhook.Name, does, until.Format(time.DateTime)); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}

// warnings are the webhooks that are asked what an edit rolls out, where there are some.
// An entry of theirs reads as one that mutates.
func (o *checkOptions) warnings(ctx context.Context, config *rest.Config) ([]admissionregistrationv1.MutatingWebhook, error) {
	configurations, err := objects.New[*admissionregistrationv1.ValidatingWebhookConfiguration](config, admissionregistrationv1.SchemeGroupVersion, admissionregistrationv1.AddToScheme, "validatingwebhookconfigurations", "")
	if err != nil {
		return nil, err
	}
	configuration, err := configurations.Get(ctx, o.name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ValidatingWebhookConfiguration %s: %w", o.name, err)
	}
	var webhooks []admissionregistrationv1.MutatingWebhook
	for _, webhook := range configuration.Webhooks {
		webhooks = append(webhooks, admissionregistrationv1.MutatingWebhook{Name: webhook.Name, ClientConfig: webhook.ClientConfig})
	}
	return webhooks, nil
}

// askUntil asks again and again until there is an answer, or no more time.
func (o *checkOptions) askUntil(ctx context.Context, webhook *admissionregistrationv1.MutatingWebhook) (time.Time, error) {
	for {
		until, err := o.ask(ctx, webhook)
		if err == nil {
			return until, nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, err
		case <-time.After(checkEvery):
		}
	}
}

// ask has a webhook review a Pod of a namespace that nothing is in, and returns
// how long its certificate is valid.
func (o *checkOptions) ask(ctx context.Context, webhook *admissionregistrationv1.MutatingWebhook) (time.Time, error) {
	service := webhook.ClientConfig.Service
	if service == nil || service.Path == nil || service.Port == nil {
		return time.Time{}, errors.New("it is not called by a Service")
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(webhook.ClientConfig.CABundle) {
		return time.Time{}, errors.New("there is no caBundle yet, so the API server does not trust its certificate")
	}
	name := service.Name + "." + service.Namespace + ".svc"
	server := net.JoinHostPort(cmp.Or(o.server, name), fmt.Sprint(*service.Port))
	trust := &tls.Config{RootCAs: authorities, ServerName: name, MinVersion: tls.VersionTLS12}
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	if o.refused {
		return refuses(ctx, server, trust)
	}
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       uuid.NewUUID(),
			Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: service.Namespace,
			Operation: admissionv1.Create,
			Object:    runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"check"},"spec":{"containers":[{"name":"check"}]}}`)},
		},
	}
	body, err := json.Marshal(review)
	if err != nil {
		return time.Time{}, fmt.Errorf("writing an AdmissionReview: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+server+*service.Path, bytes.NewReader(body))
	if err != nil {
		return time.Time{}, fmt.Errorf("asking %s: %w", server, err)
	}
	request.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{TLSClientConfig: trust}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = response.Body.Close() }()
	return response.TLS.PeerCertificates[0].NotAfter, answered(response, review.Request)
}

// refuses reports why a server does not end a handshake without a client certificate by an
// alert, and how long its own certificate is valid.
func refuses(ctx context.Context, server string, trust *tls.Config) (until time.Time, err error) {
	trust = trust.Clone()
	trust.VerifyConnection = func(state tls.ConnectionState) error {
		until = state.PeerCertificates[0].NotAfter
		return nil
	}
	connection, err := (&tls.Dialer{Config: trust}).DialContext(ctx, "tcp", server)
	if err == nil { // in TLS 1.3 the alert comes after the handshake
		defer func() { _ = connection.Close() }()
		if deadline, ok := ctx.Deadline(); ok {
			_ = connection.SetDeadline(deadline)
		}
		if _, err = fmt.Fprint(connection, "GET / HTTP/1.1\r\nHost: configstamp\r\n\r\n"); err == nil {
			_, err = connection.Read(make([]byte, 1))
		}
	}
	if alert := new(net.OpError); errors.As(err, &alert) && alert.Op == "remote error" {
		return until, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return time.Time{}, errors.New("it answers whoever has no client certificate")
}

// answered reports why an answer is not that of a webhook that works.
func answered(response *http.Response, request *admissionv1.AdmissionRequest) error {
	const limit = 1 << 20
	body, err := io.ReadAll(io.LimitReader(response.Body, limit))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil || review.Response == nil || review.Response.UID != request.UID {
		return fmt.Errorf("HTTP status %s, and no AdmissionReview that answers ours: something else serves at this address", response.Status)
	}
	if !review.Response.Allowed {
		return errors.New("it denies, which configstamp never does: something else serves at this address")
	}
	return nil
}
