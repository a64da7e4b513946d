package checksum

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What users write and read; the strings are the public interface.
const (
	// InjectLabel opts a Namespace or one workload in or out.
	InjectLabel = "configstamp.dev/inject"
	// InjectEnabled opts in.
	InjectEnabled = "enabled"
	// InjectDisabled opts out one workload, and with OptInAll a Namespace.
	InjectDisabled = "disabled"
	// BaselineAnnotation holds the baseline, on a workload's own metadata.
	BaselineAnnotation = "configstamp.dev/baseline"

	// The webhook writes these three if pins are on. Their values in a request are not believed.

	// PinsAnnotation names, on a pod template, the copies of sources that its Pods read.
	PinsAnnotation = "configstamp.dev/pins"
	// PinnedAnnotation names, on a Pod, the copies that it reads.
	PinnedAnnotation = "configstamp.dev/pinned"
	// DeclinedAnnotation holds, on a workload's own metadata, digests of content that an undo declined.
	DeclinedAnnotation = "configstamp.dev/declined"

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

// IsStampKey reports whether an annotation is a stamp.
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

// IsOursOnTemplate reports whether an annotation of a pod template, or of a Pod, is
// one that the webhook writes.
func IsOursOnTemplate(annotation string) bool { return isPin(annotation) || IsStampKey(annotation) }

// OursOnWorkload are the annotations of a workload's own metadata that the webhook writes.
func OursOnWorkload() []string { return []string{BaselineAnnotation, DeclinedAnnotation} }

// IsOursOnWorkload reports whether an annotation is one of OursOnWorkload.
func IsOursOnWorkload(annotation string) bool { return slices.Contains(OursOnWorkload(), annotation) }

func isPin(annotation string) bool {
	return annotation == PinsAnnotation || annotation == PinnedAnnotation
}

// Stamps picks the stamps out of the annotations of a pod template or a Pod.
func Stamps(annotations map[string]string) map[string]string { return pick(annotations, IsStampKey) }

func pick(annotations map[string]string, wanted func(string) bool) map[string]string {
	var picked map[string]string
	for key, value := range annotations {
		if wanted(key) {
			if picked == nil {
				picked = make(map[string]string, len(annotations))
			}
			picked[key] = value
		}
	}
	return picked
}

// Records is what is recorded of the content that a workload's pods started with: the stamps of its template by
// annotation, and its baseline.
type Records struct {
	Stamps   map[string]string
	Baseline map[Source]string
	// Pins are the template's pins: PinsAnnotation and PinnedAnnotation.
	Pins map[string]string
	// Declined is the text of DeclinedAnnotation, "" for none.
	Declined string
}

// RecordsIn reads the records of an object from its own annotations and those of its
// pod template. A baseline that cannot be read is an error, and counts as none.
func RecordsIn(workload, template map[string]string) (Records, error) {
	baseline, err := ParseBaseline(workload[BaselineAnnotation])
	return Records{Stamps: Stamps(template), Baseline: baseline, Pins: pick(template, isPin), Declined: workload[DeclinedAnnotation]}, err
}

// pinsBeside returns the recorded pins if they may stand beside some stamps: all recorded stamps are among them. If a
// stamp is written anew, pods with these pins would start with other content; without pins they read the present one.
func (r Records) pinsBeside(stamps map[string]string) map[string]string {
	for key, value := range r.Stamps {
		if stamps[key] != value {
			return nil
		}
	}
	if len(r.Stamps) == 0 {
		return nil
	}
	return r.Pins
}

// OnTemplate are the annotations of a pod template that hold the records.
func (r Records) OnTemplate() map[string]string {
	if len(r.Pins) == 0 {
		return r.Stamps
	}
	all := maps.Clone(r.Pins)
	maps.Copy(all, r.Stamps)
	return all
}

// OnWorkload are the annotations of a workload's own metadata that hold the records.
func (r Records) OnWorkload() map[string]string {
	all := map[string]string{}
	if text := FormatBaseline(r.Baseline); text != "" {
		all[BaselineAnnotation] = text
	}
	if r.Declined != "" {
		all[DeclinedAnnotation] = r.Declined
	}
	return all
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

// Equal reports whether two records are the same.
func (r Records) Equal(other Records) bool {
	return maps.Equal(r.Stamps, other.Stamps) && maps.Equal(r.Baseline, other.Baseline) && (r.Baseline == nil) == (other.Baseline == nil) &&
		maps.Equal(r.Pins, other.Pins) && r.Declined == other.Declined
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
		return nil, notTexts(BaselineAnnotation)
	}
	baseline := make(map[Source]string, len(entries))
	for name, value := range entries {
		if source, err := ParseSource(name); err == nil {
			baseline[source] = value
		}
	}
	return baseline, nil
}

// notTexts is the error of an annotation of ours that has another form than ours.
func notTexts(annotation string) error {
	return fmt.Errorf("reading annotation %s: it is not a JSON object whose values are strings", annotation)
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
