package checksum

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Kind is the API kind of a source, as users read it in annotations and events.
type Kind string

// The kinds of sources.
const (
	ConfigMap Kind = "configmap"
	Secret    Kind = "secret"
	// SecretProviderClass is the Secrets Store CSI driver's. It counts where the
	// policy says so.
	SecretProviderClass Kind = "secretproviderclass"
)

// Kinds lists the kinds of sources.
func Kinds() []Kind { return []Kind{ConfigMap, Secret, SecretProviderClass} }

// known reports whether there is such a kind.
func (k Kind) known() bool { return slices.Contains(Kinds(), k) }

// reported reports whether the content of sources of the kind is known by reports alone. If there is no report, nothing
// is known of the source.
func (k Kind) reported() bool { return k == SecretProviderClass }

// Source names one ConfigMap, Secret or SecretProviderClass in the workload's own
// namespace.
type Source struct {
	Kind Kind
	Name string
}

// String writes a source the way users do: configmap/web-message.
func (s Source) String() string { return string(s.Kind) + "/" + s.Name }

// MarshalText makes a source usable as a key of a JSON object.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// wantSource is the form of a source, for errors.
const wantSource = "want configmap/<name>, secret/<name> or secretproviderclass/<name>"

// ParseSource reads a source as String writes it.
func ParseSource(text string) (Source, error) {
	kind, name, _ := strings.Cut(text, "/")
	source := Source{Kind: Kind(kind), Name: name}
	if !source.Kind.known() {
		return Source{}, fmt.Errorf("reading source %q: %s", text, wantSource)
	}
	if !source.Nameable() {
		return Source{}, fmt.Errorf("reading source %q: no object can have the name %q", text, name)
	}
	return source, nil
}

// Nameable reports whether an object of this name can exist (metadata.name of
// each kind is an RFC 1123 subdomain of at most 253 characters). The API
// server accepts some references to names that no object can have.
func (s Source) Nameable() bool { return len(validation.IsDNS1123Subdomain(s.Name)) == 0 }

// HelmReleaseType is the type of the Secrets in which Helm keeps its releases. They are many, big and
// no configuration, so they are not watched.
const HelmReleaseType = "helm.sh/release.v1"

// comesByItself reports whether the platform creates the source in each namespace, a moment after the namespace, and
// again after a deletion: the root certificate of the cluster, and that of OpenShift's services. If it does not exist,
// nothing is known of it.
func (s Source) comesByItself() bool {
	return s == Source{ConfigMap, "kube-root-ca.crt"} || s == Source{ConfigMap, "openshift-service-ca.crt"}
}

// Compare orders sources by kind, then by name: -1, 0 or +1 as cmp.Compare.
func (s Source) Compare(other Source) int {
	return cmp.Or(cmp.Compare(s.Kind, other.Kind), cmp.Compare(s.Name, other.Name))
}

// Among reports whether a source is one of many, which are sorted.
func Among(sorted []Source, source Source) bool {
	_, found := slices.BinarySearchFunc(sorted, source, Source.Compare)
	return found
}

// Entry is one key of a source: its name and the SHA-256 of its value. The
// value itself is never kept.
type Entry struct {
	Name string
	Sum  [sha256.Size]byte
	// Binary reports that the key is in a ConfigMap's binaryData, which mounts can see and environment variables cannot.
	Binary bool
}

// Content is all that is remembered of a source: its entries, sorted by name,
// and its policy. data, binaryData and (once stored) stringData are one map. A nil
// *Content means that the source does not exist; of a SecretProviderClass, that
// its content is not reported.
type Content struct {
	Entries []Entry
	// Policy is the settings in the source's own annotations.
	Policy *SourcePolicy
	// Unwatched reports that the source exists but never counts: a Secret of HelmReleaseType. Its content is not known.
	Unwatched bool
	digests   digestCache
	print     atomic.Pointer[Fingerprint] // nil: not computed yet
}

// Contents is what some sources of one namespace hold: nil for those that do not exist.
type Contents map[Source]*Content

// String keeps checksums out of whatever prints a content: they are not keyed,
// and would help to guess a Secret.
func (c *Content) String() string {
	if c == nil {
		return "absent"
	}
	return fmt.Sprintf("%d keys", len(c.Entries))
}

// GoString does what String does.
func (c *Content) GoString() string { return c.String() }

// String is the name alone, for the same reason.
func (e Entry) String() string { return e.Name }

// GoString does what String does.
func (e Entry) GoString() string { return e.Name }

// ContentOfConfigMap condenses a ConfigMap.
func ContentOfConfigMap(cm *corev1.ConfigMap) *Content {
	entries := make([]Entry, 0, len(cm.Data)+len(cm.BinaryData))
	for name, value := range cm.Data {
		entries = append(entries, Entry{Name: name, Sum: sha256.Sum256([]byte(value))})
	}
	for name, value := range cm.BinaryData {
		entries = append(entries, Entry{Name: name, Sum: sha256.Sum256(value), Binary: true})
	}
	return contentOf(entries, cm.Annotations)
}

// ContentOfSecret condenses a Secret as the API server stores it: stringData
// is write-only and has been merged into data by then.
func ContentOfSecret(secret *corev1.Secret) *Content {
	entries := make([]Entry, 0, len(secret.Data))
	for name, value := range secret.Data {
		entries = append(entries, Entry{Name: name, Sum: sha256.Sum256(value)})
	}
	return contentOf(entries, secret.Annotations)
}

// ContentOfVersions condenses what a pod's mount of a SecretProviderClass reports:
// the version of each of its objects, by the object's id. What the objects hold is
// not known.
func ContentOfVersions(versions map[string]string) *Content {
	entries := make([]Entry, 0, len(versions))
	for id, version := range versions {
		entries = append(entries, Entry{Name: id, Sum: sha256.Sum256([]byte(version))})
	}
	return contentOf(entries, nil)
}

func contentOf(entries []Entry, annotations map[string]string) *Content {
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return &Content{Entries: entries, Policy: SourcePolicyOf(annotations)}
}

// Entry finds a key.
func (c *Content) Entry(name string) (Entry, bool) {
	if c == nil {
		return Entry{}, false
	}
	i, found := slices.BinarySearchFunc(c.Entries, name, func(e Entry, name string) int { return cmp.Compare(e.Name, name) })
	if !found {
		return Entry{}, false
	}
	return c.Entries[i], true
}

// Equal reports whether two contents are the same in every respect that counts for a rule of this package.
func (c *Content) Equal(other *Content) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.Policy.Equal(other.Policy) && c.SameEntries(other)
}

// SameEntries reports whether two contents have the same entries, whatever the settings of their sources.
func (c *Content) SameEntries(other *Content) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.Unwatched == other.Unwatched && slices.EqualFunc(c.Entries, other.Entries, func(a, b Entry) bool {
		return a.Name == b.Name && a.Binary == b.Binary && bytes.Equal(a.Sum[:], b.Sum[:])
	})
}

// Fingerprint is equal for contents with the same entries, whatever the settings of their sources, and for no others. It
// is what is kept of earlier content, as it is small. The zero Fingerprint is that of a source that does not exist. It
// must not be shown, since it is not keyed.
type Fingerprint struct{ of unique.Handle[imprint] }

// imprint is behind a handle, so that whatever prints a Fingerprint prints an address.
type imprint struct {
	unwatched bool
	sum       [sha256.Size]byte // of the entries
}

// Fingerprint returns the fingerprint, which is computed once.
func (c *Content) Fingerprint() Fingerprint {
	if c == nil {
		return Fingerprint{}
	}
	if known := c.print.Load(); known != nil {
		return *known
	}
	hash, is := sha256.New(), imprint{unwatched: c.Unwatched}
	for i := range c.Entries {
		e := &c.Entries[i]
		head := byte(0)
		if e.Binary {
			head = 1
		}
		_, _ = hash.Write(append(binary.AppendUvarint([]byte{head}, uint64(len(e.Name))), e.Name...))
		_, _ = hash.Write(e.Sum[:])
	}
	hash.Sum(is.sum[:0])
	made := Fingerprint{unique.Make(is)}
	c.print.Store(&made)
	return made
}
