package main

import (
	"bytes"
	"crypto"
	"crypto/elliptic"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
)

// TestSign signs with a key of this test, encrypted as cosign does it, and has the library verify.
func TestSign(t *testing.T) {
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte("a password")))
	must(t, err)
	folder, key := t.TempDir(), filepath.Join(t.TempDir(), "cosign.key")
	must(t, os.WriteFile(key, private, 0o600))
	t.Setenv("COSIGN_PASSWORD", "a password")
	t.Setenv("THE_KEY", string(private))
	must(t, os.WriteFile(filepath.Join(folder, sumsFile), []byte("0a1b  file\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(folder, provenanceFile), []byte("{}"), 0o600))
	for _, from := range []string{key, "env://THE_KEY"} {
		must(t, signAll(folder, from))
		verify(t, folder, public)
	}

	t.Setenv("COSIGN_PASSWORD", "another password")
	for _, from := range []string{key, "env://NO_SUCH_VARIABLE", filepath.Join(folder, "none")} {
		if signAll(folder, from) == nil {
			t.Errorf("signing with %s: there is to be an error", from)
		}
	}
}

// verify verifies both signatures, sees that they are of nothing else, and does what
// docs/releases.md says.
func verify(t *testing.T, folder string, public []byte) {
	t.Helper()
	key, err := cryptoutils.UnmarshalPEMToPublicKey(public)
	must(t, err)
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	must(t, err)
	sums := content(t, filepath.Join(folder, sumsFile))
	signed, err := base64.StdEncoding.DecodeString(string(content(t, filepath.Join(folder, sumsSignature))))
	must(t, err)
	if err := verifier.VerifySignature(bytes.NewReader(signed), bytes.NewReader(sums)); err != nil {
		t.Errorf("the sums: %v", err)
	}
	if verifier.VerifySignature(bytes.NewReader(signed), bytes.NewReader(append(sums, 'x'))) == nil {
		t.Error("other sums have the same signature")
	}
	var payload []byte
	envelope := content(t, filepath.Join(folder, signedProvenance))
	if err := dsse.WrapVerifier(verifier, dsse.WithDecodedPayload(&payload), dsse.WithExpectedPayloadType(statementType)).VerifySignature(bytes.NewReader(envelope), nil); err != nil {
		t.Errorf("the provenance: %v", err)
	}
	if !bytes.Equal(payload, content(t, filepath.Join(folder, provenanceFile))) {
		t.Errorf("what is signed is %s", payload)
	}

	pem := filepath.Join(t.TempDir(), "cosign.pub")
	must(t, os.WriteFile(pem, public, 0o600))
	if openssl, err := exec.LookPath("openssl"); err == nil {
		raw := filepath.Join(t.TempDir(), "raw")
		must(t, os.WriteFile(raw, signed, 0o600))
		if out, err := exec.CommandContext(t.Context(), openssl, "dgst", "-sha256", "-verify", pem, "-signature", raw, filepath.Join(folder, sumsFile)).CombinedOutput(); err != nil {
			t.Errorf("openssl: %v\n%s", err, out)
		}
	}
}
