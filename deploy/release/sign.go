package main

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
)

const (
	sumsSignature    = sumsFile + ".sig"
	signedProvenance = "provenance.intoto.jsonl"
	statementType    = "application/vnd.in-toto+json"
)

// signAll signs the sums, as "cosign sign-blob" does, and the provenance, as an envelope (DSSE).
func signAll(folder, key string) error {
	signer, err := signerOf(key)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		from, to string
		sign     func(content []byte) ([]byte, error)
	}{
		{sumsFile, sumsSignature, func(content []byte) ([]byte, error) {
			made, err := signer.SignMessage(bytes.NewReader(content))
			return []byte(base64.StdEncoding.EncodeToString(made) + "\n"), err
		}},
		{provenanceFile, signedProvenance, func(content []byte) ([]byte, error) {
			made, err := dsse.WrapSigner(signer, statementType).SignMessage(bytes.NewReader(content))
			return append(made, '\n'), err
		}},
	} {
		content, err := os.ReadFile(filepath.Join(folder, one.from))
		if err != nil {
			return err
		}
		signed, err := one.sign(content)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, one.to), signed, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// signerOf reads a private key: PEM, also as "cosign generate-key-pair" writes it, encrypted
// with the password in COSIGN_PASSWORD.
func signerOf(key string) (signature.Signer, error) {
	content, err := readKey(key)
	if err != nil {
		return nil, err
	}
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(content, func(bool) ([]byte, error) { return []byte(os.Getenv("COSIGN_PASSWORD")), nil })
	if err != nil {
		return nil, errors.New("the key cannot be read: want a private key as PEM, and its password in COSIGN_PASSWORD if it is encrypted")
	}
	return signature.LoadSigner(private, crypto.SHA256)
}

func readKey(key string) ([]byte, error) {
	name, isVariable := strings.CutPrefix(key, "env://")
	if !isVariable {
		return os.ReadFile(key)
	}
	content, is := os.LookupEnv(name)
	if !is {
		return nil, fmt.Errorf("the key is to be in the environment variable %s, which is not set", name)
	}
	return []byte(content), nil
}
