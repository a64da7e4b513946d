package inspect

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/internal/seen"
)

// needed lists what the service account has to be allowed: as the chart's roles give it
// (deploy/chart/templates/rbac.yaml).
func needed(settings *seen.Settings, installation, name string) (rights []seen.Right) {
	add := func(namespace, group, resource, object string, verbs ...string) {
		for _, verb := range verbs {
			rights = append(rights, seen.Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: object})
		}
	}
	namespaces := settings.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
		add("", "", "namespaces", "", "get", "list", "watch")
		add("", "", "nodes", "", "get")
	}
	for _, namespace := range namespaces {
		add(namespace, "", "configmaps", "", "get", "list", "watch")
		add(namespace, "", "secrets", "", "get", "list", "watch")
		add(namespace, "", "pods", "", "list")
		if settings.Pins {
			add(namespace, "", "configmaps", "", "create", "delete")
			add(namespace, "apps", "replicasets", "", "list")
			add(namespace, "apps", "controllerrevisions", "", "list")
			add(namespace, "batch", "jobs", "", "list")
		}
		add(namespace, "events.k8s.io", "events", "", "create")
		for _, kind := range settings.Kinds.Readmitted() {
			add(namespace, kind.Group, kind.Resource, "", "get", "list", "watch", "patch")
		}
		if namespace != "" {
			add(namespace, "", "namespaces", namespace, "get")
		}
	}
	add(installation, "", "secrets", name+"-key", "get", "update")
	add(installation, "coordination.k8s.io", "leases", "", "create")
	add(installation, "coordination.k8s.io", "leases", name+"-controller", "get", "update")
	return rights
}

// rights asks what configstamp's service account may do, by SubjectAccessReviews, which
// leave nothing behind. Where the user may not ask, it looks whether the roles are there.
func (c *Cluster) rights(ctx context.Context, settings *seen.Settings, name string) seen.Rights {
	found := seen.Rights{Account: "system:serviceaccount:" + c.installation + ":" + name}
	needs := needed(settings, c.installation, name)
	first, err := c.may(ctx, found.Account, needs[0])
	switch {
	case apierrors.IsForbidden(err):
		found.Roles = c.roles(ctx, settings, name)
		return found
	case c.doubt("the rights of "+found.Account, err):
		return found
	case !first:
		found.Missing = append(found.Missing, needs[0])
	}
	var mu sync.Mutex
	err = inParallel(ctx, needs[1:], func(ctx context.Context, right seen.Right) error {
		allowed, err := c.may(ctx, found.Account, right)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && !allowed {
			found.Missing = append(found.Missing, right)
		}
		return err
	})
	found.Looked = !c.doubt("the rights of "+found.Account, err)
	slices.SortFunc(found.Missing, func(a, b seen.Right) int { return slices.Index(needs, a) - slices.Index(needs, b) })
	return found
}

// may asks whether an account may do something.
func (c *Cluster) may(ctx context.Context, account string, right seen.Right) (allowed bool, err error) {
	type attributes struct {
		Namespace string `json:"namespace,omitempty"`
		Verb      string `json:"verb"`
		Group     string `json:"group,omitempty"`
		Resource  string `json:"resource"`
		Name      string `json:"name,omitempty"`
	}
	type spec struct {
		User       string     `json:"user"`
		Groups     []string   `json:"groups"`
		Attributes attributes `json:"resourceAttributes"`
	}
	body, err := json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       spec   `json:"spec"`
	}{"authorization.k8s.io/v1", "SubjectAccessReview", spec{
		User: account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + c.installation, "system:authenticated"},
		Attributes: attributes{right.Namespace, right.Verb, right.Group, right.Resource, right.Name},
	}})
	if err != nil {
		return false, fmt.Errorf("asking whether %s may %s: %w", account, right, err)
	}
	raw, err := c.client.Post().AbsPath("/apis/authorization.k8s.io/v1/subjectaccessreviews").SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Raw()
	if err != nil {
		return false, err
	}
	var read struct {
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	err = unmarshal(raw, &read)
	return read.Status.Allowed, err
}

// roles looks for the roles that the chart makes, and their bindings.
func (c *Cluster) roles(ctx context.Context, settings *seen.Settings, name string) (roles []seen.Role) {
	look := func(namespace, resource, kind string) {
		raw, looked := c.single(ctx, query{gvr: v1("rbac.authorization.k8s.io", resource), namespace: namespace, name: name, metadata: true})
		roles = append(roles, seen.Role{Text: kind + "/" + name, Namespace: namespace, Looked: looked, Exists: raw != nil})
	}
	if len(settings.Namespaces) == 0 {
		look("", "clusterroles", "clusterrole")
		look("", "clusterrolebindings", "clusterrolebinding")
	}
	for _, namespace := range append(slices.Clone(settings.Namespaces), c.installation) {
		look(namespace, "roles", "role")
		look(namespace, "rolebindings", "rolebinding")
	}
	return roles
}
