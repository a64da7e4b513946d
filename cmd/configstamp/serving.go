package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/certs"
	"github.com/configstamp/configstamp/internal/admission"
)

// serving is where a process tells how it is, and the certificate it serves with.
type serving struct {
	metricsAddress string
	metricsTLS     bool
	healthAddress  string

	tlsMinVersion string
	certFile      string
	keyFile       string
	selfManaged   bool

	clientCAFile string
	clientNames  []string
}

func (s *serving) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.metricsAddress, "metrics-address", ":8080", "address of /metrics, and of /healthz and /readyz unless --health-address is given")
	flags.BoolVar(&s.metricsTLS, "metrics-tls", false, "serve /metrics with TLS and the serving certificate; needs --health-address")
	flags.StringVar(&s.healthAddress, "health-address", "", "separate address of /healthz and /readyz, without TLS, if the kubelet cannot reach --metrics-address")
	flags.StringVar(&s.tlsMinVersion, "tls-min-version", "1.3", "oldest TLS version for callers: 1.2 or 1.3")
	flags.StringVar(&s.certFile, "tls-cert-file", "", "serving certificate (PEM), such as cert-manager's tls.crt; reloaded when it changes")
	flags.StringVar(&s.keyFile, "tls-key-file", "", "its private key (PEM)")
	flags.BoolVar(&s.selfManaged, "self-managed-certificate", false, "sign the certificate, and maintain the caBundle of the webhook configuration, without cert-manager")
	flags.StringVar(&s.clientCAFile, "client-ca-file", "", "certificates (PEM) of the authorities that sign the API server's client certificate: callers without one are refused; reloaded when it changes; empty: all callers are answered")
	flags.StringSliceVar(&s.clientNames, "client-names", nil, "common names or DNS names; the client certificate must have one of them; needed with --client-ca-file")
}

func (s *serving) check() error {
	var errs []error
	if s.metricsTLS {
		if s.healthAddress == "" {
			errs = append(errs, errors.New("--metrics-tls: give --health-address too, as in :8082: the kubelet's probes would not trust the certificate"))
		}
		if err := s.checkCertificate(); err != nil {
			errs = append(errs, fmt.Errorf("--metrics-tls: %w", err))
		}
	}
	if s.tlsMinVersion != "1.2" && s.tlsMinVersion != "1.3" {
		errs = append(errs, fmt.Errorf("--tls-min-version=%s: want 1.2 or 1.3", s.tlsMinVersion))
	}
	if (s.clientCAFile == "") != (len(s.clientNames) == 0) || slices.Contains(s.clientNames, "") {
		errs = append(errs, errors.New("give --client-ca-file and --client-names, or neither: other clients may have a certificate of the same authority"))
	}
	return errors.Join(errs...)
}

// minTLS is the oldest version of TLS that is spoken.
func (s *serving) minTLS() uint16 {
	if s.tlsMinVersion == "1.2" {
		return tls.VersionTLS12
	}
	return tls.VersionTLS13
}

// checkCertificate checks that it is known which certificate to serve with.
func (s *serving) checkCertificate() error {
	if s.selfManaged == (s.certFile != "" && s.keyFile != "") {
		return errors.New("give either --tls-cert-file and --tls-key-file, or --self-managed-certificate")
	}
	return nil
}

// certificate returns what the process serves with. validating is whether a ValidatingWebhookConfiguration
// has the API server call it, and not a MutatingWebhookConfiguration.
func (o *common) certificate(p *process, validating bool) (*certs.Source, error) {
	if o.selfManaged {
		return certs.FromAuthority(certs.Authority{RESTConfig: p.config, Namespace: o.namespace, Service: o.name,
			Configuration: certs.Configuration{Name: o.name, Validating: validating}, SecretName: o.name + "-authority"})
	}
	return certs.FromFiles(o.certFile, o.keyFile), nil
}

// clients are those who may call where the API server calls us, and what follows their
// authorities until its context ends.
func (s *serving) clients(ctx context.Context) (clients *admission.Clients, follow func(context.Context)) {
	if s.clientCAFile == "" {
		return nil, func(context.Context) {}
	}
	authorities := certs.AuthoritiesFrom(ctx, s.clientCAFile)
	return &admission.Clients{Authorities: authorities.Pool, Names: s.clientNames}, authorities.Run
}

// serve serves metrics and probes until ctx ends.
// certificate is for --metrics-tls, ready says why the process is not ready, or
// nothing, healthy why it should be started anew.
func (p *process) serve(ctx context.Context, s *serving, certificate *certs.Source, ready func() error, healthy func(time.Time) error) error {
	p.tellReady(ready)
	metrics := http.NewServeMux()
	metrics.Handle("GET /metrics", promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{Registry: p.registry}))
	doors := []*door{{what: "metrics and probes", flag: "metrics-address", address: s.metricsAddress, handler: metrics}}
	if s.metricsTLS {
		doors[0].tls = &tls.Config{MinVersion: s.minTLS(), GetCertificate: certificate.GetCertificate}
	}
	probes := metrics
	if s.healthAddress != "" {
		probes = http.NewServeMux()
		doors[0].what = "metrics"
		doors = append(doors, &door{what: "probes", flag: "health-address", address: s.healthAddress, handler: probes})
	}
	probes.HandleFunc("GET /healthz", p.health(healthy))
	probes.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	for _, door := range doors {
		if err := door.open(ctx); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, door := range doors {
		group.Go(func() error { return door.serve(ctx) })
	}
	return group.Wait()
}

// health answers whether the process should be started anew: only when that helps.
func (p *process) health(healthy func(time.Time) error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now()
		if err := errors.Join(p.silent(now), healthy(now)); err != nil {
			klog.Background().Info("Unhealthy: something hangs, and the process should be restarted", "reason", err.Error())
			http.Error(w, "unhealthy: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}
}

// answerTimeout is how long an answer may take.
const answerTimeout = 30 * time.Second

// door is one address, and what is behind it.
type door struct {
	what, flag, address string
	handler             http.Handler
	tls                 *tls.Config // nil: plain HTTP
	listener            net.Listener
}

func (d *door) open(ctx context.Context) (err error) {
	if d.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", d.address); err != nil {
		return fmt.Errorf("listening for %s: %w; choose another --%s", d.what, err, d.flag)
	}
	klog.FromContext(ctx).Info("Serving "+d.what, "address", d.listener.Addr().String(), "tls", d.tls != nil)
	return nil
}

func (d *door) serve(ctx context.Context) (err error) {
	server := &http.Server{
		Handler: d.handler, TLSConfig: d.tls, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: answerTimeout,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(klog.FromContext(ctx)), slog.LevelDebug), // failed handshakes, mostly
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody here needs grace
	defer stop()
	if d.tls != nil {
		err = server.ServeTLS(d.listener, "", "")
	} else {
		err = server.Serve(d.listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s on %s: %w", d.what, d.address, err)
	}
	return nil
}
