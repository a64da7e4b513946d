package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
)

// followEvery is how soon a certificate that is newer than the served one is looked at.
const followEvery = 250 * time.Millisecond

// ErrNotAvailable is when there is no certificate yet.
var ErrNotAvailable = errors.New("there is no serving certificate yet")

//nolint:gochecknoglobals // it never changes; prometheus.NewDesc makes no constant
var expiryDesc = prometheus.NewDesc(
	"configstamp_certificate_expiry_timestamp_seconds",
	"When the certificate that is served expires, in seconds since 1970. Absent while there is none.",
	nil, nil)

// Source is the serving certificate of one TLS server. All methods are safe for concurrent use, and
// all but Run may be called before, during and after Run.
//
// A newer certificate takes over from the served one without touching any open connection, and only
// when it is fit to: it must be valid at this moment, and, if we signed it, the API server must have
// been told to trust its authority. Until then the older one is served for as long as it is valid.
// When that too has expired, the newest is served whatever it is: the client decides, by its own
// clock, and the metric tells.
//
// A Source is a [prometheus.Collector], for the caller to register.
type Source struct {
	// newest is the newest certificate there is, nil while there is none. Its Leaf is never nil:
	// tls.X509KeyPair sets it.
	newest func() *tls.Certificate
	// settled says that clients can be expected to trust a certificate that was made just now.
	settled func(leaf *x509.Certificate, now time.Time) bool
	// parts are what runs beside, such as the injector. Each blocks until ctx ends.
	parts []func(ctx context.Context) error

	served atomic.Pointer[tls.Certificate]
}

// Run keeps the certificate fresh until ctx ends, and then returns nil. It may be called once. What
// can heal (files that are missing or broken, an API server that is away or forbids) is logged and
// tried again for ever; an error means that no retry can help, such as a REST config that makes no client.
func (s *Source) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range s.parts {
		group.Go(func() error { return part(ctx) })
	}
	group.Go(func() error { s.follow(ctx); return nil })
	return group.Wait()
}

// GetCertificate is for [tls.Config]. It never blocks and ignores the hello, which may be nil: there
// is one certificate. While there is none it fails with ErrNotAvailable, which ends the handshake.
func (s *Source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := s.served.Load(); cert != nil {
		return cert, nil
	}
	return nil, ErrNotAvailable
}

// Ready says whether a certificate is being served. Once true it stays true: a certificate is never
// withdrawn, only replaced. An expired one counts; whether it is expired is for the client's clock to say.
func (s *Source) Ready() bool { return s.served.Load() != nil }

// Expiry is the NotAfter of the certificate being served (the leaf, not its chain), the zero time while there is none.
func (s *Source) Expiry() time.Time {
	if cert := s.served.Load(); cert != nil {
		return cert.Leaf.NotAfter
	}
	return time.Time{}
}

// Describe is for [prometheus.Collector].
func (s *Source) Describe(ch chan<- *prometheus.Desc) { ch <- expiryDesc }

// Collect is for [prometheus.Collector].
func (s *Source) Collect(ch chan<- prometheus.Metric) {
	if expiry := s.Expiry(); !expiry.IsZero() {
		ch <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, float64(expiry.Unix()))
	}
}

// follow takes over what is newer, and says so once for each certificate.
func (s *Source) follow(ctx context.Context) {
	log := klog.FromContext(ctx)
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	var told *tls.Certificate
	for {
		before := s.served.Load()
		served, newest := s.takeOver(time.Now())
		switch {
		case served != before:
			log.Info("Serving a new certificate", "serial", served.Leaf.SerialNumber.Text(16), "notAfter", served.Leaf.NotAfter)
		case newest != served && newest != told:
			log.Info("Still serving the previous certificate: the newest is not valid or not trusted yet",
				"newestNotBefore", newest.Leaf.NotBefore, "newestNotAfter", newest.Leaf.NotAfter, "servedNotAfter", served.Leaf.NotAfter)
			told = newest
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// takeOver decides which certificate is served from now on. It has one caller at a time.
func (s *Source) takeOver(now time.Time) (served, newest *tls.Certificate) {
	served = s.served.Load()
	newest = s.newest()
	if newest == nil || newest == served {
		return served, served
	}
	fit := valid(newest.Leaf, now) && s.settled(newest.Leaf, now)
	if fit || served == nil || !valid(served.Leaf, now) {
		s.served.Store(newest)
		return newest, newest
	}
	return served, newest
}

func valid(leaf *x509.Certificate, now time.Time) bool {
	return !now.Before(leaf.NotBefore) && !now.After(leaf.NotAfter)
}
