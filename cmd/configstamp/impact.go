package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/certs"
	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/warning"
)

// impactOptions are those of the warnings to who edits a ConfigMap or a Secret.
type impactOptions struct {
	address string
	kinds   []string
}

func (o *impactOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.address, "impact-address", "", "address at which the API server asks for impact warnings, such as :8444; empty: none")
	flags.StringSliceVar(&o.kinds, "impact-kinds", []string{"configmaps"}, "sources whose edits get warnings: configmaps, secrets; the ValidatingWebhookConfiguration must match")
}

func (o *impactOptions) on() bool { return o.address != "" }

func (o *impactOptions) check(s *serving) error {
	for _, kind := range o.kinds {
		if kind != "configmaps" && kind != "secrets" {
			return fmt.Errorf("--impact-kinds=%s: want configmaps, secrets, or both", kind)
		}
	}
	if !o.on() || s.metricsTLS { // then the certificate has been checked
		return nil
	}
	if err := s.checkCertificate(); err != nil {
		return fmt.Errorf("--impact-address: %w", err)
	}
	return nil
}

// serverCertificate is that of what the controller serves, nil when nothing is served by TLS.
// One that the API server does not call serves metrics alone, with a certificate of the
// webhook's authority.
func (o *controllerOptions) serverCertificate(p *process) (certificate *certs.Source, err error) {
	if !o.impact.on() && !o.metricsTLS {
		return nil, nil
	}
	if certificate, err = o.certificate(p, o.impact.on()); err == nil {
		p.registry.MustRegister(certificate)
	}
	return certificate, err
}

// impactDrain is how long reviews under way may take when the process ends: the API server
// waits no longer for them.
const impactDrain = time.Second

// open listens for edits, if that is asked for, and returns what serves them.
func (o *impactOptions) open(ctx context.Context, p *process, foresees warning.Foreseer, certificate *certs.Source, common *common) (serve func(context.Context) error, err error) {
	if !o.on() {
		return func(context.Context) error { return nil }, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.address)
	if err != nil {
		return nil, fmt.Errorf("listening for edits: %w; choose another --impact-address", err)
	}
	klog.FromContext(ctx).Info("Serving impact warnings", "address", listener.Addr().String())
	mux := http.NewServeMux()
	handler := warning.New(foresees, warning.NewMetrics(p.registry), warning.Scope{Resources: o.kinds, Serves: common.mayServe})
	mux.Handle(warning.Path, handler)
	clients, follow := common.clients(ctx)
	server := &admission.Server{Handler: mux, GetCertificate: certificate.GetCertificate, MinVersion: common.minTLS(), Clients: clients, Drain: impactDrain, Refused: handler.Refused}
	return func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		var following sync.WaitGroup
		following.Go(func() { follow(ctx) })
		defer following.Wait()
		defer stop()
		return server.Serve(ctx, listener)
	}, nil
}
