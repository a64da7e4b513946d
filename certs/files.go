package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// readEvery is the time between two reads of the files. The kubelet itself takes up to a minute or so
// to bring a changed Secret to them; this adds little, and costs two small reads.
const readEvery = 5 * time.Second

// errNotAPair stands for whatever the parser says, because the parser may quote what it has read.
var errNotAPair = errors.New("certificate file and key file do not match: malformed, half-written, or not belonging together")

// FromFiles is the source that serves what lies in two files, both PEM: a certificate with the rest of
// its chain, and its private key. It follows them, through symbolic links such as the kubelet's ..data.
//
// Missing files mean not ready, until they come. A pair that cannot be read, or does not fit together,
// leaves the served one in place for ever. A pair that reads well but is not valid at this moment
// (expired, or not yet begun) waits for as long as the served one is valid.
func FromFiles(certFile, keyFile string) *Source {
	return (&filePair{certFile: certFile, keyFile: keyFile, every: readEvery}).source()
}

// filePair follows two files.
type filePair struct {
	certFile, keyFile string
	every             time.Duration
	newest            atomic.Pointer[tls.Certificate] // as last read, nil while there is none

	certPEM, keyPEM []byte // what it was made of
}

func (f *filePair) source() *Source {
	return &Source{
		newest:  f.newest.Load,
		settled: func(*x509.Certificate, time.Time) bool { return true },
		keep:    f.follow,
	}
}

// follow reads the files until ctx ends, and at least once.
func (f *filePair) follow(ctx context.Context) {
	again(ctx, f.every, f.read, "The serving certificate cannot be read, will try again")
}

// read's errors name a path and a reason of the operating system, and nothing that was read.
func (f *filePair) read(context.Context) error {
	keyPEM, err := os.ReadFile(f.keyFile)
	if err != nil {
		return err
	}
	certPEM, err := os.ReadFile(f.certFile)
	if err != nil {
		return err
	}
	if bytes.Equal(certPEM, f.certPEM) && bytes.Equal(keyPEM, f.keyPEM) {
		return nil
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return errNotAPair
	}
	f.certPEM, f.keyPEM = certPEM, keyPEM
	f.newest.Store(&cert)
	return nil
}
