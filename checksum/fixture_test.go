package checksum_test

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
)

// What every test of this package may use: two keys, two sources, contents.

const namespace = "shop"

var (
	message  = checksum.Source{Kind: checksum.ConfigMap, Name: "web-message"}
	password = checksum.Source{Kind: checksum.Secret, Name: "db-password"}
)

func key(material byte) checksum.Key {
	k, err := checksum.NewKey(bytes.Repeat([]byte{material}, checksum.KeySize))
	if err != nil {
		panic(err)
	}
	return k
}

// text condenses a ConfigMap's data, given as name, value, name, value.
func text(pairs ...string) *checksum.Content {
	data := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = pairs[i+1]
	}
	return checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: data})
}

// blob condenses a ConfigMap's binaryData.
func blob(pairs ...string) *checksum.Content {
	data := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = []byte(pairs[i+1])
	}
	return checksum.ContentOfConfigMap(&corev1.ConfigMap{BinaryData: data})
}

// selected joins references to one source.
func selected(t *testing.T, policy checksum.Policy, references ...checksum.Reference) checksum.Selection {
	t.Helper()
	selections := checksum.Selections(references, policy)
	if len(selections) != 1 {
		t.Fatalf("%d selections, want one", len(selections))
	}
	return selections[0]
}

// envFrom, env and optional build references the way most tests need them.
func envFrom(source checksum.Source) checksum.Reference {
	return checksum.Reference{Source: source, Use: checksum.Startup, All: true, Env: true}
}

func env(source checksum.Source, name string) checksum.Reference {
	return checksum.Reference{Source: source, Use: checksum.Startup, Keys: []string{name}, RequiredKeys: []string{name}, Env: true}
}

func mounted(source checksum.Source, items ...string) checksum.Reference {
	return checksum.Reference{Source: source, Use: checksum.Live, All: len(items) == 0, Keys: items, RequiredKeys: items}
}

func optional(r checksum.Reference) checksum.Reference {
	r.Optional = true
	return r
}

func used(use checksum.Use, r checksum.Reference) checksum.Reference {
	r.Use = use
	return r
}
