package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/cache/objects"
	"github.com/configstamp/configstamp/internal/refusal"
)

const (
	// trustKey is where the Secret keeps the trust, beside the authority's three keys.
	trustKey = "trust.crt"
	// manager names us as the writer of the caBundle.
	manager = "configstamp-ca"

	// recheckEvery is how often all is looked at without an event.
	recheckEvery = time.Minute
	// retryWithin is the longest wait after a failure.
	retryWithin = 10 * time.Second
	// settleFor is how long a certificate waits after the API server was told to trust its authority,
	// and after its own beginning: each API server hears of the caBundle by a watch, and its clock may be behind.
	settleFor = 15 * time.Second
)

// configuration is what we read of either.
type configuration struct {
	metav1.PartialObjectMetadata
	Webhooks []struct {
		Name         string                          `json:"name"`
		ClientConfig admissionv1.WebhookClientConfig `json:"clientConfig"`
	} `json:"webhooks"`
}

// trusted is what it has the API server trust.
func (c *configuration) trusted() (found trust) {
	for i := range c.Webhooks {
		found = found.and(readTrust(c.Webhooks[i].ClientConfig.CABundle))
	}
	return found
}

// injector keeps an authority in the Secret, a serving certificate that is signed by it, and the
// caBundle of every webhook in one webhook configuration equal to the authorities to be
// trusted. What it writes follows from the Secret alone, so replicas agree.
type injector struct {
	options  Authority
	secrets  *objects.Client[*corev1.Secret]
	webhooks rest.Interface
	wake     chan struct{}
	// retry is the wait after a failure; it grows.
	retry wait.Backoff
	// settleFor is the constant; tests have less patience.
	settleFor time.Duration

	// last is the trust that was last stored, headed by the authority that signed then.
	last trust
	// leaf is our newest serving certificate, nil while there is none.
	leaf atomic.Pointer[tls.Certificate]
	// announced is the signing authority that the API server has been told to trust, nil while there is none.
	announced atomic.Pointer[announcement]
}

type announcement struct {
	ca    *x509.Certificate
	since time.Time
}

func newInjector(o Authority) (*injector, error) {
	secrets, err := objects.New[*corev1.Secret](o.RESTConfig, corev1.SchemeGroupVersion, corev1.AddToScheme, "secrets", o.Namespace)
	if err != nil {
		return nil, err
	}
	webhooks, err := follow.Dynamic(o.RESTConfig, admissionv1.SchemeGroupVersion)
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
	}, nil
}

// source serves what the injector signs.
func (i *injector) source() *Source {
	return &Source{newest: i.leaf.Load, settled: i.settled, keep: i.run}
}

// run works until ctx ends; nothing that the API server says ends it before. Should somebody else
// keep writing other caBundles, ours is restored at most once a second, after ten times at once.
func (i *injector) run(ctx context.Context) {
	var watches wait.Group
	defer watches.Wait()
	i.watch(ctx, &watches)
	pace := flowcontrol.NewTokenBucketRateLimiter(1, 10)
	retry, said := i.retry, reminder{}
	for pace.Wait(ctx) == nil {
		pause := recheckEvery
		err := refusal.Plain(i.sync(ctx))
		switch {
		case err == nil:
			retry = i.retry
		case ctx.Err() != nil:
			return
		default:
			pause = retry.Step()
			otherWasFirst := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
			if !otherWasFirst && said.due(err) {
				klog.FromContext(ctx).Error(err, "The API server may not trust our serving certificate, trying again")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-i.wake:
		case <-time.After(pause):
		}
	}
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
	one := func(client cache.Getter, resource, namespace, name string) {
		group.StartWithContext(ctx, func(ctx context.Context) {
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			store := &follow.Store[runtime.Object]{
				Resource: resource, Namespace: namespace, Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, name),
				Event: func(runtime.Object, bool) { changed() },
				All:   func([]runtime.Object, string) { changed() },
			}
			if namespace == metav1.NamespaceNone {
				store.Forbidden = func() {
					klog.FromContext(ctx).Info("Not allowed to watch our webhook configuration, looking at it periodically", "every", recheckEvery)
					stop()
				}
			}
			store.Run(ctx, client)
		})
	}
	one(i.secrets.REST, "secrets", i.options.Namespace, i.options.SecretName)
	one(i.webhooks, i.options.Configuration.resource(), metav1.NamespaceNone, i.options.Configuration.Name)
}

// sync brings Secret, certificate and webhook configuration up to date once. Both objects are read live, by an
// empty patch, which changes nothing and answers with the object: so the right to patch is all it needs.
//
// The order matters. The webhook configuration is read first and written last, at the very version
// that was read: so what is written never comes from an older Secret than what it replaces.
func (i *injector) sync(ctx context.Context) error {
	now := time.Now()
	webhooks, unread := i.patchWebhooks(ctx, types.MergePatchType, []byte(`{}`))
	secret, err := i.secrets.Patch(ctx, i.options.SecretName, types.MergePatchType, []byte(`{}`), manager)
	if apierrors.IsNotFound(err) {
		secret, err = &corev1.Secret{}, nil
	}
	if err != nil {
		return errors.Join(unread, fmt.Errorf("reading secret %s/%s by an empty patch: %w", i.options.Namespace, i.options.SecretName, err))
	}
	changes := map[string][]byte{}
	authority, unfit := authorityIn(secret.Data, now)
	if unfit != "" {
		if changes, err = newAuthority(authorityLife, now); err != nil {
			return err
		}
		authority, _ = authorityIn(changes, now)
	}
	next := i.next(authority.Leaf, readTrust(secret.Data[trustKey]), webhooks.trusted(), now)
	if encoded := next.encode(); !bytes.Equal(encoded, secret.Data[trustKey]) {
		changes[trustKey] = encoded
	}
	if err := i.store(ctx, secret, changes); err != nil {
		return errors.Join(unread, fmt.Errorf("keeping the authority in secret %s/%s: %w", i.options.Namespace, i.options.SecretName, err))
	}
	if unfit != "" {
		klog.FromContext(ctx).Info("Made a new authority", "secret", klog.KRef(i.options.Namespace, i.options.SecretName), "reason", unfit)
	}
	i.last = next
	if err := i.renew(authority, now); err != nil || unread != nil {
		return errors.Join(unread, err)
	}
	if err := i.inject(ctx, webhooks, next.caBundle()); err != nil {
		return err
	}
	i.announce(authority.Leaf)
	return nil
}

// next is the trust from now on, of what the Secret and the webhook configuration have.
func (i *injector) next(signing *x509.Certificate, known, injected trust, now time.Time) trust {
	if len(i.last) == 0 || !i.last[0].ca.Equal(signing) { // a Secret that was deleted, or restored, has forgotten
		known = known.and(i.last)
	}
	// Other Pods may serve under another authority, such as cert-manager's: those that are yet to be
	// replaced, or those that take our place. What we knew and the Secret does not is over.
	return known.and(injected.without(i.last)).next(signing, now, overlap)
}

// store writes changes into the Secret, at the version that was read, or makes the Secret.
func (i *injector) store(ctx context.Context, secret *corev1.Secret, changes map[string][]byte) error {
	if secret.Name == "" {
		_, err := i.secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: i.options.Namespace, Name: i.options.SecretName,
				Labels: map[string]string{"app.kubernetes.io/managed-by": "configstamp"},
			},
			Data: changes,
		})
		return err
	}
	if len(changes) == 0 {
		return nil
	}
	patch, err := patchAt(secret.ResourceVersion, "data", changes)
	if err != nil {
		return err
	}
	_, err = i.secrets.Patch(ctx, secret.Name, types.MergePatchType, patch, manager)
	return err
}

// renew signs a certificate, if ours is old or its authority is gone.
func (i *injector) renew(authority *tls.Certificate, now time.Time) error {
	if leaf := i.leaf.Load(); leaf != nil && signed(leaf.Leaf, authority.Leaf) && !aging(leaf.Leaf, now) {
		return nil
	}
	service := i.options.Service + "." + i.options.Namespace
	leaf, err := sign(authority, []string{service + ".svc", service}, leafLife, now)
	if err == nil {
		i.leaf.Store(leaf)
	}
	return err
}

// inject sets the caBundle of each webhook that has another, and nothing else. The patch is merged by
// the webhooks' names, and only into the very version that was read: otherwise a webhook removed
// meanwhile would be added again, with nothing but a caBundle.
func (i *injector) inject(ctx context.Context, current *configuration, caBundle []byte) error {
	var stale []map[string]any
	for j := range current.Webhooks {
		if one := &current.Webhooks[j]; !sameBundle(one.ClientConfig.CABundle, caBundle) {
			stale = append(stale, map[string]any{"name": one.Name, "clientConfig": map[string]any{"caBundle": caBundle}})
		}
	}
	if len(stale) == 0 {
		return nil
	}
	patch, err := patchAt(current.ResourceVersion, "webhooks", stale)
	if err != nil {
		return err
	}
	if _, err = i.patchWebhooks(ctx, types.StrategicMergePatchType, patch); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Set the caBundle", "configuration", current.Name, "webhooks", len(stale))
	return nil
}

// patchWebhooks returns the webhook configuration as stored; one without webhooks beside an error.
func (i *injector) patchWebhooks(ctx context.Context, kind types.PatchType, patch []byte) (*configuration, error) {
	resource, name := i.options.Configuration.resource(), i.options.Configuration.Name
	found := &configuration{}
	err := i.webhooks.Patch(kind).Resource(resource).Name(name).Body(patch).
		VersionedParams(&metav1.PatchOptions{FieldManager: manager}, metav1.ParameterCodec).Do(ctx).Into(found)
	if err != nil {
		return &configuration{}, fmt.Errorf("patching %s/%s: %w", resource, name, err)
	}
	return found, nil
}

// patchAt is a patch of one field that is refused at another version.
func patchAt(version, field string, value any) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": version}, field: value})
}

// announce notes that the API server has been told to trust the authority that signs.
func (i *injector) announce(signing *x509.Certificate) {
	if before := i.announced.Load(); before == nil || !before.ca.Equal(signing) {
		i.announced.Store(&announcement{signing, time.Now()})
	}
}

// settled says whether every API server can be expected to trust a certificate by now.
func (i *injector) settled(leaf *x509.Certificate, now time.Time) bool {
	announced := i.announced.Load()
	return announced != nil && signed(leaf, announced.ca) && now.Sub(announced.since) >= i.settleFor && now.Sub(leaf.NotBefore) >= i.settleFor
}

// signed says whether an authority has signed a certificate. The names of our authorities are all the same, so only the signature tells.
func signed(leaf, ca *x509.Certificate) bool { return leaf.CheckSignatureFrom(ca) == nil }
