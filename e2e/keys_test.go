package e2e

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/harness"
)

// The keys of the digests: rotated, deleted, lost.

const keySecret = "configstamp-key"

// newKey is an entry of the key Secret that is newer than every other.
func newKey(t *testing.T) harness.Key {
	t.Helper()
	material := make([]byte, 32)
	_, err := rand.Read(material)
	harness.Must(t, err)
	return harness.Key{Name: time.Now().UTC().Add(2 * time.Second).Format("20060102T150405Z"), Material: material}
}

// keysBack gives the installation its keys back at the end of a test, with no
// other beside them.
func keysBack(t *testing.T, product *harness.Product) (old []harness.Key) {
	t.Helper()
	run := run.Of(t)
	old, err := run.Keys()
	harness.Must(t, err)
	t.Cleanup(func() {
		harness.Must(t, product.Stop())
		data := map[string][]byte{}
		for _, key := range old {
			data[key.Name] = key.Material
		}
		_, err := run.Client.CoreV1().Secrets(harness.OwnNamespace).Update(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: keySecret}, Data: data}, metav1.UpdateOptions{})
		harness.Must(t, err)
	})
	return old
}

func addKey(t *testing.T, key harness.Key) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{key.Name: key.Material}})
	harness.Must(t, err)
	_, err = run.Of(t).Client.CoreV1().Secrets(harness.OwnNamespace).Patch(t.Context(), keySecret, types.MergePatchType, patch, metav1.PatchOptions{})
	harness.Must(t, err)
}

func TestKeys_RotationRestartsNothingAndNewStampsUseTheNewKeyAfterTheGrace(t *testing.T) {
	product := run.Exclusive(t)
	const grace = 12 * time.Second
	harness.Must(t, product.Restart(t.Context(), harness.Options{Settle: harness.Settle, Webhook: []string{"--key-grace=12s"}, Controller: []string{"--key-grace=12s"}}))
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Set("configmap/own", "k", "1")
	s.Create(deployment("stays", "configmap/c"))
	s.Create(deployment("rolls", "configmap/c", "configmap/own"))
	before := s.Settled("deployment/stays", "deployment/rolls")
	old := harness.Stamps(s.Get("deployment/rolls"))
	keys := keysBack(t, product)
	signing := keys[len(keys)-1]

	key := newKey(t)
	appeared := time.Now()
	addKey(t, key)
	s.Unchanged(before)
	s.Create(deployment("early", "configmap/c"))
	if time.Since(appeared) < grace {
		if got, want := s.Stamp("deployment/early", "configmap/c"), s.DigestUnder(signing.Material, "configmap/c"); got != want {
			t.Errorf("within the grace the stamp is %q, want %q under the old key", got, want)
		}
	}
	time.Sleep(time.Until(appeared.Add(grace + 4*time.Second))) // its name is 2 s ahead
	before = s.Counts()
	s.Create(deployment("late", "configmap/c"))
	if got, want := s.Stamp("deployment/late", "configmap/c"), s.DigestUnder(key.Material, "configmap/c"); got != want {
		t.Errorf("after the grace the stamp is %q, want %q under the new key", got, want)
	}
	s.Set("configmap/own", "k", "2")
	s.WantRolls(before, rolls{"deployment/rolls": 1})
	if got, want := s.Stamp("deployment/rolls", "configmap/own"), s.DigestUnder(key.Material, "configmap/own"); got != want {
		t.Errorf("the changed one is stamped %q, want %q under the new key", got, want)
	}
	for _, workload := range []string{"deployment/stays", "deployment/rolls"} {
		if got := s.Stamp(workload, "configmap/c"); got != old[harness.StampKey("configmap/c")] {
			t.Errorf("the stamp of what did not change went from %q to %q on %s", old[harness.StampKey("configmap/c")], got, workload)
		}
	}
	// Neither does a restart with the new key in use.
	before = s.Counts()
	harness.Must(t, product.Stop())
	harness.Must(t, product.Start(t.Context()))
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/stays": 1, "deployment/rolls": 1, "deployment/early": 1, "deployment/late": 1})
}

func TestKeys_ADeletedSecretIsRestored(t *testing.T) {
	product := run.Exclusive(t)
	run := run.Of(t)
	s, before := one(t, "k", "1")
	stamp := s.Stamp("deployment/d", "configmap/c")
	keys := keysBack(t, product)
	harness.Must(t, run.Client.CoreV1().Secrets(harness.OwnNamespace).Delete(t.Context(), keySecret, metav1.DeleteOptions{}))
	s.Eventually("waiting for the Secret", func() error {
		now, err := run.Keys()
		if err != nil {
			return err
		}
		for _, key := range keys {
			if !holds(now, key) {
				return fmt.Errorf("key %s is missing", harness.KeyID(key.Material))
			}
		}
		return nil
	})
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	if id := strings.Split(s.Stamp("deployment/d", "configmap/c"), ":")[1]; id != strings.Split(stamp, ":")[1] {
		t.Errorf("the new stamp is under key %s, the old one %q", id, stamp)
	}
}

func holds(keys []harness.Key, key harness.Key) bool {
	for _, one := range keys {
		if string(one.Material) == string(key.Material) {
			return true
		}
	}
	return false
}

func TestKeys_ALostKeyRestartsNothingAndIsSaid(t *testing.T) {
	product := run.Exclusive(t)
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	var users []string
	for _, kind := range restamped {
		s.Create(workload(kind, "w", envFrom("configmap/c")))
		users = append(users, strings.ToLower(kind)+"/w")
	}
	before := s.Settled(users...)
	stamp := s.Stamp("deployment/w", "configmap/c")
	keysBack(t, product)
	harness.Must(t, product.Stop()) // nobody is left who knows the key
	key := newKey(t)
	secrets := run.Of(t).Client.CoreV1().Secrets(harness.OwnNamespace)
	harness.Must(t, secrets.Delete(t.Context(), keySecret, metav1.DeleteOptions{}))
	_, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: keySecret}, Data: map[string][]byte{key.Name: key.Material}}, metav1.CreateOptions{})
	harness.Must(t, err)
	harness.Must(t, product.Start(t.Context()))
	for _, user := range users {
		s.WantNote(user, "ChecksumLost: the recorded checksum of configmap/c can no longer be compared")
		s.Eventually("waiting until it is recorded anew", func() error {
			if got, want := s.Record(user, "configmap/c"), s.DigestUnder(key.Material, "configmap/c"); got != want {
				return fmt.Errorf("%s has %q on record, want %q", user, got, want)
			}
			return nil
		})
	}
	s.WantRolls(before, nil)
	object := s.Get("deployment/w")
	if got, want := harness.Baseline(object)["configmap/c"], s.DigestUnder(key.Material, "configmap/c"); got != want {
		t.Errorf("recorded anew as %q, want %q", got, want)
	}
	if got := harness.Stamps(object)[harness.StampKey("configmap/c")]; got != stamp {
		t.Errorf("the stamp, which nobody can compare, went from %q to %q", stamp, got)
	}
	if lost := harness.Sum(product.Controllers, "configstamp_unverifiable_stamps_total"); lost < 4 {
		t.Errorf("the metric tells of %v lost values, want at least 4", lost)
	}
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, each(users, 1))
	wantStamp(t, s, "deployment/w", "configmap/c")
}
