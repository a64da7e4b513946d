package checksum

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Pin is the snapshot that stands for a source in the Pods of a template, and the uses that it stands for: Startup, Live,
// or both, in this order.
type Pin struct {
	Snapshot string
	Uses     []Use
}

// Pins are those of one template. Only ConfigMaps have one.
type Pins map[Source]Pin

// pinnable are the uses that a pin can be for, in the order in which they are written.
func pinnable() []Use { return []Use{Startup, Live} }

// ParsePins reads the value of PinsAnnotation; "" is none, nil. One that cannot be read is
// an error, and counts as none. Entries for sources that this version never pins (a newer
// one was here) are passed over.
func ParsePins(text string) (Pins, error) {
	if text == "" {
		return nil, nil
	}
	var entries map[string]string
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, notTexts(PinsAnnotation)
	}
	pins := make(Pins, len(entries))
	for name, value := range entries {
		source, err := ParseSource(name)
		if err != nil || source.Kind != ConfigMap {
			continue
		}
		snapshot, words, _ := strings.Cut(value, " ")
		uses, ok := parsePinnedUses(words)
		if !ok || !SnapshotFits(source, snapshot) {
			return nil, fmt.Errorf("reading annotation %s: want a snapshot of %s and its uses, such as startup,live", PinsAnnotation, source)
		}
		pins[source] = Pin{Snapshot: snapshot, Uses: uses}
	}
	if len(pins) == 0 {
		return nil, nil
	}
	return pins, nil
}

func parsePinnedUses(text string) (uses []Use, ok bool) {
	words := strings.Split(text, ",")
	for _, use := range pinnable() {
		if slices.Contains(words, string(use)) {
			uses = append(uses, use)
		}
	}
	return uses, len(uses) == len(words)
}

// String writes pins, "" for none. Equal pins give equal text.
func (p Pins) String() string {
	entries := make(map[Source]string, len(p))
	for source, pin := range p {
		words := make([]string, len(pin.Uses))
		for i, use := range pin.Uses {
			words[i] = string(use)
		}
		entries[source] = pin.Snapshot + " " + strings.Join(words, ",")
	}
	return written(entries)
}

// written is a JSON object of texts, its keys sorted; "" for an empty one.
func written(entries map[Source]string) string {
	if len(entries) == 0 {
		return ""
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return "" // a map of texts always marshals
	}
	return string(text)
}

// PinnedAt are the pins of a template, none where they cannot be read.
func (r Records) PinnedAt() Pins {
	pins, err := ParsePins(r.Pins[PinsAnnotation])
	if err != nil {
		return nil
	}
	return pins
}

// pinsOnRecord writes pins as annotations.
func pinsOnRecord(pins Pins) map[string]string {
	if text := pins.String(); text != "" {
		return map[string]string{PinsAnnotation: text}
	}
	return nil
}
