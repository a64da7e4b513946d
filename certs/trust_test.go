package certs

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"
)

func TestTrustThroughARotation(t *testing.T) {
	old, signing := newCA(t), newCA(t)
	now := time.Now().UTC().Truncate(time.Second)
	const overlap = 10 * time.Minute // ends long before an authority expires
	begin := trust(nil).next(old.Leaf, now, overlap)
	if !bytes.Equal(begin.caBundle(), old.certPEM) {
		t.Error("one authority: the bundle is not its certificate")
	}
	rotated := readTrust(begin.encode()).next(signing.Leaf, now, overlap)
	ahead := trust{{old.Leaf, now.Add(time.Hour)}}.next(signing.Leaf, now, overlap)
	for name, c := range map[string]struct {
		trust trust
		want  []byte
	}{
		"both at rotation, the signing one first": {rotated, concat(signing, old)},
		"both until the overlap ends":             {readTrust(rotated.encode()).next(signing.Leaf, now.Add(overlap-time.Second), overlap), concat(signing, old)},
		"one when it has ended":                   {readTrust(rotated.encode()).next(signing.Leaf, now.Add(overlap), overlap), signing.certPEM},
		"one when the old one has expired":        {rotated.next(signing.Leaf, old.Leaf.NotAfter, 100*time.Hour), signing.certPEM},
		"a time that lies ahead counts as now":    {ahead.next(signing.Leaf, now.Add(overlap), overlap), signing.certPEM},
		"a restored authority signs again":        {rotated.next(old.Leaf, now.Add(time.Minute), overlap), concat(old, signing)},
	} {
		if got := c.trust.caBundle(); !bytes.Equal(got, c.want) {
			t.Errorf("%s: got\n%s", name, got)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(c.trust.caBundle())
		if want := bytes.Count(c.want, []byte("BEGIN")); !pool.Equal(poolOf(c.trust)) || len(c.trust) != want {
			t.Errorf("%s: an API server reads something else out of the bundle", name)
		}
	}
}

func TestTrustHasALimit(t *testing.T) {
	var all trust
	for range mostTrusted + 3 {
		all = all.next(newCA(t).Leaf, time.Now(), time.Hour)
	}
	if len(all) != mostTrusted {
		t.Errorf("%d authorities are trusted", len(all))
	}
}

// FuzzReadTrust: whatever the Secret holds, reading it and working out the trust comes to rest, and
// only authorities get in.
func FuzzReadTrust(f *testing.F) {
	ca, old := newCA(f), newCA(f)
	now := time.Now()
	f.Add(trust(nil).next(old.Leaf, now, time.Hour).next(ca.Leaf, now, time.Hour).encode())
	f.Add(concat(ca, old, ca.leaf(f)))
	f.Add(bytes.Replace(trust{{old.Leaf, now}}.encode(), []byte("Retired: 2"), []byte("Retired: 9"), 1))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		once := readTrust(data).next(ca.Leaf, now, time.Hour)
		for _, o := range once {
			if !o.ca.IsCA {
				t.Error("something that is no authority is trusted")
			}
		}
		twice := readTrust(once.encode()).next(ca.Leaf, now, time.Hour)
		if !bytes.Equal(once.encode(), twice.encode()) {
			t.Errorf("it does not come to rest:\n%s\n%s", once.encode(), twice.encode())
		}
	})
}

func concat(pairs ...pair) (all []byte) {
	for _, p := range pairs {
		all = append(all, p.certPEM...)
	}
	return all
}

func poolOf(t trust) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, o := range t {
		pool.AddCert(o.ca)
	}
	return pool
}
