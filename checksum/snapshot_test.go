package checksum_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
)

func TestVectorsOfSnapshotNamesNeverChange(t *testing.T) {
	raw, err := os.ReadFile("testdata/vectors-snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			About, Key, Namespace, Name, Snapshot string
			Data                                  map[string]string
			BinaryData                            map[string][]byte
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) < 14 {
		t.Fatalf("%d vectors: some were taken away", len(file.Vectors))
	}
	names := map[string]string{}
	for _, v := range file.Vectors {
		t.Run(v.About, func(t *testing.T) {
			material, err := hex.DecodeString(v.Key)
			if err != nil {
				t.Fatal(err)
			}
			signing, err := checksum.NewKey(material)
			if err != nil {
				t.Fatal(err)
			}
			source := checksum.Source{Kind: checksum.ConfigMap, Name: v.Name}
			content := checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: v.Data, BinaryData: v.BinaryData})
			if got := checksum.NewRing(signing).SnapshotName(v.Namespace, source, content); got != v.Snapshot {
				t.Errorf("named\n%s, want\n%s", got, v.Snapshot)
			}
			if named := (checksum.Source{Kind: checksum.ConfigMap, Name: v.Snapshot}); !named.Nameable() || !checksum.LooksLikeSnapshot(v.Snapshot) || !checksum.SnapshotFits(source, v.Snapshot) {
				t.Errorf("%s is no name of a snapshot", v.Snapshot)
			}
			if rotated := checksum.NewRing(key(9), signing); !rotated.NamesSnapshot(v.Namespace, source, content, v.Snapshot) {
				t.Error("after a rotation it is not known any more")
			}
			if checksum.NewRing(key(9)).NamesSnapshot(v.Namespace, source, content, v.Snapshot) {
				t.Error("another key knows it")
			}
			if other, ok := names[v.Snapshot]; ok {
				t.Errorf("it is named as %q", other)
			}
			names[v.Snapshot] = v.About
		})
	}
}

func TestWhatLooksLikeASnapshot(t *testing.T) {
	const digest = "-3f2a91c07d5e8b4416aa"
	for name, want := range map[string]bool{
		"web-message" + digest: true, "a" + digest: true,
		"": false, digest: false, "web-message": false, "web-message" + digest[:20]: false, "web-message" + digest + "0": false,
		"web-message" + strings.ToUpper(digest): false, "web-message" + digest[1:]: false, "web-message-3f2a91c07d5e8b4416ag": false,
	} {
		if got := checksum.LooksLikeSnapshot(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
		if got := checksum.SnapshotFits(message, name); got != (name == "web-message"+digest) {
			t.Errorf("%q of web-message: %v", name, got)
		}
	}
	if checksum.SnapshotFits(password, password.Name+digest) {
		t.Error("a Secret has a snapshot")
	}
	if ring.NamesSnapshot(namespace, message, nil, message.Name+digest) {
		t.Error("an absent source has a snapshot")
	}
}

// kubectl debug --copy-to copies a Pod that names snapshots.
func TestAReferenceToASnapshotIsNoReference(t *testing.T) {
	copied := checksum.Source{Kind: checksum.ConfigMap, Name: "web-message-3f2a91c07d5e8b4416aa"}
	policy := checksum.DefaultPolicy()
	a := admissionCase{Namespace: namespace, Create: true, Fresh: true, Policy: policy, Content: func(checksum.Source) *checksum.Content { return nil }}
	for _, reference := range []checksum.Reference{envFrom(copied), optional(mounted(copied)), used(checksum.Node, envFrom(copied))} {
		a.Selections = checksum.Selections([]checksum.Reference{reference}, policy)
		if got := decide(ring, a); len(got.Records.Stamps) > 0 || len(got.Findings) > 0 {
			t.Errorf("stamped %v, told %v", got.Records.Stamps, got.Findings)
		}
		if review := ring.Review(namespace, &policy, a.Selections, checksum.Records{}, a.Content); review.Records() || !review.MayRoll() {
			t.Errorf("reviewed as %+v", review)
		}
	}
	// A ConfigMap of such a name that is there is a source as any other.
	a.Selections, a.Content = checksum.Selections([]checksum.Reference{envFrom(copied)}, policy), func(checksum.Source) *checksum.Content { return text("a", "1") }
	if got := decide(ring, a); len(got.Records.Stamps) != 1 {
		t.Errorf("stamped %v", got.Records.Stamps)
	}
}
