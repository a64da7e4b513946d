package seen

import (
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// Source is the metadata of one ConfigMap, Secret or SecretProviderClass.
type Source struct {
	Namespace string
	checksum.Source
	// Looked tells that the API server has said whether there is one; Exists, that there
	// is.
	Looked, Exists bool
	// Version is its resourceVersion.
	Version string
	Created time.Time
	// Ours are its annotations that are settings, those without effect too.
	Ours map[string]string
	// Policy is what its annotations say, nil is nothing.
	Policy *checksum.SourcePolicy
	// Writers are its managedFields, newest first.
	Writers []Write
	// Keys are those that somebody owns by managedFields; nil when these tell nothing.
	Keys map[string]bool
	// Wrote are the keys of those that wrote content last, nil if they own more than that: what
	// they wrote then may have been an annotation.
	Wrote map[string]bool
}

// Edited is when its content was last written, and by whom; zero when that is not known.
func (s *Source) Edited() Write {
	for _, write := range s.Writers {
		if write.Content {
			return write
		}
	}
	return Write{}
}
