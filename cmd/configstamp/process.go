package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/keyring"
	"github.com/configstamp/configstamp/internal/namespace"
	"github.com/configstamp/configstamp/internal/source"
)

// process is what the webhook and the controller both stand on.
type process struct {
	config   *rest.Config
	client   kubernetes.Interface
	store    *source.Store
	spaces   *namespace.Store
	keys     *keyring.Keyring
	registry *prometheus.Registry
	events   events.EventBroadcaster
}

func newProcess(o *common, name string) (*process, error) {
	config, err := clusterConfig(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // our own bounds are closer to the matter
	// A decompressor keeps the last 32 KiB that went through it, in plain, and is
	// kept for the next response: content would stay in memory long after.
	config.DisableCompression = true
	config.UserAgent = "configstamp-" + name + "/" + version
	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	following := source.Options{Namespaces: o.namespaces}
	if o.providers {
		following.Classes = client.Discovery()
	}
	store, err := source.NewStore(config, following)
	if err != nil {
		return nil, err
	}
	spaces, err := namespace.NewStore(config, o.namespaces)
	if err != nil {
		return nil, err
	}
	p := &process{
		spaces:   spaces,
		config:   config,
		client:   client,
		store:    store,
		keys:     keyring.New(client, o.namespace, o.keySecret, o.keyGrace, clock.RealClock{}),
		registry: prometheus.NewRegistry(),
		events:   events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}),
	}
	p.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "configstamp_info",
			Help:        "1, with the version of this process.",
			ConstLabels: prometheus.Labels{"version": version, "process": name},
		}, func() float64 { return 1 }))
	p.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "configstamp_sources_last_progress_timestamp_seconds",
		Help: "When the most silent of the watches of ConfigMaps and Secrets last told anything, in seconds since 1970.",
	}, func() float64 { return max(0, float64(store.LastProgress().Unix())) }))
	for _, kind := range checksum.Kinds() {
		if kind == checksum.SecretProviderClass && !o.providers {
			continue
		}
		p.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "configstamp_sources",
			Help:        "Sources whose checksums are held.",
			ConstLabels: prometheus.Labels{"kind": string(kind)},
		}, func() float64 { return float64(store.Counts()[kind]) }))
	}
	return p, nil
}

func clusterConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("reaching the cluster as a Pod inside it: %w; outside of one give --kubeconfig", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading --kubeconfig=%s: %w", kubeconfig, err)
	}
	return config, nil
}

func (p *process) recorder() events.EventRecorder {
	return p.events.NewRecorder(scheme.Scheme, "configstamp")
}

// watch keeps the store, the keys and the events going until ctx ends.
func (p *process) watch(ctx context.Context) []func() error {
	return []func() error{
		func() error { return p.store.Run(ctx) },
		func() error { return p.spaces.Run(ctx) },
		func() error { return p.keys.Run(ctx) },
		func() error {
			if err := p.events.StartRecordingToSinkWithContext(ctx); err != nil {
				return fmt.Errorf("starting to record events: %w", err)
			}
			<-ctx.Done()
			p.events.Shutdown()
			return nil
		},
	}
}

// serveMetrics serves /metrics, /healthz and /readyz until ctx ends. ready says
// why the process is not ready, or nothing.
func (p *process) serveMetrics(ctx context.Context, address string, ready func() error) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{Registry: p.registry}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening for metrics and probes: %w; choose another --metrics-address", err)
	}
	klog.FromContext(ctx).Info("Serving metrics and probes", "address", listener.Addr().String())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // probes need no grace
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics and probes on %s: %w", address, err)
	}
	return nil
}
