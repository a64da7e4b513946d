package certs

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"

	"github.com/cert-manager/cert-manager/pkg/util/pki"
	corev1 "k8s.io/api/core/v1"
)

// backdated is how long before now a certificate begins: a node's clock may be ahead of
// the API server's.
const backdated = 5 * time.Minute

// caKey is where the Secret keeps the authority's certificate once more, for whoever is to trust it.
const caKey = "ca.crt"

// newAuthority makes an authority, as the Secret holds it.
func newAuthority(life time.Duration, now time.Time) (map[string][]byte, error) {
	certPEM, keyPEM, err := issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "configstamp-ca"}, IsCA: true,
		KeyUsage:  x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		NotBefore: now.Add(-backdated), NotAfter: now.Add(life),
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	return map[string][]byte{corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM, caKey: certPEM}, nil
}

// sign makes a serving certificate under an authority, which it does not outlive.
func sign(authority *tls.Certificate, names []string, life time.Duration, now time.Time) (*tls.Certificate, error) {
	end := now.Add(life)
	if end.After(authority.Leaf.NotAfter) {
		end = authority.Leaf.NotAfter
	}
	certPEM, keyPEM, err := issue(&x509.Certificate{
		DNSNames: names,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: now.Add(-backdated), NotAfter: end,
	}, authority)
	if err != nil {
		return nil, fmt.Errorf("signing a serving certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	return &pair, err
}

// issue makes a key, and a certificate of it; authority is nil for one that signs itself.
func issue(template *x509.Certificate, authority *tls.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := pki.GenerateECPrivateKey(pki.ECCurve256)
	if err != nil {
		return nil, nil, err
	}
	parent, signer := template, crypto.PrivateKey(key)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	template.BasicConstraintsValid = true
	if certPEM, _, err = pki.SignCertificate(template, parent, key.Public(), signer); err != nil {
		return nil, nil, err
	}
	keyPEM, err = pki.EncodePKCS8PrivateKey(key)
	return certPEM, keyPEM, err
}

// authorityIn is the authority that a Secret holds, or why another has to be made.
func authorityIn(data map[string][]byte, now time.Time) (authority *tls.Certificate, unfit string) {
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	switch {
	case err != nil:
		return nil, "the Secret holds no certificate with its key"
	case !bytes.Equal(data[caKey], data[corev1.TLSCertKey]):
		return nil, caKey + " and " + corev1.TLSCertKey + " differ"
	case !pair.Leaf.IsCA:
		return nil, "it is not an authority"
	case now.Before(pair.Leaf.NotBefore): // who made it has a clock that is ahead
		return nil, "it is not valid yet"
	case aging(pair.Leaf, now):
		return nil, "it is two thirds through its life"
	}
	return &pair, ""
}

// aging reports whether a certificate is two thirds through its life.
func aging(cert *x509.Certificate, now time.Time) bool {
	return cert.NotAfter.Sub(now) < cert.NotAfter.Sub(cert.NotBefore)/3
}
