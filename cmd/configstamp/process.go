package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/internal/keyring"
	"github.com/configstamp/configstamp/internal/namespace"
	"github.com/configstamp/configstamp/internal/source"
)

// process is what the webhook and the controller both stand on.
type process struct {
	name     string
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
	registry := newRegistry(name)
	config.Wrap(countRequests(registry))
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
		name:     name,
		spaces:   spaces,
		config:   config,
		client:   client,
		store:    store,
		keys:     keyring.New(client, o.namespace, o.keySecret, o.keyGrace, clock.RealClock{}),
		registry: registry,
		events:   events.NewBroadcaster(countEvents(&events.EventSinkImpl{Interface: client.EventsV1()}, registry)),
	}
	p.tellOfStores(o.providers)
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
