package certs

import (
	"bytes"
	"crypto/x509"
	"maps"
	"testing"
	"time"
)

func TestAnAuthorityIsFitUntilTwoThirdsOfItsLife(t *testing.T) {
	const life = 3 * time.Hour
	now := time.Now()
	data, err := newAuthority(life, now)
	fatal(t, err)
	other, err := newAuthority(life, now)
	fatal(t, err)
	leaf := newCA(t).leaf(t)
	with := func(key string, value []byte) map[string][]byte {
		changed := maps.Clone(data)
		changed[key] = value
		return changed
	}
	for name, c := range map[string]struct {
		data map[string][]byte
		at   time.Time
		fit  bool
	}{
		"new":                                {data, now, true},
		"before two thirds":                  {data, now.Add(life*2/3 - 5*time.Minute), true},
		"after two thirds":                   {data, now.Add(life*2/3 + time.Minute), false},
		"of a clock that is ahead":           {data, now.Add(-time.Hour), false},
		"expired":                            {data, now.Add(life + time.Minute), false},
		"nothing":                            {nil, now, false},
		"no key":                             {with("tls.key", nil), now, false},
		"the key of another":                 {with("tls.key", other["tls.key"]), now, false},
		"another to be trusted":              {with("ca.crt", other["ca.crt"]), now, false},
		"half of a certificate":              {with("tls.crt", data["tls.crt"][:200]), now, false},
		"a serving certificate in its place": {map[string][]byte{"tls.crt": leaf.certPEM, "tls.key": leaf.keyPEM, "ca.crt": leaf.certPEM}, now, false},
	} {
		if authority, unfit := authorityIn(c.data, c.at); (unfit == "") != c.fit || (authority != nil) != c.fit {
			t.Errorf("%s: %q", name, unfit)
		}
	}
}

func TestAServingCertificateIsForItsNamesAndDoesNotOutliveItsAuthority(t *testing.T) {
	now := time.Now()
	data, err := newAuthority(time.Hour, now)
	fatal(t, err)
	authority, unfit := authorityIn(data, now)
	if unfit != "" {
		t.Fatal(unfit)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(data["ca.crt"])
	for life, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, 2 * time.Hour: time.Hour} {
		leaf, err := sign(authority, []string{serverName, "configstamp.configstamp"}, life, now)
		fatal(t, err)
		for _, name := range []string{serverName, "configstamp.configstamp"} {
			if _, err := leaf.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool, CurrentTime: now.Add(time.Second)}); err != nil {
				t.Error(err)
			}
		}
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{DNSName: "elsewhere.svc", Roots: pool}); err == nil {
			t.Error("it is good for any name")
		}
		if got := leaf.Leaf.NotAfter.Sub(now.Truncate(time.Second)); got != want {
			t.Errorf("it is valid for %s, want %s", got, want)
		}
	}
}

// A replica makes the Secret, signs under what is there, signs anew before a certificate is too old,
// and replaces what is damaged, with what others keep in the Secret left alone.
func TestTheSecretIsMadeAndMended(t *testing.T) {
	server := newServer(t, webhookConfiguration())
	i := injectorOf(t, server, testOptions)
	fatal(t, i.sync(t.Context()))
	secret := storedSecret(server)
	if len(secret.Labels) != 1 || len(secret.Data["tls.key"]) == 0 || len(readTrust(secret.Data[trustKey])) != 1 {
		t.Errorf("the Secret has labels %v and %d keys", secret.Labels, len(secret.Data))
	}
	first := i.leaf.Load()
	fatal(t, i.sync(t.Context()))
	if i.leaf.Load() != first || !bytes.Equal(storedSecret(server).Data["tls.key"], secret.Data["tls.key"]) {
		t.Error("a second look made something anew")
	}
	other := injectorOf(t, server, testOptions)
	fatal(t, other.sync(t.Context()))
	if !signed(other.leaf.Load().Leaf, readTrust(secret.Data["ca.crt"])[0].ca) {
		t.Error("another replica signs under another authority")
	}

	authority, _ := authorityIn(secret.Data, time.Now())
	fatal(t, i.renew(authority, time.Now().Add(leafLife*2/3+time.Hour)))
	if i.leaf.Load() == first {
		t.Error("an old certificate was not signed anew")
	}

	damaged := secret.DeepCopy()
	damaged.Data["tls.key"], damaged.Data["note"] = []byte("damaged"), []byte("somebody's")
	server.Put("secrets", damaged)
	fatal(t, i.sync(t.Context()))
	mended := storedSecret(server)
	if _, unfit := authorityIn(mended.Data, time.Now()); unfit != "" || string(mended.Data["note"]) != "somebody's" || len(readTrust(mended.Data[trustKey])) != 2 {
		t.Errorf("%s; note %q; %d are trusted", unfit, mended.Data["note"], len(readTrust(mended.Data[trustKey])))
	}
	if !signed(i.leaf.Load().Leaf, readTrust(mended.Data["ca.crt"])[0].ca) {
		t.Error("the certificate is still signed by the authority that is gone")
	}
}

// Without a webhook configuration there is a certificate all the same.
func TestACertificateNeedsNoWebhookConfiguration(t *testing.T) {
	i := injectorOf(t, newServer(t), testOptions)
	if err := i.sync(t.Context()); err == nil {
		t.Error("nothing is said of the missing configuration")
	}
	if i.leaf.Load() == nil {
		t.Error("there is no certificate")
	}
}
