// Command localrequest sends one AdmissionReview through the real webhook server, by TLS
// and without any cluster, and prints for people what comes of it:
//
//	go run ./e2e/localrequest review.json objects.yaml
//
// Start reading at run. cluster.go stands for the API server.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/workload"
	"github.com/configstamp/configstamp/webhook"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: localrequest <AdmissionReview, JSON> <Namespace, ConfigMaps and Secrets that there are, YAML>")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "localrequest:", err)
		os.Exit(1)
	}
}

// run reads a review and the objects of a cluster from files, and prints the answer.
func run(ctx context.Context, out io.Writer, reviewFile, objectsFile string) error {
	body, err := os.ReadFile(reviewFile)
	if err != nil {
		return err
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return fmt.Errorf("reading %s: %w", reviewFile, err)
	}
	if review.Request == nil {
		return fmt.Errorf("reading %s: it is not an AdmissionReview with a request", reviewFile)
	}
	held, err := read(objectsFile)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	answer, err := ask(klog.NewContext(ctx, logr.Discard()), body, &webhook.Handler{
		Kinds: workload.Builtin(), Policy: checksum.DefaultPolicy(),
		Namespaces: held, Sources: held, People: held, Own: held, Keys: held, Metrics: webhook.NewMetrics(registry),
	})
	if err != nil {
		return err
	}
	outcome, err := outcomeIn(registry)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %s %s/%s\n", review.Request.Operation, review.Request.Kind.Kind, review.Request.Namespace, review.Request.Name)
	return show(out, outcome, answer)
}

// ask serves with a certificate of its own, and sends a review there.
func ask(ctx context.Context, body []byte, handler http.Handler) (*admissionv1.AdmissionResponse, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	server := admission.Server{Handler: handler, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(certificate)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}}
	response, err := client.Post("https://"+listener.Addr().String()+"/", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("sending the review: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	stop()
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &review); err != nil || review.Response == nil {
		return nil, fmt.Errorf("HTTP status %s: %s", response.Status, text)
	}
	return review.Response, <-served
}

// outcomeIn is how the webhook counts the one admission that it has answered.
func outcomeIn(registry *prometheus.Registry) (string, error) {
	families, err := registry.Gather()
	if err != nil {
		return "", fmt.Errorf("reading the metrics: %w", err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if outcome := labels["outcome"]; outcome != "" && metric.GetCounter().GetValue() > 0 {
				if reason := labels["reason"]; reason != "" {
					outcome += " (" + reason + ")"
				}
				return outcome, nil
			}
		}
	}
	return "", errors.New("the webhook has counted no admission")
}

// show prints an answer.
func show(out io.Writer, outcome string, answer *admissionv1.AdmissionResponse) error {
	fmt.Fprintf(out, "allowed: %t\noutcome: %s\n", answer.Allowed, outcome)
	var patch []jsonpatch.Operation
	if len(answer.Patch) > 0 {
		if err := json.Unmarshal(answer.Patch, &patch); err != nil {
			return fmt.Errorf("reading the patch: %w", err)
		}
	}
	fmt.Fprintf(out, "patch: %d operations\n", len(patch))
	for _, operation := range patch {
		if many, ok := operation.Value.(map[string]any); ok {
			fmt.Fprintf(out, "  %s %s\n", operation.Operation, operation.Path)
			for _, key := range slices.Sorted(maps.Keys(many)) {
				fmt.Fprintf(out, "    %s: %v\n", key, many[key])
			}
			continue
		}
		fmt.Fprintf(out, "  %s %s: %v\n", operation.Operation, operation.Path, operation.Value)
	}
	fmt.Fprintf(out, "warnings: %d\n", len(answer.Warnings))
	for _, warning := range answer.Warnings {
		fmt.Fprintf(out, "  %s\n", warning)
	}
	return nil
}
