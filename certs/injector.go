package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/follow"
	"github.com/configstamp/configstamp/internal/objects"
	"github.com/configstamp/configstamp/internal/refusal"
)

const (
	// trustKey is where the Secret keeps the trust, beside cert-manager's tls.crt, tls.key and
	// ca.crt, which it leaves alone as cert-manager leaves it.
	trustKey = "trust.crt"

	// recheckEvery is how often all is looked at without an event.
	recheckEvery = time.Minute
	// retryWithin is the longest wait after a failure.
	retryWithin = 10 * time.Second

	// settleFor is how long a certificate waits after the API server was told to trust its authority,
	// and after its own beginning: each API server hears of the caBundle by a watch, and its clock may be behind.
	settleFor = 15 * time.Second
)

// manager names us as the writer of the caBundle.
const manager = "configstamp-ca"

// injector keeps an authority in the Secret, a serving certificate that is signed by it, and the
// caBundle of every webhook in one webhook configuration equal to the authorities to be
// trusted. What it writes follows from the Secret alone, so replicas agree.
type injector struct {
	options  Authority
	secrets  *objects.Client[*corev1.Secret]
	webhooks *configuration
	wake     chan struct{}
	// retry is the wait after a failure; it grows.
	retry wait.Backoff
	// settleFor is the constant; tests have less patience.
	settleFor time.Duration

	// last is the trust that was last stored, headed by the authority that signed then.
	last trust
	// leaf is our newest serving certificate, nil while there is none.
	leaf atomic.Pointer[tls.Certificate]

	mu sync.Mutex
	// announced says since when the API server has been told to trust an authority, by its DER.
	announced map[string]time.Time
}

func newInjector(o Authority) (*injector, error) {
	secrets, err := objects.New[*corev1.Secret](o.RESTConfig, corev1.SchemeGroupVersion, corev1.AddToScheme, "secrets", o.Namespace)
	if err != nil {
		return nil, err
	}
	webhooks, err := newConfiguration(&o)
	if err != nil {
		return nil, err
	}
	return &injector{
		options:   o,
		secrets:   secrets,
		webhooks:  webhooks,
		wake:      make(chan struct{}, 1),
		retry:     wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 10, Cap: retryWithin},
		settleFor: settleFor,
		announced: map[string]time.Time{},
	}, nil
}

// source serves what the injector signs.
func (i *injector) source() *Source {
	return &Source{
		newest:  i.leaf.Load,
		settled: i.settled,
		parts:   []func(context.Context) error{func(ctx context.Context) error { return i.run(quietly(ctx, refusal.Plain)) }},
	}
}

// run works until ctx ends; nothing that the API server says ends it before. Should somebody else
// keep writing other caBundles, ours is restored at most once a second, after ten times at once.
func (i *injector) run(ctx context.Context) error {
	var watches wait.Group
	defer watches.Wait()
	i.watch(ctx, &watches)
	log := klog.FromContext(ctx)
	pace := flowcontrol.NewTokenBucketRateLimiter(1, 10)
	retry := i.retry
	for pace.Wait(ctx) == nil {
		pause := recheckEvery
		switch err := i.sync(ctx); {
		case err == nil:
			retry = i.retry
		case ctx.Err() != nil:
			return nil
		default:
			pause = retry.Step()
			if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) { // the other replica was first
				log.Error(err, "The API server may not trust our serving certificate, trying again")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-i.wake:
		case <-time.After(pause):
		}
	}
	return nil
}

// watch wakes run on every change of the two objects, of which nothing is kept. The webhook
// configuration may be forbidden to be watched; then it is not tried again, and run looks at it by itself.
func (i *injector) watch(ctx context.Context, group *wait.Group) {
	changed := func() {
		select {
		case i.wake <- struct{}{}:
		default:
		}
	}
	one := func(resource, namespace, name string) *follow.Store[any] {
		return &follow.Store[any]{
			Resource: resource, Namespace: namespace, Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, name),
			Event: func(any, bool) { changed() },
			All:   func([]any, string) { changed() },
		}
	}
	secret := one("secrets", i.options.Namespace, i.options.SecretName)
	group.StartWithContext(ctx, func(ctx context.Context) { secret.Run(ctx, i.secrets.REST) })

	webhooks := one(i.webhooks.resource, metav1.NamespaceNone, i.webhooks.name)
	group.StartWithContext(ctx, func(ctx context.Context) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		webhooks.Forbidden = func() {
			klog.FromContext(ctx).Info("Not allowed to watch our webhook configuration, looking at it periodically", "every", recheckEvery)
			stop()
		}
		webhooks.Run(ctx, i.webhooks.rest)
	})
}

// sync brings Secret and webhook configuration up to date once. Both are read live, by an empty patch,
// which changes nothing and answers with the object: so the right to patch is all it needs.
//
// The order matters. The webhook configuration is read first and written last, at the very version
// that was read: so what is written never comes from an older Secret than what it replaces.
func (i *injector) sync(ctx context.Context) error {
	webhooks, unread := i.webhooks.read(ctx)
	secret, err := i.secrets.Patch(ctx, i.options.SecretName, types.MergePatchType, []byte(`{}`), manager)
	if err != nil && !apierrors.IsNotFound(err) {
		return errors.Join(unread, fmt.Errorf("reading secret %s/%s by an empty patch: %w", i.options.Namespace, i.options.SecretName, err))
	}
	if secret, err = i.authority(ctx, secret, time.Now()); err != nil {
		return errors.Join(unread, err)
	}
	signing := readTrust(secret.Data[corev1.TLSCertKey])
	known := readTrust(secret.Data[trustKey])
	switch {
	case len(i.last) == 0 && unread != nil:
		return unread
	case len(i.last) > 0 && !i.last[0].ca.Equal(signing[0].ca): // a Secret that was deleted, or restored, has forgotten
		known = known.and(i.last)
	}
	if unread == nil {
		// Other Pods may serve under another authority, such as cert-manager's: those that
		// are yet to be replaced, or those that take our place. What we knew and the Secret
		// does not is over.
		known = known.and(webhooks.trusted().without(i.last))
	}
	next := known.next(signing[0].ca, time.Now(), i.options.Overlap)

	unstored := i.store(ctx, secret, next)
	if unstored == nil {
		i.last = next
	}
	if unread != nil {
		return errors.Join(unstored, unread)
	}
	uninjected := i.inject(ctx, webhooks, next.caBundle())
	if uninjected == nil {
		i.announce(next, time.Now())
	}
	return errors.Join(unstored, uninjected)
}

// authority sees to it that the Secret (nil: there is none) holds an authority that is fit to sign, and
// that our serving certificate is signed by it. It returns the Secret as stored.
func (i *injector) authority(ctx context.Context, secret *corev1.Secret, now time.Time) (*corev1.Secret, error) {
	var data map[string][]byte
	if secret != nil {
		data = secret.Data
	}
	authority, unfit := authorityIn(data, now)
	if unfit != "" {
		made, err := newAuthority(i.options.CADuration, now)
		if err != nil {
			return nil, err
		}
		if secret, err = i.keep(ctx, secret, made); err != nil {
			return nil, fmt.Errorf("keeping a new authority in secret %s/%s, because %s: %w", i.options.Namespace, i.options.SecretName, unfit, err)
		}
		klog.FromContext(ctx).Info("Made a new authority", "secret", klog.KObj(secret), "reason", unfit)
		if authority, unfit = authorityIn(secret.Data, now); unfit != "" {
			return nil, fmt.Errorf("the authority in secret %s/%s is not what was stored: %s", i.options.Namespace, i.options.SecretName, unfit)
		}
	}
	if leaf := i.leaf.Load(); leaf != nil && signed(leaf.Leaf, authority.Leaf) && !aging(leaf.Leaf, now) {
		return secret, nil
	}
	leaf, err := sign(authority, i.options.names(), i.options.LeafDuration, now)
	if err != nil {
		return nil, err
	}
	i.leaf.Store(leaf)
	return secret, nil
}

// keep writes a new authority into the Secret, at the version that was read, or makes the Secret.
func (i *injector) keep(ctx context.Context, secret *corev1.Secret, made map[string][]byte) (*corev1.Secret, error) {
	if secret == nil {
		return i.secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: i.options.Namespace, Name: i.options.SecretName,
				Labels: map[string]string{"app.kubernetes.io/managed-by": "configstamp"},
			},
			Data: made,
		})
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": secret.ResourceVersion}, "data": made})
	if err != nil {
		return nil, err
	}
	return i.secrets.Patch(ctx, secret.Name, types.MergePatchType, patch, manager)
}

// store writes the trust into the Secret, unless it says so already or has changed since it was read.
func (i *injector) store(ctx context.Context, secret *corev1.Secret, t trust) error {
	encoded := t.encode()
	if bytes.Equal(secret.Data[trustKey], encoded) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": secret.ResourceVersion},
		"data":     map[string]any{trustKey: encoded},
	})
	if err != nil {
		return err
	}
	if _, err = i.secrets.Patch(ctx, secret.Name, types.MergePatchType, patch, manager); err != nil {
		return fmt.Errorf("keeping the trusted authorities in secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// inject sets the caBundle of each webhook that has another, and nothing else. The patch is merged by
// the webhooks' names, and only into the very version that was read: otherwise a webhook removed
// meanwhile would be added again, with nothing but a caBundle.
func (i *injector) inject(ctx context.Context, current bundles, caBundle []byte) error {
	var stale []map[string]any
	for _, one := range current.webhooks {
		if !sameBundle(one.caBundle, caBundle) {
			stale = append(stale, map[string]any{"name": one.webhook, "clientConfig": map[string]any{"caBundle": caBundle}})
		}
	}
	if len(stale) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": current.version},
		"webhooks": stale,
	})
	if err != nil {
		return err
	}
	if _, err = i.webhooks.patch(ctx, types.StrategicMergePatchType, patch); err != nil {
		return fmt.Errorf("setting the caBundle in %s: %w", i.webhooks, err)
	}
	klog.FromContext(ctx).Info("Set the caBundle", i.webhooks.kind(), i.webhooks.name, "webhooks", len(stale))
	return nil
}

// announce notes that the API server has been told to trust t, and nothing else.
func (i *injector) announce(t trust, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.announced
	i.announced = make(map[string]time.Time, len(t))
	for _, o := range t {
		since, ok := before[string(o.ca.Raw)]
		if !ok {
			since = now
		}
		i.announced[string(o.ca.Raw)] = since
	}
}

// settled says whether every API server can be expected to trust a certificate by now.
func (i *injector) settled(leaf *x509.Certificate, now time.Time) bool {
	if now.Sub(leaf.NotBefore) < i.settleFor {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for der, since := range i.announced {
		if now.Sub(since) < i.settleFor {
			continue
		}
		if ca, err := x509.ParseCertificate([]byte(der)); err == nil && signed(leaf, ca) {
			return true
		}
	}
	return false
}
