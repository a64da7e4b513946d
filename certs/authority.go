package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// DefaultSecretName is the Secret that the authority is kept in, unless told otherwise.
	DefaultSecretName = "configstamp-authority" //nolint:gosec // a name
	// DefaultOverlap is how long an authority stays trusted after another has taken its place.
	DefaultOverlap = time.Hour
)

// Authority says how configstamp signs its own serving certificate, and who is to trust it.
type Authority struct {
	// RESTConfig reaches the API server. Only Secrets and our webhook configuration are touched.
	RESTConfig *rest.Config
	// Namespace is configstamp's own, in which the Service and the Secret live.
	Namespace string
	// Service is the Service that the API server calls the webhook by; it gives the DNS names.
	Service string
	// Configuration is the webhook configuration by which the API server calls this process,
	// each webhook of which gets the caBundle. It may come later, or go and come again.
	Configuration Configuration
	// SecretName is the Secret that holds the authority; "" means DefaultSecretName.
	SecretName string
	// CADuration and LeafDuration are how long an authority and a certificate are valid; 0 means
	// 365 days and 7 days. Both are renewed when two thirds of that are over.
	CADuration, LeafDuration time.Duration
	// Overlap is how long an authority stays trusted after another has taken its place; 0 means
	// DefaultOverlap. It only needs to be longer than a replica can be cut off from the API server
	// and still be called by it. Someone who replaces an authority because its key leaked waits this long.
	Overlap time.Duration
}

// Configuration names a MutatingWebhookConfiguration, or a ValidatingWebhookConfiguration.
type Configuration struct {
	Name       string
	Validating bool
}

// FromAuthority is the source that signs its own certificates, for <service>.<namespace>.svc and
// <service>.<namespace>, under an authority that all replicas share through one Secret.
//
// The injector makes the Secret, and replaces the authority in it when it is two thirds through its
// life, or the Secret was deleted or damaged. It replaces at once: the old authority is gone from the
// Secret, and every replica signs itself a new certificate that nobody trusts yet. So that no admission
// fails meanwhile, [Source] goes on serving the old certificate, the injector has the API server trust
// both authorities, and the new certificate is served when that has been so for a few seconds. The old
// authority is dropped after Overlap.
//
// What this needs, by name where a name is given:
//
//	Role:        secrets                        create
//	Role:        secrets/<SecretName>           list, watch, patch
//	ClusterRole: mutatingwebhookconfigurations/<Configuration>, or validating…:  patch, and if possible list, watch
//
// Without list and watch, a caBundle that someone overwrote is put right within a minute instead of at once.
//
// It fails when a name is missing, a duration is negative, a certificate would outlive its authority,
// or the REST config makes no client.
func FromAuthority(o Authority) (*Source, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("self-managed serving certificate: %w", err)
	}
	injector, err := newInjector(o)
	if err != nil {
		return nil, fmt.Errorf("self-managed serving certificate: REST config: %w", err)
	}
	return injector.source(), nil
}

func (o Authority) withDefaults() Authority {
	if o.SecretName == "" {
		o.SecretName = DefaultSecretName
	}
	if o.CADuration == 0 {
		o.CADuration = 365 * 24 * time.Hour
	}
	if o.LeafDuration == 0 {
		o.LeafDuration = 7 * 24 * time.Hour
	}
	if o.Overlap == 0 {
		o.Overlap = DefaultOverlap
	}
	return o
}

// names are the DNS names that the API server may call us by.
func (o Authority) names() []string {
	return []string{o.Service + "." + o.Namespace + ".svc", o.Service + "." + o.Namespace}
}

func (o Authority) validate() error {
	switch {
	case o.RESTConfig == nil:
		return errors.New("a REST config is needed")
	case o.Namespace == "" || o.Service == "" || o.Configuration.Name == "":
		return errors.New("namespace, service and webhook configuration must be named")
	case o.CADuration < 0 || o.LeafDuration < 0 || o.Overlap < 0:
		return errors.New("a duration cannot be negative")
	case o.LeafDuration >= o.CADuration:
		return errors.New("a certificate must not outlive its authority")
	}
	return nil
}

// signed says whether an authority has signed a certificate. The names of our authorities are all the same, so only the signature tells.
func signed(leaf, ca *x509.Certificate) bool { return leaf.CheckSignatureFrom(ca) == nil }
