package certs

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// authorityLife and leafLife are how long an authority and a certificate are valid. Both are
	// renewed when two thirds of that are over.
	authorityLife, leafLife = 365 * 24 * time.Hour, 7 * 24 * time.Hour
	// overlap is how long an authority stays trusted after another has taken its place. It only needs to
	// be longer than a replica can be cut off from the API server and still be called by it. Someone who
	// replaces an authority because its key leaked waits this long.
	overlap = time.Hour
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
	// SecretName is the Secret that holds the authority.
	SecretName string
}

// Configuration names a MutatingWebhookConfiguration, or a ValidatingWebhookConfiguration.
type Configuration struct {
	Name       string
	Validating bool
}

func (c Configuration) resource() string {
	if c.Validating {
		return "validatingwebhookconfigurations"
	}
	return "mutatingwebhookconfigurations"
}

// FromAuthority is the source that signs its own certificates, for <service>.<namespace>.svc and
// <service>.<namespace>, under an authority that all replicas share through one Secret.
//
// The injector makes the Secret, and replaces the authority in it when it is two thirds through its
// life, or the Secret was deleted or damaged. It replaces at once: the old authority is gone from the
// Secret, and every replica signs itself a new certificate that nobody trusts yet. So that no admission
// fails meanwhile, [Source] goes on serving the old certificate, the injector has the API server trust
// both authorities, and the new certificate is served when that has been so for a few seconds. The old
// authority is dropped an hour later.
//
// What this needs, by name where a name is given:
//
//	Role:        secrets                        create
//	Role:        secrets/<SecretName>           list, watch, patch
//	ClusterRole: mutatingwebhookconfigurations/<Configuration>, or validating…:  patch, and if possible list, watch
//
// Without list and watch, a caBundle that someone overwrote is put right within a minute instead of at once.
//
// It fails when a name is missing, or the REST config makes no client.
func FromAuthority(o Authority) (*Source, error) {
	if o.RESTConfig == nil || o.Namespace == "" || o.Service == "" || o.Configuration.Name == "" || o.SecretName == "" {
		return nil, errors.New("self-managed serving certificate: namespace, service, webhook configuration and Secret must be named")
	}
	injector, err := newInjector(o)
	if err != nil {
		return nil, fmt.Errorf("self-managed serving certificate: REST config: %w", err)
	}
	return injector.source(), nil
}
