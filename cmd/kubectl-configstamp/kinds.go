package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// servedKinds returns the kinds of a table that the cluster serves, custom kinds under the name that it gives them. A kind
// whose group does not answer stays: a list of it says that it could not be looked at.
func (p *plugin) servedKinds(ctx context.Context, table workload.Table) (served workload.Table, err error) {
	config, err := p.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config) // kubectl's cache does not tell dead groups from missing ones
	if err != nil {
		return nil, fmt.Errorf("making a client of the cluster: %w", err)
	}
	for _, kind := range table {
		if !kind.Custom { // every cluster has it
			served = append(served, kind)
			continue
		}
		list, err := client.ServerResourcesForGroupVersionWithContext(ctx, schema.GroupVersion{Group: kind.Group, Version: kind.Version}.String())
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			served = append(served, kind)
		default:
			i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource })
			if i >= 0 {
				served = append(served, kind.Named(list.APIResources[i].Kind))
			}
		}
	}
	return served, nil
}

// findKind returns the kind that a word names: deployments, deployment or deploy, in any case, with or without its group
// after a dot.
func findKind(table workload.Table, word string) (*workload.Kind, error) {
	word = strings.ToLower(word)
	plain, group, hasGroup := strings.Cut(word, ".")
	i := slices.IndexFunc(table, func(kind *workload.Kind) bool {
		named := plain == kind.Resource || plain == strings.ToLower(kind.Name) || plain == kind.Short && plain != ""
		return named && (!hasGroup || group == kind.Group || strings.HasSuffix(group, "."+kind.Group))
	})
	if i < 0 {
		known := make([]string, len(table))
		for i, kind := range table {
			known[i] = strings.ToLower(kind.Name)
		}
		return nil, fmt.Errorf("%q is not a kind of workload; there are: %s", word, strings.Join(known, ", "))
	}
	return table[i], nil
}

// sourceResource returns the resource of a kind of sources.
func sourceResource(kind checksum.Kind) schema.GroupVersionResource {
	switch kind {
	case checksum.Secret:
		return schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	case checksum.SecretProviderClass:
		return schema.GroupVersionResource{Group: "secrets-store.csi.x-k8s.io", Version: "v1", Resource: "secretproviderclasses"}
	}
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}
