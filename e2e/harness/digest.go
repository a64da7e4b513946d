package harness

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Digest works out a value of the format v1 from its description (at the top of
// checksum/digest.go) and from nothing else: a second opinion, so that a test
// does not ask the code under test what is right. keys is nil for all keys.
func Digest(key []byte, kind, namespace, name string, data map[string][]byte, keys []string) string {
	selection, names := "all", slices.Sorted(maps.Keys(data))
	if keys != nil {
		names = slices.Sorted(slices.Values(keys))
		sum := sha256.Sum256(slices.Concat(field("keys"), number(len(names)), fields(names)))
		selection = hex.EncodeToString(sum[:4])
	}
	return digestOf(key, kind, namespace, name, data, selection, names)
}

// DigestBut is Digest for all keys but those that patterns name.
func DigestBut(key []byte, kind, namespace, name string, data map[string][]byte, patterns []string) string {
	sorted := slices.Sorted(slices.Values(patterns))
	sum := sha256.Sum256(slices.Concat(field("all but"), number(len(sorted)), fields(sorted)))
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(data)), func(one string) bool {
		return slices.ContainsFunc(sorted, func(pattern string) bool {
			matched, err := path.Match(pattern, one)
			return matched && err == nil
		})
	})
	return digestOf(key, kind, namespace, name, data, hex.EncodeToString(sum[:4]), names)
}

func digestOf(key []byte, kind, namespace, name string, data map[string][]byte, selection string, names []string) string {
	message := slices.Concat(field("configstamp"), field("v1"), field(kind), field(namespace), field(name), number(len(names)))
	for _, one := range names {
		message = append(message, field(one)...)
		if value, ok := data[one]; ok {
			sum := sha256.Sum256(value)
			message = append(append(message, 1), sum[:]...)
		} else {
			message = append(message, 0)
		}
	}
	return "v1:" + KeyID(key) + ":" + selection + ":" + hex.EncodeToString(mac(key, message)[:16])
}

// SnapshotName works out the name of a snapshot from its description (in
// checksum/snapshot.go), as Digest does.
func SnapshotName(key []byte, namespace, name string, data, binaryData map[string][]byte) string {
	message := slices.Concat(field("configstamp"), field("snapshot v1"), field(namespace), field(name), number(len(data)+len(binaryData)))
	all := maps.Clone(data)
	if all == nil {
		all = map[string][]byte{}
	}
	maps.Copy(all, binaryData)
	for _, one := range slices.Sorted(maps.Keys(all)) {
		sum, in := sha256.Sum256(all[one]), byte(0)
		if _, binary := binaryData[one]; binary {
			in = 1
		}
		message = append(append(append(message, field(one)...), in), sum[:]...)
	}
	head := name
	if len(head) > 232 {
		head = strings.TrimRight(head[:232], ".-")
	}
	return head + "-" + hex.EncodeToString(mac(key, message)[:10])
}

// KeyID is the public name of a key.
func KeyID(key []byte) string {
	return hex.EncodeToString(mac(key, field("configstamp key id"))[:4])
}

func mac(key, message []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(message)
	return h.Sum(nil)
}

func field(text string) []byte { return append(number(len(text)), text...) }

func fields(texts []string) []byte {
	var all []byte
	for _, text := range texts {
		all = append(all, field(text)...)
	}
	return all
}

func number(n int) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(n))
}

// StampKey is the annotation of "configmap/web": names over 63 characters are
// cut to 40, with "_" and 22 hex of the hash of the whole.
func StampKey(source string) string {
	kind, name, _ := strings.Cut(source, "/")
	if len(name) > 63 {
		sum := sha256.Sum256([]byte(name))
		name = name[:40] + "_" + hex.EncodeToString(sum[:])[:22]
	}
	return kind + ".configstamp.dev/" + name
}

// Key is one key of the installation, as its Secret holds it.
type Key struct {
	Name     string
	Material []byte
}

// Keys are those that the Secret holds, the oldest first.
func (r *Run) Keys() ([]Key, error) {
	secret, err := r.Client.CoreV1().Secrets(OwnNamespace).Get(context.Background(), "configstamp-key", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the digest keys: %w", err)
	}
	var keys []Key
	for name, material := range secret.Data {
		keys = append(keys, Key{name, material})
	}
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Compare(a.Name, b.Name) })
	return keys, nil
}
