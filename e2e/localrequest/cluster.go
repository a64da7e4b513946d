package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/configstamp/configstamp/checksum"
)

// cluster is all that the webhook asks of an API server: what stands in a file.
type cluster struct {
	namespaces map[string]checksum.Namespace
	contents   map[string]checksum.Contents // by namespace
	ring       *checksum.Ring
}

// read makes a cluster of a manifest with Namespaces, ConfigMaps and Secrets. Its digest
// key is always the same, and no real cluster's.
func read(file string) (*cluster, error) {
	manifest, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := checksum.NewKey(make([]byte, checksum.KeySize))
	if err != nil {
		return nil, err
	}
	c := &cluster{namespaces: map[string]checksum.Namespace{}, contents: map[string]checksum.Contents{}, ring: checksum.NewRing(key)}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err == nil {
			err = c.put(document)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
	}
}

func (c *cluster) put(document []byte) error {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
	if err != nil {
		return err
	}
	switch object := object.(type) {
	case *corev1.Namespace:
		c.namespaces[object.Name] = checksum.NamespaceOf(&object.ObjectMeta)
	case *corev1.ConfigMap:
		c.hold(object.Namespace, checksum.Source{Kind: checksum.ConfigMap, Name: object.Name}, checksum.ContentOfConfigMap(object))
	case *corev1.Secret:
		for key, value := range object.StringData { // the API server does so
			if object.Data == nil {
				object.Data = map[string][]byte{}
			}
			object.Data[key] = []byte(value)
		}
		c.hold(object.Namespace, checksum.Source{Kind: checksum.Secret, Name: object.Name}, checksum.ContentOfSecret(object))
	default:
		return fmt.Errorf("want a Namespace, ConfigMap or Secret, not a %T", object)
	}
	return nil
}

func (c *cluster) hold(namespace string, source checksum.Source, content *checksum.Content) {
	if c.contents[namespace] == nil {
		c.contents[namespace] = checksum.Contents{}
	}
	c.contents[namespace][source] = content
}

// Look implements webhook.Namespaces.
func (c *cluster) Look(_ context.Context, name string) (checksum.Namespace, error) {
	return c.namespaces[name], nil
}

// OptedIn implements webhook.Namespaces.
func (c *cluster) OptedIn(_ context.Context, name string) (bool, error) {
	return c.namespaces[name].OptedIn, nil
}

// Names implements webhook.Sources.
func (c *cluster) Names(namespace string, kind checksum.Kind) (names []string) {
	for source := range c.contents[namespace] {
		if source.Kind == kind {
			names = append(names, source.Name)
		}
	}
	return names
}

// Cached implements webhook.Sources.
func (c *cluster) Cached(namespace string, _ []checksum.Source) (checksum.Contents, error) {
	return c.contents[namespace], nil
}

// Fresh implements webhook.Checker.
func (c *cluster) Fresh(_ context.Context, namespace string, _, _ []checksum.Source) (checksum.Contents, error) {
	return c.contents[namespace], nil
}

// Ring implements webhook.Keys.
func (c *cluster) Ring() *checksum.Ring { return c.ring }

// Refresh implements webhook.Keys: there are no more keys.
func (*cluster) Refresh(context.Context, string) (bool, error) { return false, nil }
