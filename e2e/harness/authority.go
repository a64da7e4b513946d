package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"testing"
	"time"
)

// Authority signs the certificates of everything on this machine: the webhooks,
// and the proxies that processes take for the API server.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	PEM         []byte

	addresses []net.IP
}

// NewAuthority makes one that nobody trusts yet. Its certificates are good for
// the loopback, and for further addresses of this machine.
func NewAuthority(addresses ...string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "configstamp e2e"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	all := []net.IP{net.IPv4(127, 0, 0, 1)}
	for _, address := range addresses {
		all = append(all, net.ParseIP(address))
	}
	return &Authority{certificate: certificate, key: key, PEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), addresses: all}, nil
}

// Pair makes a serving certificate, valid until notAfter, and its key, in PEM.
func (a *Authority) Pair(notAfter time.Time) (certificate, key []byte, err error) {
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "127.0.0.1"}, NotAfter: notAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: a.addresses,
	})
}

func (a *Authority) sign(template *x509.Certificate) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	template.SerialNumber, template.NotBefore, template.KeyUsage = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}

// Base64 is the authority's certificate as a caBundle.
func (a *Authority) Base64() string { return base64.StdEncoding.EncodeToString(a.PEM) }

// Serve starts a server of a test's with a certificate that a caBundle of this
// authority vouches for, and closes it at the end of the test.
func (a *Authority) Serve(t testing.TB, server *httptest.Server) {
	t.Helper()
	pair, err := a.tlsPair()
	Must(t, err)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
}

func (a *Authority) tlsPair() (tls.Certificate, error) {
	certificate, key, err := a.Pair(time.Now().Add(24 * time.Hour))
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, key)
}
