package main

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/configstamp/configstamp/checksum"
)

// newRegistry makes a process's registry, with what any Go program tells.
func newRegistry(name string) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "configstamp_info",
			Help:        "1, with the version of this process.",
			ConstLabels: prometheus.Labels{"version": version, "process": name},
		}, func() float64 { return 1 }))
	return registry
}

// tellOfStores adds what the stores of both processes hold, and how they keep up.
func (p *process) tellOfStores(providers bool) {
	p.tellProgress("sources", p.store.LastProgress)
	p.tellProgress("namespaces", p.spaces.LastProgress)
	for _, kind := range checksum.Kinds() {
		if kind == checksum.SecretProviderClass && !providers {
			continue
		}
		p.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "configstamp_sources",
			Help:        "Sources whose checksums are held.",
			ConstLabels: prometheus.Labels{"kind": string(kind)},
		}, func() float64 { return float64(p.store.Counts()[kind]) }))
	}
}

// tellProgress adds when the watches of a store last told anything.
func (p *process) tellProgress(store string, last func() time.Time) {
	p.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "configstamp_store_last_progress_timestamp_seconds",
		Help: "When the most silent watch of a store last received something, in seconds since 1970; 0 until each has. " +
			"The API server sends something every minute, also when nothing changes.",
		ConstLabels: prometheus.Labels{"store": store},
	}, func() float64 { return max(0, float64(last().Unix())) }))
}

// tellReady adds whether the process is ready.
func (p *process) tellReady(ready func() error) {
	p.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "configstamp_ready",
		Help:        "1 while this process is ready, as /readyz says, otherwise 0.",
		ConstLabels: prometheus.Labels{"process": p.name},
	}, func() float64 {
		if ready() != nil {
			return 0
		}
		return 1
	}))
}

// countRequests counts what the process asks of the API server.
func countRequests(registry prometheus.Registerer) func(http.RoundTripper) http.RoundTripper {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "configstamp_api_requests_total",
		Help: "Requests that the API server answered.",
	}, []string{"code", "method"})
	registry.MustRegister(requests)
	requests.WithLabelValues("200", "get")
	return func(next http.RoundTripper) http.RoundTripper {
		return promhttp.InstrumentRoundTripperCounter(requests, next)
	}
}
