package inspect

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// SourceResource is where sources of a kind are.
func SourceResource(kind checksum.Kind) schema.GroupVersionResource {
	switch kind {
	case checksum.Secret:
		return v1("", "secrets")
	case checksum.SecretProviderClass:
		return v1("secrets-store.csi.x-k8s.io", "secretproviderclasses")
	}
	return v1("", "configmaps")
}

// Source reads the metadata of one source, never its content.
func (c *Cluster) Source(ctx context.Context, namespace string, source checksum.Source) (*seen.Source, error) {
	q := query{gvr: SourceResource(source.Kind), namespace: namespace, name: source.Name, metadata: true}
	raw, forbidden, err := c.look(ctx, q)
	switch {
	case err != nil:
		return nil, err
	case forbidden:
		c.miss(q.String(), "forbidden")
		fallthrough
	case raw == nil:
		return &seen.Source{Namespace: namespace, Source: source, Looked: !forbidden && !c.missed(q.String())}, nil
	}
	return sourceOf(source.Kind, raw), nil
}

// Sources reads the metadata of all sources of a namespace ("" for all), never their
// content, of the kinds that count by some policy.
func (c *Cluster) Sources(ctx context.Context, settings *seen.Settings, namespace string) ([]*seen.Source, error) {
	var mu sync.Mutex
	var all []*seen.Source
	var kinds []checksum.Kind
	for _, kind := range checksum.Kinds() {
		if settings.Policy.Serves(kind) {
			kinds = append(kinds, kind)
		}
	}
	err := inParallel(ctx, kinds, func(ctx context.Context, kind checksum.Kind) error {
		return c.each(ctx, query{gvr: SourceResource(kind), namespace: namespace, metadata: true}, func(raw []byte) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, sourceOf(kind, raw))
			return nil
		})
	})
	return all, err
}

func sourceOf(kind checksum.Kind, raw []byte) *seen.Source {
	meta := metadataOf(raw)
	s := &seen.Source{
		Namespace: meta.Namespace, Source: checksum.Source{Kind: kind, Name: meta.Name}, Looked: true, Exists: true, Version: meta.Version,
		Created: meta.Created.UTC(), Policy: checksum.SourcePolicyOf(meta.Annotations), Ours: checksum.SettingsOf(meta.Annotations),
		Writers: meta.writers([]string{"data"}, []string{"binaryData"}, []string{"stringData"}, []string{"spec"}),
	}
	if written := meta.writer(checksum.ResumeAnnotation).At; s.Policy != nil && !written.IsZero() {
		s.Policy.ResumeWritten(written)
	}
	s.Keys, s.Wrote = meta.keys()
	return s
}

// keys are those of data and binaryData that somebody owns, nil when nobody owns anything;
// wrote are those of who wrote such last, nil if they own anything else.
func (m *metadata) keys() (all, wrote map[string]bool) {
	var last time.Time
	for _, entry := range m.ManagedFields {
		own, alone := keysIn(entry.Fields)
		if all == nil {
			all = map[string]bool{}
		}
		maps.Copy(all, own)
		switch {
		case len(own) == 0 || entry.Time.Before(last):
			continue
		case entry.Time.After(last):
			wrote = map[string]bool{}
		}
		if last = entry.Time; wrote == nil || !alone {
			wrote = nil
			continue
		}
		maps.Copy(wrote, own)
	}
	return all, wrote
}

// keysIn are the keys in a set of fields (FieldsV1); alone tells that there is nothing else.
func keysIn(set jsontext.Value) (keys map[string]bool, alone bool) {
	var fields map[string]jsontext.Value
	_ = unmarshal(set, &fields) // what cannot be read owns nothing
	keys, alone = map[string]bool{}, true
	for of, inner := range fields {
		if of != "f:data" && of != "f:binaryData" {
			alone = false
			continue
		}
		var names map[string]jsontext.Value
		_ = unmarshal(inner, &names)
		for name := range names {
			if key, found := strings.CutPrefix(name, "f:"); found {
				keys[key] = true
			}
		}
	}
	return keys, alone
}

// Namespaces reads what Namespaces say, by name; no names: of all. One that could not be
// looked at is not among them.
func (c *Cluster) Namespaces(ctx context.Context, names ...string) (map[string]seen.Namespace, error) {
	var mu sync.Mutex
	all := map[string]seen.Namespace{}
	take := func(raw []byte) error {
		meta := metadataOf(raw)
		of := metav1.ObjectMeta{Labels: meta.Labels, Annotations: meta.Annotations}
		if !meta.Deleted.IsZero() {
			of.DeletionTimestamp = &metav1.Time{Time: meta.Deleted}
		}
		mu.Lock()
		defer mu.Unlock()
		all[meta.Name] = seen.Namespace{Namespace: checksum.NamespaceOf(&of), Known: true, Labels: meta.Labels, Annotations: meta.Annotations, Paused: meta.writer(checksum.PauseAnnotation)}
		return nil
	}
	q := query{gvr: v1("", "namespaces"), metadata: true, unscoped: true}
	if len(names) == 0 {
		return all, c.each(ctx, q, take)
	}
	err := inParallel(ctx, names, func(ctx context.Context, name string) error {
		q := q
		q.name = name
		raw, err := c.one(ctx, q)
		if raw == nil || err != nil {
			return err
		}
		return take(raw)
	})
	return all, err
}
