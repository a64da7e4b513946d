package certs

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/objects"
)

// configuration is the webhook configuration by which the API server calls us, of one kind
// or the other.
type configuration struct {
	resource, name string
	rest           rest.Interface
	patch          func(ctx context.Context, kind types.PatchType, patch []byte) (bundles, error)
}

// bundles are the caBundles of a configuration's webhooks, at one of its versions.
type bundles struct {
	version  string
	webhooks []bundle
}

type bundle struct {
	webhook  string
	caBundle []byte
}

// trusted is what they have the API server trust.
func (b *bundles) trusted() (found trust) {
	for _, one := range b.webhooks {
		found = found.and(readTrust(one.caBundle))
	}
	return found
}

func newConfiguration(o *Authority) (*configuration, error) {
	if o.Configuration.Validating {
		return configurationOf(o, "validatingwebhookconfigurations", func(c *admissionv1.ValidatingWebhookConfiguration) bundles {
			found := bundles{version: c.ResourceVersion}
			for i := range c.Webhooks {
				found.webhooks = append(found.webhooks, bundle{c.Webhooks[i].Name, c.Webhooks[i].ClientConfig.CABundle})
			}
			return found
		})
	}
	return configurationOf(o, "mutatingwebhookconfigurations", func(c *admissionv1.MutatingWebhookConfiguration) bundles {
		found := bundles{version: c.ResourceVersion}
		for i := range c.Webhooks {
			found.webhooks = append(found.webhooks, bundle{c.Webhooks[i].Name, c.Webhooks[i].ClientConfig.CABundle})
		}
		return found
	})
}

func configurationOf[T runtime.Object](o *Authority, resource string, read func(T) bundles) (*configuration, error) {
	client, err := objects.New[T](o.RESTConfig, admissionv1.SchemeGroupVersion, admissionv1.AddToScheme, resource, "")
	if err != nil {
		return nil, err
	}
	name := o.Configuration.Name
	return &configuration{resource: resource, name: name, rest: client.REST, patch: func(ctx context.Context, kind types.PatchType, patch []byte) (bundles, error) {
		object, err := client.Patch(ctx, name, kind, patch, manager)
		if err != nil {
			return bundles{}, err
		}
		return read(object), nil
	}}, nil
}

// String names it for people: mutatingwebhookconfiguration configstamp.
func (c *configuration) String() string { return c.kind() + " " + c.name }

func (c *configuration) kind() string { return strings.TrimSuffix(c.resource, "s") }

// read reads it live, by an empty patch.
func (c *configuration) read(ctx context.Context) (bundles, error) {
	found, err := c.patch(ctx, types.MergePatchType, []byte(`{}`))
	if err != nil {
		return bundles{}, fmt.Errorf("reading %s by an empty patch: %w", c, err)
	}
	return found, nil
}
