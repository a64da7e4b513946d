package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/certs"
	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/eventqueue"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/revisions"
	"github.com/configstamp/configstamp/internal/source"
	"github.com/configstamp/configstamp/webhook"
)

type webhookOptions struct {
	common
	address          string
	freshnessTimeout time.Duration
	linger           time.Duration
}

func webhookCommand() *cobra.Command {
	var o webhookOptions
	command := &cobra.Command{
		Use:   "webhook",
		Short: "Serve admissions: stamp checksums of the referenced ConfigMaps and Secrets into pod templates",
		Args:  cobra.NoArgs,
		RunE:  run(&o.common, o.check, func(ctx context.Context) error { return runWebhook(ctx, &o) }),
	}
	flags := command.Flags()
	o.add(flags)
	flags.StringVar(&o.address, "address", ":8443", "address at which the API server calls the webhook")
	flags.DurationVar(&o.freshnessTimeout, "freshness-timeout", 250*time.Millisecond, "how long a request may wait for a check that the cache is up to date; re-admissions by configstamp: three quarters of the webhook's timeoutSeconds")
	flags.DurationVar(&o.linger, "shutdown-linger", 10*time.Second, "how long to serve after a signal to stop, so that the API server can notice; requests under way may take 15s more")
	describeEnvironment(command)
	return command
}

// drain is how long requests under way may take after --shutdown-linger. The chart's
// terminationGracePeriodSeconds has room for both.
const drain = 15 * time.Second

// The check of a re-admission of our own takes ownPatience at most, whatever the API server
// waits for us, and has ownParallel requests under way: with those of people they are as
// many as there are connections that client-go keeps (25).
const (
	ownPatience = 10 * time.Second
	ownParallel = 6
)

func (o *webhookOptions) check() error {
	errs := []error{o.common.check()}
	if !o.metricsTLS { // else it has been checked
		errs = append(errs, o.checkCertificate())
	}
	if o.freshnessTimeout <= 0 {
		errs = append(errs, fmt.Errorf("--freshness-timeout=%s: want more than 0s", o.freshnessTimeout))
	}
	return errors.Join(errs...)
}

func runWebhook(ctx context.Context, o *webhookOptions) error {
	p, err := newProcess(&o.common, "webhook")
	if err != nil {
		return err
	}
	certificate, err := o.certificate(p, false)
	if err != nil {
		return err
	}
	p.registry.MustRegister(certificate)
	handler, err := o.handler(p)
	if err != nil {
		return err
	}
	endpoint := handler.Endpoint()
	serves, healthy := http.NewServeMux(), endpoint.Healthy
	serves.Handle("/{$}", endpoint)
	if o.Pins {
		pods := pinning(p, handler).Endpoint()
		serves.Handle(pins.PodPath, pods)
		healthy = func(now time.Time) error { return errors.Join(endpoint.Healthy(now), pods.Healthy(now)) }
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.address)
	if err != nil {
		return fmt.Errorf("listening for admissions: %w; choose another --address", err)
	}
	clients, followClients := o.clients(ctx)
	server := &admission.Server{Handler: serves, GetCertificate: certificate.GetCertificate, MinVersion: o.minTLS(), Clients: clients, Linger: o.linger, Drain: drain, Refused: handler.Metrics.Refused}
	ready := func() error { return p.ableToAdmit(ctx, certificate) }

	// What the server needs outlives it: requests under way still read the
	// store. If any of it fails, the server stops.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, background := errgroup.WithContext(background)
	for _, run := range p.watch(background) {
		group.Go(run)
	}
	group.Go(func() error { certificate.Run(background); return nil })
	group.Go(func() error { followClients(background); return nil })
	group.Go(func() error { return p.serve(background, &o.serving, certificate, ready, healthy) })
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(background, cancel)

	klog.FromContext(ctx).Info("Serving admissions", "address", listener.Addr().String(), "version", version)
	untilAble(serving, func() bool { return certificate.Ready() && p.keys.Ring() != nil })
	err = server.Serve(serving, listener)
	stop()
	err = errors.Join(err, group.Wait())
	p.events.Finish(context.WithoutCancel(ctx), webhookTellsWithin)
	return err
}

// handler decides on admissions, and pins nothing.
func (o *webhookOptions) handler(p *process) (*webhook.Handler, error) {
	judged, err := o.Rules()
	if err != nil {
		return nil, err
	}
	kept, err := revisions.New(p.config)
	if err != nil {
		return nil, err
	}
	return &webhook.Handler{
		Kinds:        judged.Kinds,
		Policy:       judged.Policy,
		OwnNamespace: o.namespace,
		Serves:       o.mayServe,
		Dialects:     judged.Dialects,
		Namespaces:   p.spaces,
		Sources:      p.store,
		People:       source.NewChecker(p.store, source.CheckerOptions{Timeout: o.freshnessTimeout}),
		Own:          source.NewChecker(p.store, source.CheckerOptions{Timeout: ownPatience, Parallel: ownParallel}),
		Keys:         p.keys,
		Metrics:      webhook.NewMetrics(p.registry),
		Patience:     o.freshnessTimeout,
		Revisions:    kept,
		Report:       announce(p.events),
	}, nil
}

// pinning has the handler pin workloads, and gives what pins their Pods.
func pinning(p *process, handler *webhook.Handler) *pins.Pods {
	handler.Pins = &pins.Pins{Snapshots: p.archive, Revisions: handler.Revisions}
	return &pins.Pods{Archive: p.archive, Serves: handler.Serves, Metrics: pins.NewMetrics(p.registry, handler.Metrics.Refused), Report: handler.Report, Owners: handler.Revisions}
}

// ableToAdmit says what keeps the webhook from answering well, nil when nothing does.
func (p *process) ableToAdmit(ctx context.Context, certificate *certs.Source) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("shutting down")
	case !p.store.HasSynced():
		return errors.New("the checksums of ConfigMaps and Secrets are still being read")
	case !p.spaces.HasSynced():
		return errors.New("the policies of Namespaces are still being read")
	case p.keys.Ring() == nil:
		return errors.New("there is no digest key yet")
	case !certificate.Ready():
		return errors.New("there is no serving certificate yet")
	}
	return nil
}

// ablePatience is less than the timeoutSeconds of our webhooks, so that they get
// an answer, be it that nothing can be done.
const ablePatience = 2 * time.Second

// untilAble waits until a process that has just started has what no answer can do
// without. Its address may be asked before it is ready: the one before it was
// killed, and the cluster does not know yet. What connects waits in the
// listener's queue; a handshake without a certificate would fail it at once.
func untilAble(ctx context.Context, able func() bool) {
	ctx, cancel := context.WithTimeout(ctx, ablePatience)
	defer cancel()
	for !able() && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// announce puts what the webhook has to say about a workload into an event.
func announce(recorder *eventqueue.Queue) pins.Reporter {
	return func(workload corev1.ObjectReference, why reason.Reason, sentence string) {
		recorder.Eventf(&workload, nil, why.EventType(), why.Event(), "Admit", "%s", sentence)
	}
}
