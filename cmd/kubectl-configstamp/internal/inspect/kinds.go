package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/internal/workload"
)

// served are those of a table that the cluster serves, custom kinds under the name that it
// gives them. What every cluster has is not asked for.
func (c *Cluster) served(ctx context.Context, table workload.Table) (workload.Table, error) {
	var mu sync.Mutex
	names := map[*workload.Kind]string{}
	err := inParallel(ctx, table, func(ctx context.Context, kind *workload.Kind) error {
		if !kind.Custom {
			return nil
		}
		name, err := c.nameOf(ctx, kind)
		mu.Lock()
		defer mu.Unlock()
		names[kind] = name
		return err
	})
	if err != nil {
		return nil, err
	}
	var kinds workload.Table
	for _, kind := range table {
		switch name := names[kind]; {
		case !kind.Custom:
			kinds = append(kinds, kind)
		case name != "":
			kinds = append(kinds, kind.Named(name))
		}
	}
	return kinds, nil
}

// nameOf is what the cluster calls the objects of a kind, "" when it serves none. A kind whose group does not
// answer keeps its name in the table.
func (c *Cluster) nameOf(ctx context.Context, kind *workload.Kind) (string, error) {
	version := schema.GroupVersion{Group: kind.Group, Version: kind.Version}.String()
	result := c.client.Get().AbsPath("/apis/" + version).Do(ctx)
	switch err := result.Error(); {
	case apierrors.IsNotFound(err):
		return "", nil
	case apierrors.IsForbidden(err):
		c.miss("what "+version+" serves", "forbidden")
		return "", nil
	case refuses(err):
		return kind.Name, nil // a list of it is refused, too, and noted
	case err != nil:
		return "", fmt.Errorf("asking what %s serves: %w", version, err)
	}
	raw, err := result.Raw()
	if err != nil {
		return "", fmt.Errorf("asking what %s serves: %w", version, err)
	}
	var list metav1.APIResourceList
	if err := unmarshal(raw, &list); err != nil {
		return "", fmt.Errorf("reading what %s serves: it does not have the form of a list", version)
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == kind.Resource {
			return list.APIResources[i].Kind, nil
		}
	}
	return "", nil
}

// FindKind finds a kind by what people call it: deployments, deployment, deploy, in any
// case, with or without its group behind a dot.
func FindKind(table workload.Table, word string) (*workload.Kind, error) {
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

// Ref names an object of a kind.
func Ref(kind *workload.Kind, namespace, name string) workload.Ref {
	return workload.Ref{Kind: kind, Namespace: namespace, Name: name}
}
