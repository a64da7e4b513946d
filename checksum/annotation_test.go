package checksum_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/configstamp/configstamp/checksum"
)

// hashOf is a hash under a key in hex, without one for "".
func hashOf(t *testing.T, key string) checksum.AnnotationHash {
	t.Helper()
	if key == "" {
		return checksum.AnnotationHash{}
	}
	material, err := hex.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	h, err := checksum.KeyedHash(material)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A value that becomes another is a rollout for everybody who uses it.
func TestVectorsOfAnnotationsNeverChange(t *testing.T) {
	raw, err := os.ReadFile("testdata/vectors-annotation.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) < 8 {
		t.Fatalf("%d vectors: some were taken away", len(file.Vectors))
	}
	for _, v := range file.Vectors {
		t.Run(v.About, func(t *testing.T) {
			value, counts := hashOf(t, v.Key).Of(v.Namespace, v.selection(t), v.content(t))
			if value != v.Value || !counts {
				t.Errorf("value %q (counts: %v), want %q", value, counts, v.Value)
			}
		})
	}
}

// What differs in anything has another value; nothing of a stamp is in it.
func TestAnnotationValuesDiffer(t *testing.T) {
	all := selected(t, checksum.DefaultPolicy(), envFrom(message))
	one := selected(t, checksum.DefaultPolicy(), env(message, "a"))
	other := selected(t, checksum.DefaultPolicy(), envFrom(checksum.Source{Kind: checksum.ConfigMap, Name: "other"}))
	material := bytes.Repeat([]byte{1}, checksum.KeySize)
	content := text("a", "1", "b", "2")
	seen := map[string]string{}
	for about, value := range map[string]func() (string, bool){
		"a key":              func() (string, bool) { return hashOf(t, hex.EncodeToString(material)).Of("shop", all, content) },
		"a longer key":       func() (string, bool) { return hashOf(t, hex.EncodeToString(material)+"01").Of("shop", all, content) },
		"no key":             func() (string, bool) { return checksum.AnnotationHash{}.Of("shop", all, content) },
		"one key of it":      func() (string, bool) { return checksum.AnnotationHash{}.Of("shop", one, content) },
		"another source":     func() (string, bool) { return checksum.AnnotationHash{}.Of("shop", other, content) },
		"another namespace":  func() (string, bool) { return checksum.AnnotationHash{}.Of("", all, content) },
		"other content":      func() (string, bool) { return checksum.AnnotationHash{}.Of("shop", all, text("a", "1", "b", "3")) },
		"a key goes":         func() (string, bool) { return checksum.AnnotationHash{}.Of("shop", one, text("b", "2")) },
		"no key, seen again": func() (string, bool) { return checksum.AnnotationHash{}.Of("shop", one, text("a", "3")) },
	} {
		got, counts := value()
		if len(got) != 64 || !counts {
			t.Errorf("%s: %q", about, got)
		}
		if before, twice := seen[got]; twice {
			t.Errorf("%s and %s have one value", before, about)
		}
		seen[got] = about
		stamp := checksum.NewRing(key(1)).Digest("shop", all, content)
		if strings.Contains(got, stamp[strings.LastIndex(stamp, ":")+1:]) {
			t.Errorf("%s: the value begins like a stamp under the same key", about)
		}
	}
}

// What does not count has no value.
func TestNoAnnotationOfWhatDoesNotCount(t *testing.T) {
	for about, content := range map[string]*checksum.Content{"absent": nil, "ignored": checksum.ContentOfConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"configstamp.dev/ignore": "true"}}})} {
		if value, counts := (checksum.AnnotationHash{}).Of("shop", selected(t, checksum.DefaultPolicy(), envFrom(message)), content); counts || value != "" {
			t.Errorf("%s: %q", about, value)
		}
	}
}

func TestAKeyOfAnnotationsIsLongAndSecret(t *testing.T) {
	if _, err := checksum.KeyedHash(bytes.Repeat([]byte("k"), 31)); err == nil || strings.Contains(err.Error(), "kk") {
		t.Errorf("error of a short key: %v", err)
	}
	h, err := checksum.KeyedHash(bytes.Repeat([]byte("k"), 32))
	if err != nil || !h.Keyed() || (checksum.AnnotationHash{}).Keyed() {
		t.Fatalf("keyed %v, error %v", h.Keyed(), err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, h); strings.Contains(text, "kkk") || strings.Contains(text, "107 107") || strings.Contains(text, "6b6b") {
			t.Errorf("%s prints the key: %s", verb, text)
		}
	}
}

// A name of any length makes an annotation that the API server takes, and no two make one.
func TestAnnotationKeysAreValidAndDiffer(t *testing.T) {
	seen := map[string]checksum.Source{}
	for _, kind := range []checksum.Kind{checksum.ConfigMap, checksum.Secret} {
		for length := 1; length <= 253; length++ {
			for _, end := range []string{"a", "b"} {
				name := strings.Repeat("x", length-1) + end
				if length > 45 {
					name = name[:29] + "." + name[30:] // at the cut
				}
				source := checksum.Source{Kind: kind, Name: name}
				annotation := checksum.AnnotationKey(source)
				if problems := validation.IsQualifiedName(annotation); len(problems) > 0 {
					t.Fatalf("%s: %v", annotation, problems)
				}
				if other, twice := seen[annotation]; twice {
					t.Fatalf("%s is of %s and %s", annotation, source, other)
				}
				seen[annotation] = source
				if checksum.IsStampKey(annotation) || checksum.IsOursOnTemplate(annotation) {
					t.Fatalf("%s is taken for a stamp", annotation)
				}
			}
		}
	}
}
