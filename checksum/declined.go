package checksum

import (
	"encoding/json"
	"strings"
	"sync"
)

// AcceptManager is the field manager of a request that takes declined content after all.
const AcceptManager = "configstamp-accept"

// Declined is content that an undo declined: digests by source, the newest first, at most declinedKept of each.
type Declined map[Source][]string

const declinedKept = 3

// ParseDeclined reads the value of DeclinedAnnotation; "" is none, nil. One that cannot be
// read is an error, and counts as none. Entries for sources of a kind that this version
// does not know are passed over.
func ParseDeclined(text string) (Declined, error) {
	if text == "" {
		return nil, nil
	}
	var entries map[string]string
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, notTexts(DeclinedAnnotation)
	}
	var declined Declined
	for name, value := range entries {
		values := strings.Fields(value)
		source, err := ParseSource(name)
		if err != nil || len(values) == 0 {
			continue
		}
		if declined == nil {
			declined = make(Declined, len(entries))
		}
		declined[source] = values[:min(len(values), declinedKept)]
	}
	return declined, nil
}

// String returns the annotation, "" for no declined content. Equal ones give equal text.
func (d Declined) String() string {
	entries := make(map[Source]string, len(d))
	for source, values := range d {
		if len(values) > 0 {
			entries[source] = strings.Join(values, " ")
		}
	}
	return written(entries)
}

// declined returns the recorded declined content, none if it cannot be read.
func (r *Records) declined() Declined {
	declined, err := ParseDeclined(r.Declined)
	if err != nil {
		return nil
	}
	return declined
}

// undone is what an undo has left on record, each read once: a workload may have thousands of sources.
type undone struct {
	declined Declined
	pins     func() Pins // of the template
}

func (r *Records) undone() undone { return undone{r.declined(), sync.OnceValue(r.PinnedAt)} }
