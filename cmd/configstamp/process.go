package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/internal/cache/discovery"
	"github.com/configstamp/configstamp/internal/cache/namespace"
	"github.com/configstamp/configstamp/internal/cache/objects"
	"github.com/configstamp/configstamp/internal/eventqueue"
	"github.com/configstamp/configstamp/internal/keyring"
	"github.com/configstamp/configstamp/internal/snapshot/archive"
	"github.com/configstamp/configstamp/internal/source"
)

// process is what the webhook and the controller both stand on.
type process struct {
	name     string
	config   *rest.Config
	served   discovery.Client
	store    *source.Store
	spaces   *namespace.Store
	keys     *keyring.Keyring
	archive  *archive.Archive // nil: the process does not pin
	registry *prometheus.Registry
	started  time.Time
	signs    map[string]func() time.Time // when the watches of what last showed life
	events   *eventqueue.Queue
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
	config.WarningHandlerWithContext = rest.NoWarnings{} // client-go would log them: they are somebody's words about what we write
	config.UserAgent = "configstamp-" + name + "/" + version
	registry := newRegistry(name)
	config.Wrap(countRequests(registry))
	served, err := discovery.NewClient(config)
	if err != nil {
		return nil, err
	}
	secrets, err := objects.New[*corev1.Secret](config, corev1.SchemeGroupVersion, corev1.AddToScheme, "secrets", o.namespace)
	if err != nil {
		return nil, err
	}
	events, err := objects.New[*eventsv1.Event](config, eventsv1.SchemeGroupVersion, eventsv1.AddToScheme, "events", o.namespace)
	if err != nil {
		return nil, err
	}
	following := source.Options{Namespaces: o.Namespaces, ConfigMapsAlone: o.ConfigMapsAlone()}
	if o.SecretProviderClasses {
		following.Classes = served
	}
	store, err := source.NewStore(config, following)
	if err != nil {
		return nil, err
	}
	spaces, err := namespace.NewStore(config, o.Namespaces, o.OptIn)
	if err != nil {
		return nil, err
	}
	p := &process{
		name:     name,
		spaces:   spaces,
		config:   config,
		served:   served,
		store:    store,
		keys:     keyring.New(secrets, o.namespace, o.name+"-key", o.keyGrace, clock.RealClock{}),
		registry: registry,
		started:  time.Now(),
		signs:    map[string]func() time.Time{"sources": store.LastSign, "namespaces": spaces.LastSign},
		events:   eventqueue.New("configstamp", identify(secrets.REST, create(events))),
	}
	p.tellOfStores(o.SecretProviderClasses)
	if o.Pins {
		p.archive, err = archive.New(config, archive.Options{Store: store, Ring: p.keys.Ring, Registry: registry})
	}
	return p, err
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

// silentAfter is many times what a watch takes to tell anything or to ask anew.
const silentAfter = 15 * time.Minute

// silent says which watches hang: they neither tell anything nor ask the API server
// for it. One that is away, or refuses, is asked again and again.
func (p *process) silent(now time.Time) error {
	for what, sign := range p.signs {
		last := sign()
		if last.IsZero() {
			last = p.started
		}
		if silence := now.Sub(last); silence > silentAfter {
			return fmt.Errorf("a watch of %s has received nothing and requested nothing for %s", what, silence.Round(time.Second))
		}
	}
	return nil
}

// create writes an event.
func create(events *objects.Client[*eventsv1.Event]) eventWriter {
	return func(ctx context.Context, event *eventsv1.Event) error {
		_, err := events.In(event.Namespace).Create(ctx, event)
		return err
	}
}

// How long a process writes events that waited when it was told to stop. With all
// else that it does then (the webhook lingers and drains, the controller gives its
// lease back within ten seconds) it stays within the chart's
// terminationGracePeriodSeconds.
const (
	webhookTellsWithin    = 3 * time.Second
	controllerTellsWithin = 15 * time.Second
)

// watch keeps the store, the keys and the events going until ctx ends. The events
// that wait then are for p.events.Finish.
func (p *process) watch(ctx context.Context) []func() error {
	return []func() error{
		func() error { return p.store.Run(ctx) },
		func() error { return p.spaces.Run(ctx) },
		func() error { return p.keys.Run(ctx) },
		func() error {
			p.events.Run(ctx)
			return nil
		},
	}
}
