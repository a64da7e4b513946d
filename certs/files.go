package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"io/fs"
	"math"
	"time"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
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
var errNotAPair = errors.New("certificate and key file do not make a pair: malformed, half-written, or not belonging together")

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
	library := &servertls.FileCertificateSource{
		CertPath:       o.CertFile,
		KeyPath:        o.KeyFile,
		UpdateInterval: o.Interval,
		MaxFailures:    math.MaxInt, // by default a minute of failures would end the process
	}
	return &Source{
		newest:  library,
		settled: func(*x509.Certificate, time.Time) bool { return true },
		parts: []func(context.Context) error{func(ctx context.Context) error {
			return library.Start(quietly(ctx, withoutContent))
		}},
	}, nil
}

// withoutContent lets through only errors that name a path and a reason of the operating system.
func withoutContent(err error) error {
	if path := new(fs.PathError); errors.As(err, &path) {
		return path
	}
	return errNotAPair
}
