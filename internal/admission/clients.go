package admission

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
)

// Clients are the clients that may call, by their certificates. A client without a certificate that verifies and has one
// of the names gets a TLS alert and nothing else.
type Clients struct {
	// Authorities returns the certificate authorities. It is called at each handshake, and never returns nil.
	Authorities func() *x509.CertPool
	// Names are common names or DNS names of which a certificate has one.
	Names []string
}

var errNotNamed = errors.New("the certificate of the client has none of the names that may call")

// demand returns config with the certificates that these clients need; nil demands none.
func (c *Clients) demand(config *tls.Config) *tls.Config {
	if c == nil {
		return config
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.VerifyConnection = func(state tls.ConnectionState) error {
		leaf := state.PeerCertificates[0]
		if slices.Contains(c.Names, leaf.Subject.CommonName) || slices.ContainsFunc(leaf.DNSNames, func(name string) bool { return slices.Contains(c.Names, name) }) {
			return nil
		}
		return errNotNamed
	}
	each := config.Clone()
	each.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current := config.Clone()
		current.ClientCAs = c.Authorities()
		return current, nil
	}
	return each
}
