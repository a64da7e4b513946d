package inspect

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/rollout"
)

// Content reads what a ConfigMap or Secret holds, to compare it with a manifest that its
// user has at hand: its content is hashed at once, and dropped. It is nil when there is
// none; read is false when the user may not look, which is noted.
func (c *Cluster) Content(ctx context.Context, at rollout.SourceRef) (content *checksum.Content, read bool, err error) {
	q := query{gvr: SourceResource(at.Source.Kind), namespace: at.Namespace, name: at.Source.Name}
	raw, forbidden, err := c.look(ctx, q)
	switch {
	case err != nil:
		return nil, false, err
	case forbidden:
		c.miss("the content of "+q.String(), "forbidden")
		return nil, false, nil
	case raw == nil:
		return nil, true, nil
	}
	if at.Source.Kind == checksum.Secret {
		var secret corev1.Secret
		if unmarshal(raw, &secret) != nil {
			return nil, false, fmt.Errorf("reading %s: it does not have the form of a Secret", q.String())
		}
		return checksum.ContentOfSecret(&secret), true, nil
	}
	var cm corev1.ConfigMap
	if unmarshal(raw, &cm) != nil {
		return nil, false, fmt.Errorf("reading %s: it does not have the form of a ConfigMap", q.String())
	}
	return checksum.ContentOfConfigMap(&cm), true, nil
}

// listed are the kinds of sources that could be listed.
func (c *Cluster) listed(settings *seen.Settings, namespace string) map[checksum.Kind]bool {
	listed := map[checksum.Kind]bool{}
	for _, kind := range checksum.Kinds() {
		listed[kind] = settings.Policy.Serves(kind) && c.Listed(kind, namespace)
	}
	return listed
}

// Listed reports whether the sources of a kind could be listed, so that one that is not
// among them does not exist.
func (c *Cluster) Listed(kind checksum.Kind, namespace string) bool {
	q := query{gvr: SourceResource(kind), namespace: namespace}
	for _, gap := range c.Gaps() {
		if gap.What == q.String() {
			return false
		}
	}
	return true
}
