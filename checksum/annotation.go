package checksum

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// annotationDomain begins the annotations that charts of Helm's carry, such as
// checksum/config. The API, not we, lets anybody write them: they are no stamps.
const annotationDomain = "checksum/"

// AnnotationKey is the annotation on a pod template by which a pipeline, where no webhook
// stamps, says what a source holds: checksum/configmap.web-message. A name that does
// not fit is cut as in a StampKey, so that no two sources share an annotation.
func AnnotationKey(source Source) string {
	prefix := string(source.Kind) + "."
	if len(prefix)+len(source.Name) <= nameLimit {
		return annotationDomain + prefix + source.Name
	}
	sum := sha256.Sum256([]byte(source.Name))
	return annotationDomain + prefix + source.Name[:shortenedHead-len(prefix)] + "_" + hex.EncodeToString(sum[:])[:shortenedHash]
}

// AnnotationHash makes the values of such annotations: 64 hex digits, as Helm's sha256sum.
// It never changes (testdata/vectors-annotation.json), since each new value is a rollout:
//
//	value   = SHA-256(field("checksum annotation") message), or HMAC-SHA-256 of it under a key
//	message = that of the format v1, see digest.go
//
// The zero AnnotationHash has no key: who reads a value can test guesses of the content.
type AnnotationHash struct {
	// The key is inside a function, as in Key.
	sum func(message []byte) []byte
}

// leastKey is how long a key of a AnnotationHash is at least, in bytes.
const leastKey = 32

// KeyedHash takes leastKey bytes of key material or more.
func KeyedHash(material []byte) (AnnotationHash, error) {
	if len(material) < leastKey {
		return AnnotationHash{}, fmt.Errorf("the key has %d bytes, want %d or more, at random", len(material), leastKey)
	}
	return AnnotationHash{sum: func(message []byte) []byte {
		mac := hmac.New(sha256.New, material)
		mac.Write(message)
		return mac.Sum(nil)
	}}, nil
}

// Keyed reports whether values help nobody to guess.
func (h AnnotationHash) Keyed() bool { return h.sum != nil }

// Of is the value of a selection; content is what the source holds. False: nothing of
// the source counts.
func (h AnnotationHash) Of(namespace string, s Selection, content *Content) (value string, counts bool) {
	s = s.of(content)
	if s.HoldOnly || content == nil {
		return "", false
	}
	text := append(field(nil, "checksum annotation"), message(namespace, &s, content)...)
	if h.Keyed() {
		return hex.EncodeToString(h.sum(text)), true
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), true
}
