package checksum

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// What users write and read; the strings are the public interface.
const (
	// InjectLabel opts a Namespace or one workload in or out.
	InjectLabel = "configstamp.dev/inject"
	// InjectEnabled opts in.
	InjectEnabled = "enabled"
	// InjectDisabled opts one workload out.
	InjectDisabled = "disabled"
	// BaselineAnnotation holds the baseline, on a workload's own metadata.
	BaselineAnnotation = "configstamp.dev/baseline"

	stampDomain = ".configstamp.dev/"
)

// An annotation's name part holds 63 characters, an object's name up to 253.
const (
	nameLimit     = 63
	shortenedHead = 40
	shortenedHash = nameLimit - shortenedHead - 1
)

// StampKey is the annotation on a pod template that holds the digest of a
// source. A name that does not fit is cut to 40 characters, "_" (which no
// object's name may hold) and 22 hex of its hash, so no two share a stamp.
func StampKey(source Source) string {
	var room [stampKeyRoom]byte
	return string(appendStampKey(room[:0], source))
}

// stampKeyRoom is what a StampKey takes at most, in bytes.
const stampKeyRoom = len(SecretProviderClass) + len(stampDomain) + nameLimit

func appendStampKey(key []byte, source Source) []byte {
	key = append(append(key, source.Kind...), stampDomain...)
	if len(source.Name) <= nameLimit {
		return append(key, source.Name...)
	}
	sum := sha256.Sum256([]byte(source.Name))
	key = append(append(key, source.Name[:shortenedHead]...), '_')
	return append(key, hex.EncodeToString(sum[:])[:shortenedHash]...)
}

// IsStampKey reports whether an annotation is one of ours on a pod template.
func IsStampKey(annotation string) bool {
	kind, _, found := strings.Cut(annotation, stampDomain)
	return found && Kind(kind).known()
}

// StampedSource is the source that an annotation on a pod template is the stamp of;
// false when it is none of ours, or when the source's name was cut.
func StampedSource(annotation string) (Source, bool) {
	kind, name, found := strings.Cut(annotation, stampDomain)
	source := Source{Kind: Kind(kind), Name: name}
	return source, found && source.Kind.known() && !strings.Contains(name, "_")
}

// Stamps picks our annotations out of a pod template's.
func Stamps(annotations map[string]string) map[string]string {
	var stamps map[string]string
	for key, value := range annotations {
		if IsStampKey(key) {
			if stamps == nil {
				stamps = map[string]string{}
			}
			stamps[key] = value
		}
	}
	return stamps
}

// Records is what is on record about the content that a workload's pods
// started with: the stamps of its template by annotation, and its baseline.
type Records struct {
	Stamps   map[string]string
	Baseline map[Source]string
}

// Of is the value on record for a source. The baseline is the later knowledge.
func (r Records) Of(source Source) (string, bool) {
	if value, ok := r.Baseline[source]; ok {
		return value, true
	}
	if len(r.Stamps) == 0 {
		return "", false
	}
	var room [stampKeyRoom]byte
	value, ok := r.Stamps[string(appendStampKey(room[:0], source))]
	return value, ok
}

func (r Records) empty() bool { return len(r.Stamps) == 0 && r.Baseline == nil }

// Equal reports whether two records say the same.
func (r Records) Equal(other Records) bool {
	return maps.Equal(r.Stamps, other.Stamps) && maps.Equal(r.Baseline, other.Baseline) && (r.Baseline == nil) == (other.Baseline == nil)
}

// ParseBaseline reads the value of BaselineAnnotation; "" is none, nil.
// Entries for sources of a kind that this version does not know (a newer one
// was here) are passed over.
func ParseBaseline(text string) (map[Source]string, error) {
	if text == "" {
		return nil, nil
	}
	var entries map[string]string
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, fmt.Errorf("reading annotation %s: it is not a JSON object of texts", BaselineAnnotation)
	}
	baseline := make(map[Source]string, len(entries))
	for name, value := range entries {
		if source, err := ParseSource(name); err == nil {
			baseline[source] = value
		}
	}
	return baseline, nil
}

// FormatBaseline writes a baseline, "" when it is nil. Equal baselines give
// equal text.
func FormatBaseline(baseline map[Source]string) string {
	if baseline == nil {
		return ""
	}
	text, err := json.Marshal(baseline) // sorts keys
	if err != nil {
		return "" // a map of texts always marshals
	}
	return string(text)
}
