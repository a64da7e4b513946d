package admission

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// signer is an authority that signs certificates of clients.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	s := &signer{}
	s.key, s.certificate = s.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return s
}

func (s *signer) sign(t *testing.T, template *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore = big.NewInt(1), time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, by := s.certificate, s.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, certificate
}

// pool is one of this authority.
func (s *signer) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.certificate)
	return pool
}

// shows has a client show a certificate.
func (s *signer) shows(t *testing.T, template x509.Certificate, usage x509.ExtKeyUsage) func(*tls.Config) {
	t.Helper()
	template.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	key, certificate := s.sign(t, &template)
	pair := &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
	return func(c *tls.Config) {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
}

// Who shows no certificate that verifies, with one of the names, gets a TLS alert, and reaches
// no handler.
func TestServerDemandsCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority, other := newSigner(t), newSigner(t)
		named := func(name string) x509.Certificate { return x509.Certificate{Subject: pkix.Name{CommonName: name}} }
		expired := named("api-server")
		expired.NotAfter = time.Now().Add(-time.Minute)
		var called atomic.Int32
		server := serve(t, &Server{
			MinVersion: tls.VersionTLS12,
			Clients:    &Clients{Authorities: authority.pool, Names: []string{"other", "api-server"}},
			Handler:    http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Add(1) }),
		})
		for about, c := range map[string]struct {
			shows  func(*tls.Config)
			served bool
		}{
			"its common name":      {authority.shows(t, named("api-server"), x509.ExtKeyUsageClientAuth), true},
			"a DNS name":           {authority.shows(t, x509.Certificate{DNSNames: []string{"node", "api-server"}}, x509.ExtKeyUsageClientAuth), true},
			"no certificate":       {func(*tls.Config) {}, false},
			"another name":         {authority.shows(t, named("kubelet"), x509.ExtKeyUsageClientAuth), false},
			"no name":              {authority.shows(t, named(""), x509.ExtKeyUsageClientAuth), false},
			"another authority":    {other.shows(t, named("api-server"), x509.ExtKeyUsageClientAuth), false},
			"a server's":           {authority.shows(t, named("api-server"), x509.ExtKeyUsageServerAuth), false},
			"one that has expired": {authority.shows(t, expired, x509.ExtKeyUsageClientAuth), false},
		} {
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				before := called.Load()
				_, err := server.get(server.client(t, c.shows, func(config *tls.Config) { config.MinVersion, config.MaxVersion = version, version }))
				if c.served != (err == nil) || c.served != (called.Load() > before) {
					t.Errorf("%s, %s: %v", about, tls.VersionName(version), err)
				}
				if version == tls.VersionTLS13 && errors.Is(err, io.ErrClosedPipe) {
					continue // it has sent its request before it could hear the alert
				}
				if alert := new(net.OpError); !c.served && (!errors.As(err, &alert) || alert.Op != "remote error" || !strings.Contains(err.Error(), "tls:")) {
					t.Errorf("%s, %s: no alert: %v", about, tls.VersionName(version), err)
				}
			}
		}
	})
}

// Authorities that change count from the next handshake on; a connection that is open stays.
func TestServerFollowsAuthorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := newSigner(t), newSigner(t)
		var now atomic.Pointer[x509.CertPool]
		now.Store(old.pool())
		server := serve(t, &Server{Clients: &Clients{Authorities: now.Load, Names: []string{"api-server"}}})
		client := func(s *signer) *http.Client {
			return server.client(t, s.shows(t, x509.Certificate{Subject: pkix.Name{CommonName: "api-server"}}, x509.ExtKeyUsageClientAuth),
				func(config *tls.Config) { config.ClientSessionCache = tls.NewLRUClientSessionCache(1) })
		}
		open := client(old)
		if _, err := server.get(open); err != nil {
			t.Fatal(err)
		}
		now.Store(next.pool())
		if _, err := server.get(client(next)); err != nil {
			t.Errorf("the new one: %v", err)
		}
		if _, err := server.get(client(old)); err == nil {
			t.Error("the old one is served")
		}
		if _, err := server.get(open); err != nil {
			t.Errorf("an open connection: %v", err)
		}
		open.CloseIdleConnections()
		if _, err := server.get(open); err == nil {
			t.Error("the old one is served again, by the session that it had")
		}
	})
}
