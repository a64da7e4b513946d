package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// DefaultInterval is how often the files are read, unless told otherwise. The kubelet itself takes up
// to a minute or so to bring a changed Secret to them; this adds little, and costs two small reads.
const DefaultInterval = 5 * time.Second

// Files says where a certificate and its key lie.
type Files struct {
	// CertFile holds the certificate and the rest of its chain, KeyFile its private key, both PEM.
	// Symbolic links are followed at each read, so the kubelet's switch of ..data is seen.
	CertFile, KeyFile string
	// Interval is the time between two reads; 0 means DefaultInterval.
	Interval time.Duration
}

// errNotAPair stands for whatever the parser says, because the parser may quote what it has read.
var errNotAPair = errors.New("certificate file and key file do not match: malformed, half-written, or not belonging together")

// FromFiles is the source that serves what lies in two files, and follows them.
//
// Missing files mean not ready, until they come. A pair that cannot be read, or does not fit together,
// leaves the served one in place for ever, and is logged once, then every ten minutes while it lasts.
// A pair that reads well but is not valid at this moment (expired, or not yet begun) waits for as
// long as the served one is valid.
//
// It fails when a path is empty or the interval negative.
func FromFiles(o Files) (*Source, error) {
	if o.CertFile == "" || o.KeyFile == "" {
		return nil, errors.New("serving certificate: both a certificate file and a key file must be named")
	}
	if o.Interval < 0 {
		return nil, errors.New("serving certificate: the interval between two reads cannot be negative")
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	pair := &filePair{Files: o}
	return &Source{
		newest:  pair.served.Load,
		settled: func(*x509.Certificate, time.Time) bool { return true },
		parts: []func(context.Context) error{func(ctx context.Context) error {
			pair.follow(quietly(ctx, withoutContent))
			return nil
		}},
	}, nil
}

// filePair follows two files.
type filePair struct {
	Files
	served atomic.Pointer[tls.Certificate] // as last read, nil while there is none

	certPEM, keyPEM []byte // what it was made of
}

// follow reads the files until ctx ends, and at least once.
func (f *filePair) follow(ctx context.Context) {
	log := klog.FromContext(ctx)
	ticker := time.NewTicker(f.Interval)
	defer ticker.Stop()
	for {
		if err := f.read(); err != nil {
			log.Error(err, "The serving certificate cannot be read, will try again")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (f *filePair) read() error {
	keyPEM, err := os.ReadFile(f.KeyFile)
	if err != nil {
		return err
	}
	certPEM, err := os.ReadFile(f.CertFile)
	if err != nil {
		return err
	}
	if bytes.Equal(certPEM, f.certPEM) && bytes.Equal(keyPEM, f.keyPEM) {
		return nil
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return err
	}
	f.certPEM, f.keyPEM = certPEM, keyPEM
	f.served.Store(&cert)
	return nil
}

// withoutContent lets through only errors that name a path and a reason of the operating system.
func withoutContent(err error) error {
	if path := new(fs.PathError); errors.As(err, &path) {
		return path
	}
	return errNotAPair
}
