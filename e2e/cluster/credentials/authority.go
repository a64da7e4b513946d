// Package credentials makes what the components of one cluster know each other by: an authority, certificates, the key
// of service account tokens, and kubeconfigs. They last ten days, and never leave the cluster's directory.
package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const lifetime = 10 * 24 * time.Hour

// Authority signs the certificates of one cluster.
type Authority struct {
	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Pair is a certificate and its key, as files.
type Pair struct{ Certificate, Key string }

// NewAuthority makes an authority whose files are in dir.
func NewAuthority(dir, cluster string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of cluster %s's authority: %w", cluster, err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "configstamp cluster " + cluster},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	a := &Authority{dir: dir, key: key, certificate: template}
	der, err := a.sign(template, key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of cluster %s's authority: %w", cluster, err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("reading back the certificate of cluster %s's authority: %w", cluster, err)
	}
	return a, writePEM(a.CertificateFile(), "CERTIFICATE", der)
}

// CertificateFile is the authority's certificate.
func (a *Authority) CertificateFile() string { return filepath.Join(a.dir, "ca.crt") }

// Client makes a pair for a user of the API server.
func (a *Authority) Client(file, user string, groups ...string) (Pair, error) {
	return a.issue(file, &x509.Certificate{Subject: pkix.Name{CommonName: user, Organization: groups}})
}

// Server makes a pair for a server that is reached by these names and addresses.
func (a *Authority) Server(file, name string, names []string, addresses []net.IP) (Pair, error) {
	return a.issue(file, &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: names, IPAddresses: addresses})
}

// ServiceAccountKey makes the key that service account tokens are signed with.
func (a *Authority) ServiceAccountKey() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("making the key of service accounts: %w", err)
	}
	path := filepath.Join(a.dir, "service-accounts.key")
	return path, writeKey(path, key)
}

func (a *Authority) issue(file string, template *x509.Certificate) (Pair, error) {
	pair := Pair{Certificate: filepath.Join(a.dir, file+".crt"), Key: filepath.Join(a.dir, file+".key")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making the key of %s: %w", file, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	// etcd calls itself with its serving certificate, so every one may do both.
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := a.sign(template, key)
	if err != nil {
		return Pair{}, fmt.Errorf("making the certificate of %s: %w", file, err)
	}
	if err := writePEM(pair.Certificate, "CERTIFICATE", der); err != nil {
		return Pair{}, err
	}
	return pair, writeKey(pair.Key, key)
}

func (a *Authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	const serialBits = 120
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Minute)
	template.NotAfter = time.Now().Add(lifetime)
	return x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("writing the key %s: %w", path, err)
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	content := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("writing a credential: %w", err)
	}
	return nil
}
