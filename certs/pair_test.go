package certs

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

const serverName = "configstamp.configstamp.svc"

// pair is a certificate with its key, and both as PEM.
type pair struct {
	tls.Certificate
	certPEM, keyPEM []byte
}

// newCA makes an authority. All have the same name, as ours do.
func newCA(t testing.TB) pair {
	return newPair(t, nil, &x509.Certificate{
		Subject: pkix.Name{CommonName: "configstamp-ca"}, IsCA: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	})
}

// leaf makes a serving certificate under ca that is valid for an hour, now and before.
func (ca pair) leaf(t testing.TB) pair {
	return ca.leafUntil(t, time.Now().Add(time.Hour))
}

func (ca pair) leafUntil(t testing.TB, end time.Time) pair {
	return newPair(t, &ca.Certificate, &x509.Certificate{
		DNSNames: []string{serverName}, NotBefore: end.Add(-2 * time.Hour), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func newPair(t testing.TB, ca *tls.Certificate, template *x509.Certificate) (p pair) {
	t.Helper()
	var err error
	p.certPEM, p.keyPEM, err = issue(template, ca)
	fatal(t, err)
	p.Certificate, err = tls.X509KeyPair(p.certPEM, p.keyPEM)
	fatal(t, err)
	return p
}

// mount is a directory that changes as the kubelet changes a mounted Secret: each content in a
// directory of its own, and the link ..data switched over by a rename.
type mount struct {
	t     testing.TB
	dir   string
	count int
}

func newMount(t testing.TB) *mount { return &mount{t: t, dir: t.TempDir()} }

// rereadEvery is what the tests have in place of readEvery.
const rereadEvery = 20 * time.Millisecond

func (m *mount) source() *Source {
	return (&filePair{certFile: filepath.Join(m.dir, "tls.crt"), keyFile: filepath.Join(m.dir, "tls.key"), every: rereadEvery}).source()
}

func (m *mount) hold(certPEM, keyPEM []byte) {
	m.t.Helper()
	old, _ := os.Readlink(filepath.Join(m.dir, "..data"))
	m.count++
	version := "..2026_" + strconv.Itoa(m.count)
	fatal(m.t, os.Mkdir(filepath.Join(m.dir, version), 0o755))
	fatal(m.t, os.WriteFile(filepath.Join(m.dir, version, "tls.crt"), certPEM, 0o600))
	fatal(m.t, os.WriteFile(filepath.Join(m.dir, version, "tls.key"), keyPEM, 0o600))
	fatal(m.t, os.Symlink(version, filepath.Join(m.dir, "..data_tmp")))
	fatal(m.t, os.Rename(filepath.Join(m.dir, "..data_tmp"), filepath.Join(m.dir, "..data")))
	if old == "" {
		fatal(m.t, os.Symlink(filepath.Join("..data", "tls.crt"), filepath.Join(m.dir, "tls.crt")))
		fatal(m.t, os.Symlink(filepath.Join("..data", "tls.key"), filepath.Join(m.dir, "tls.key")))
		return
	}
	fatal(m.t, os.RemoveAll(filepath.Join(m.dir, old)))
}

func fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits up to half a minute for what must come true.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within half a minute: %s", what)
		}
	}
}
