// Package certs holds the serving certificate of configstamp's webhook and keeps it fresh.
//
// There are two ways to one [Source]. [FromFiles] reads the pair that cert-manager (or anybody) has
// mounted, and follows it as it changes. [FromAuthority] is for clusters without cert-manager: it
// keeps a small authority in a Secret, signs the certificate itself, and has the API server trust it
// by the caBundle of our own webhook configuration: each process keeps the one by which it is called,
// so that none waits for the other's. The Source decides *when* a newer certificate takes over.
//
// Keys, signatures and PEM are cert-manager's pkg/util/pki. Its pkg/server/tls would do more, and links
// client-go's clientset.
//
// The package knows nothing of admission, sources or workloads, and must not: it hands a certificate
// to whatever TLS server asks. It registers no metric and opens no port. No key, and no byte of a
// file that was meant to hold one, is ever logged.
//
// [Authorities] are whose certificates clients have to show, where they have to.
//
// Start reading at source.go. Then files.go; or authority.go, sign.go, trust.go. Then authorities.go.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
)

const (
	// followEvery is how soon a certificate that is newer than the served one is looked at.
	followEvery = 250 * time.Millisecond
	// remindEvery is how soon an error that lasts is logged again.
	remindEvery = 10 * time.Minute
)

//nolint:gochecknoglobals // it never changes; prometheus.NewDesc makes no constant
var expiryDesc = prometheus.NewDesc(
	"configstamp_certificate_expiry_timestamp_seconds",
	"When the serving certificate expires, in seconds since 1970. Absent while there is none.",
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
	// keep keeps the newest fresh, until ctx ends.
	keep func(ctx context.Context)

	served atomic.Pointer[tls.Certificate]
}

// Run keeps the certificate fresh until ctx ends. It may be called once. Files that are missing or
// broken, and an API server that is away or forbids, are logged and tried again for ever.
func (s *Source) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { s.keep(ctx) })
	s.follow(ctx)
	group.Wait()
}

// GetCertificate is for [tls.Config]. It never blocks and ignores the hello, which may be nil: there
// is one certificate. While there is none it fails, which ends the handshake.
func (s *Source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := s.served.Load(); cert != nil {
		return cert, nil
	}
	return nil, errors.New("there is no serving certificate yet")
}

// Ready says whether a certificate is being served. Once true it stays true: a certificate is never
// withdrawn, only replaced. An expired one counts; whether it is expired is for the client's clock to say.
func (s *Source) Ready() bool { return s.served.Load() != nil }

// Describe is for [prometheus.Collector].
func (s *Source) Describe(ch chan<- *prometheus.Desc) { ch <- expiryDesc }

// Collect is for [prometheus.Collector].
func (s *Source) Collect(ch chan<- prometheus.Metric) {
	if cert := s.served.Load(); cert != nil {
		ch <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, float64(cert.Leaf.NotAfter.Unix()))
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

// reminder remembers what was logged last of something that is tried again and again.
type reminder struct {
	text string
	at   time.Time
}

// due says whether an error is to be logged: it is new, or has lasted since the last time.
func (r *reminder) due(err error) bool {
	if err.Error() == r.text && time.Since(r.at) < remindEvery {
		return false
	}
	r.text, r.at = err.Error(), time.Now()
	return true
}
