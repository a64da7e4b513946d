package checksum_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
)

// vector is one entry of testdata/vectors-v1.json.
type vector struct {
	About, Key, Namespace, Name string
	Kind                        checksum.Kind
	// Selection is "all" or a list of keys.
	Selection        any
	Exists           *bool
	Data, BinaryData map[string]string
	Repeat           map[string]struct {
		Text  string
		Times int
	}
	KeyID, SelectionID, Value string
}

func TestVectorsOfTheFormatV1NeverChange(t *testing.T) {
	raw, err := os.ReadFile("testdata/vectors-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) < 49 {
		t.Fatalf("%d vectors: some were taken away", len(file.Vectors))
	}
	for _, v := range file.Vectors {
		t.Run(v.About, func(t *testing.T) {
			material, err := hex.DecodeString(v.Key)
			if err != nil {
				t.Fatal(err)
			}
			key, err := checksum.NewKey(material)
			if err != nil {
				t.Fatal(err)
			}
			if key.ID() != v.KeyID {
				t.Errorf("key id %s, want %s", key.ID(), v.KeyID)
			}
			selection := v.selection(t)
			if selection.ID() != v.SelectionID {
				t.Errorf("selection id %s, want %s", selection.ID(), v.SelectionID)
			}
			ring, content := checksum.NewRing(key), v.content(t)
			if got := ring.Digest(v.Namespace, selection, content); got != v.Value {
				t.Errorf("value\n%s, want\n%s", got, v.Value)
			}
			if got := ring.Assess(v.Namespace, selection, v.Value, true, content); got != checksum.True {
				t.Errorf("its own value is assessed as %v", got)
			}
		})
	}
}

func (v *vector) selection(t *testing.T) checksum.Selection {
	t.Helper()
	source := checksum.Source{Kind: v.Kind, Name: v.Name}
	reference := checksum.Reference{Source: source, Use: checksum.Startup, Optional: true, All: v.Selection == "all"}
	if list, ok := v.Selection.([]any); ok {
		for _, key := range list {
			reference.Keys = append(reference.Keys, key.(string))
		}
	} else if !reference.All {
		t.Fatalf("selection %v is neither all nor a list", v.Selection)
	}
	return selected(t, provided(), reference)
}

// content builds the API object, so that the condensing is tested with it.
func (v *vector) content(t *testing.T) *checksum.Content {
	t.Helper()
	if v.Exists != nil && !*v.Exists {
		return nil
	}
	texts, blobs := map[string]string{}, map[string][]byte{}
	for name, text := range v.Data {
		texts[name] = text
	}
	for name, text := range v.BinaryData {
		blobs[name] = decodeBase64(t, text)
	}
	if v.Kind == checksum.SecretProviderClass {
		return checksum.ContentOfVersions(texts)
	}
	if v.Kind == checksum.ConfigMap {
		for name, r := range v.Repeat {
			texts[name] = strings.Repeat(r.Text, r.Times)
		}
		return checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: texts, BinaryData: blobs})
	}
	for name, text := range texts {
		blobs[name] = decodeBase64(t, text)
	}
	for name, r := range v.Repeat {
		blobs[name] = []byte(strings.Repeat(r.Text, r.Times))
	}
	return checksum.ContentOfSecret(&corev1.Secret{Data: blobs})
}

func decodeBase64(t *testing.T, text string) []byte {
	t.Helper()
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}
