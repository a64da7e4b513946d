package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// Authorities are those that sign the certificates of who may call, as a file names them. Make
// them with AuthoritiesFrom. All methods are safe for concurrent use.
type Authorities struct {
	file  string
	every time.Duration
	pool  atomic.Pointer[x509.CertPool]

	read []byte // what it was made of
}

// errNoAuthority quotes nothing of what was read.
var errNoAuthority = errors.New("the file holds no certificate in PEM")

// AuthoritiesFrom reads a file of certificates in PEM, and follows it while Run runs. While it
// has never been read, there is none, so that nobody may call; one that cannot be read any more
// leaves those of before in place.
func AuthoritiesFrom(ctx context.Context, file string) *Authorities {
	a := &Authorities{file: file, every: readEvery}
	a.pool.Store(x509.NewCertPool())
	_ = a.load(ctx) // Run tells what fails
	return a
}

// Pool is those that count now.
func (a *Authorities) Pool() *x509.CertPool { return a.pool.Load() }

// Run reads the file until ctx ends, and at least once. It may be called once.
func (a *Authorities) Run(ctx context.Context) {
	again(ctx, a.every, a.load, "The authorities of clients cannot be read, will try again")
}

// load's errors name a path and a reason of the operating system, and nothing that was read.
func (a *Authorities) load(ctx context.Context) error {
	text, err := os.ReadFile(a.file)
	if err != nil || bytes.Equal(text, a.read) {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return errNoAuthority
	}
	klog.FromContext(ctx).Info("Clients need a certificate of these authorities", "file", a.file)
	a.read = text
	a.pool.Store(pool)
	return nil
}

// again does something until ctx ends, and at least once. What fails is logged, each reason once
// in a while.
func again(ctx context.Context, every time.Duration, do func(context.Context) error, failed string) {
	var said reminder
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := do(ctx); err != nil && said.due(err) {
			klog.FromContext(ctx).Error(err, failed)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
