package controlplane

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/configstamp/configstamp/e2e/cluster/credentials"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

// Go's clients do not mind a certificate that is named as its authority, and Go leaves the
// id of the authority's key out of it. Those of OpenSSL (curl, Python) take it for one that
// signs itself, and refuse it.
func TestNoCertificateIsTakenForOneThatSignsItself(t *testing.T) {
	c := state.New(t.TempDir(), "try")
	c.Address, c.ServiceCIDR, c.Server = "127.0.0.1", "10.96.0.0/16", "https://127.0.0.1:6443"
	if err := os.MkdirAll(c.Credentials(), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := credentials.NewAuthority(c.Credentials(), c.Name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := MakeFiles(c, a); err != nil {
		t.Fatal(err)
	}
	authority := certificate(t, a.CertificateFile())
	files, err := filepath.Glob(c.File("credentials", "*.crt"))
	if err != nil || len(files) < 6 {
		t.Fatalf("certificates %q: %v", files, err)
	}
	for _, file := range files {
		if file == a.CertificateFile() {
			continue
		}
		one := certificate(t, file)
		if bytes.Equal(one.RawSubject, one.RawIssuer) || !bytes.Equal(one.AuthorityKeyId, authority.SubjectKeyId) {
			t.Errorf("%s: subject %s, issuer %s, id of the authority's key %x, want %x", filepath.Base(file), one.Subject, one.Issuer, one.AuthorityKeyId, authority.SubjectKeyId)
		}
	}
}

func certificate(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s holds no certificate", file)
	}
	one, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return one
}
