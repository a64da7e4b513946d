package keyring

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/refusal"
)

// attempts is how often a write that lost a race is begun anew at once.
const attempts = 5

// reconcile reads the Secret and writes what it lacks: a first key, or keys
// that this process knows. wrote tells that it did. A ring is made only of what
// a read or the answer to a write showed as stored.
func (k *Keyring) reconcile(ctx context.Context) (wrote bool, err error) {
	for range attempts {
		var again bool
		if again, wrote, err = k.once(ctx); !again {
			return wrote, err
		}
	}
	return wrote, err
}

// once is one attempt; again tells that another process came first.
func (k *Keyring) once(ctx context.Context) (again, wrote bool, err error) {
	secret, err := k.secrets.Get(ctx, k.name)
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return false, false, fmt.Errorf("reading Secret %s/%s (the right to get it is needed): %w", k.namespace, k.name, refusal.Plain(err))
	}
	if absent {
		secret = k.empty()
	}
	c := parse(secret.Data)
	lacking, err := k.lacking(c)
	if err != nil {
		return false, false, err
	}
	if len(lacking) == 0 {
		k.learn(ctx, c, true)
		return false, false, nil
	}
	changed := secret.DeepCopy()
	if changed.Data == nil {
		changed.Data = map[string][]byte{}
	}
	for _, e := range lacking {
		put(changed.Data, e)
	}
	verb := "updating"
	if absent {
		verb = "creating"
		changed, err = k.secrets.Create(ctx, changed)
	} else {
		changed, err = k.secrets.Update(ctx, k.name, changed)
	}
	switch {
	case err == nil:
		klog.FromContext(ctx).Info("Stored digest keys that the Secret lacked", "secret", klog.KRef(k.namespace, k.name), "entries", namesOf(lacking), "created", absent)
		k.learn(ctx, parse(changed.Data), true)
		return false, true, nil
	case apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || (!absent && apierrors.IsNotFound(err)):
		return true, false, fmt.Errorf("%s Secret %s/%s: others change it all the time: %w", verb, k.namespace, k.name, refusal.Plain(err))
	}
	if absent {
		k.unstore()
	} else {
		k.learn(ctx, c, true)
	}
	return false, false, fmt.Errorf("%s Secret %s/%s with %d digest keys that it lacks (the right to %s it is needed, and it must not be immutable): %w",
		verb, k.namespace, k.name, len(lacking), strings.TrimSuffix(verb, "ing")+"e", refusal.Plain(err))
}

// lacking lists what has to be written: the keys of this process that are not
// stored, or a new one when neither holds any.
func (k *Keyring) lacking(c contents) ([]entry, error) {
	if missing := k.missing(c); len(missing) > 0 || len(c.entries) > 0 {
		return missing, nil
	}
	material := make([]byte, checksum.KeySize)
	if _, err := rand.Read(material); err != nil {
		return nil, fmt.Errorf("making a digest key: reading random bytes: %w", err)
	}
	made, err := newEntry(k.clock.Now().UTC().Truncate(time.Second), material)
	if err != nil {
		return nil, err
	}
	return []entry{made}, nil
}

func namesOf(entries []entry) []string {
	names := make([]string, len(entries))
	for i := range entries {
		names[i] = entries[i].name
	}
	return names
}

func (k *Keyring) empty() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.namespace,
			Name:      k.name,
			Labels:    map[string]string{"app.kubernetes.io/name": "configstamp"},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

// report logs unreadable entries by name, once; the caller holds the lock.
func (k *Keyring) report(logger klog.Logger, unreadable []string) {
	names := strings.Join(unreadable, ", ")
	if names == k.reported {
		return
	}
	k.reported = names
	if names != "" {
		logger.Error(nil, "Entries of the Secret are not digest keys and are not used: an entry is named by a UTC time such as 20060102T150405Z and holds 32 bytes",
			"entries", unreadable)
	}
}

// watch watches the Secret until ctx ends. What it brings only says that it is time to
// look, and is not kept.
func (k *Keyring) watch(ctx context.Context) {
	secret := &follow.Store[runtime.Object]{
		Resource: "secrets", Namespace: k.namespace, Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, k.name),
		Event: func(runtime.Object, bool) { k.wake() },
		All:   func([]runtime.Object, string) { k.wake() },
	}
	secret.Run(ctx, k.secrets.REST)
}

func (k *Keyring) wake() {
	select {
	case k.poke <- struct{}{}:
	default: // it is about to look anyway
	}
}
