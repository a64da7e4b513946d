package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

const (
	// trustKey is where the Secret keeps the trust, beside cert-manager's tls.crt, tls.key and
	// ca.crt, which it leaves alone as cert-manager leaves it.
	trustKey = "trust.crt"

	// recheckEvery is how often all is looked at without an event.
	recheckEvery = time.Minute

	// settleFor is how long a certificate waits after the API server was told to trust its authority,
	// and after its own beginning: each API server hears of the caBundle by a watch, and its clock may be behind.
	settleFor = 15 * time.Second
)

// injectorPatch names us as the writer of the caBundle.
func injectorPatch() metav1.PatchOptions {
	return metav1.PatchOptions{FieldManager: "configstamp-ca"}
}

// injector keeps the caBundle of every webhook in one MutatingWebhookConfiguration equal to the
// authorities to be trusted. What it writes follows from the Secret alone, so replicas agree.
type injector struct {
	client   kubernetes.Interface
	options  Authority
	secret   cache.SharedIndexInformer
	webhooks cache.SharedIndexInformer
	wake     chan struct{}
	// retry is the wait after a failure; it grows.
	retry wait.Backoff
	// settleFor is the constant; tests have less patience.
	settleFor time.Duration

	// last is the trust that was last stored, headed by the authority that signed then.
	last trust

	mu sync.Mutex
	// announced says since when the API server has been told to trust an authority, by its DER.
	announced map[string]time.Time
}

func newInjector(client kubernetes.Interface, o Authority) *injector {
	named := func(name string) func(*metav1.ListOptions) {
		return func(list *metav1.ListOptions) {
			list.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
		}
	}
	return &injector{
		client:    client,
		options:   o,
		secret:    coreinformers.NewFilteredSecretInformer(client, o.Namespace, 0, cache.Indexers{}, named(o.SecretName)),
		webhooks:  admissioninformers.NewFilteredMutatingWebhookConfigurationInformer(client, 0, cache.Indexers{}, named(o.WebhookConfiguration)),
		wake:      make(chan struct{}, 1),
		retry:     wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 10, Cap: recheckEvery},
		settleFor: settleFor,
		announced: map[string]time.Time{},
	}
}

// run works until ctx ends; nothing that the API server says ends it before. Should somebody else
// keep writing other caBundles, ours is restored at most once a second, after ten times at once.
func (i *injector) run(ctx context.Context) error {
	var watches wait.Group
	defer watches.Wait()
	if err := i.watch(ctx, &watches); err != nil {
		return err
	}
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
			if !apierrors.IsConflict(err) { // the other replica was first
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

// watch wakes run on every change of the two objects. The webhook configuration may be forbidden to
// be watched; then it is not tried again, and run looks at it by itself.
func (i *injector) watch(ctx context.Context, group *wait.Group) error {
	changed := func() {
		select {
		case i.wake <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	}
	webhooksCtx, forbidden := context.WithCancel(ctx)
	onError := func(ctx context.Context, reflector *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			klog.FromContext(ctx).Info("Not allowed to watch our webhook configuration, looking at it periodically", "every", recheckEvery)
			forbidden()
			return
		}
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
	err := errors.Join(
		i.secret.SetTransform(withoutData),
		i.webhooks.SetWatchErrorHandlerWithContext(onError),
	)
	for _, informer := range []cache.SharedIndexInformer{i.secret, i.webhooks} {
		_, handlerErr := informer.AddEventHandler(handler)
		err = errors.Join(err, handlerErr)
	}
	if err != nil {
		forbidden()
		return fmt.Errorf("watching the authority and our webhook configuration: %w", err)
	}
	group.StartWithContext(ctx, i.secret.RunWithContext)
	group.StartWithContext(webhooksCtx, i.webhooks.RunWithContext)
	return nil
}

// withoutData leaves the content of the Secret, and with it the private key, out of the watch's
// memory: it only has to tell that something changed.
func withoutData(obj any) (any, error) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return obj, nil
	}
	return &corev1.Secret{ObjectMeta: secret.ObjectMeta}, nil
}

// sync brings Secret and webhook configuration up to date once. Both are read live, by an empty patch,
// which changes nothing and answers with the object: so the right to patch is all it needs.
//
// The order matters. The webhook configuration is read first and written last, at the very version
// that was read: so what is written never comes from an older Secret than what it replaces.
func (i *injector) sync(ctx context.Context) error {
	webhooks, unread := i.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(ctx,
		i.options.WebhookConfiguration, types.MergePatchType, []byte(`{}`), injectorPatch())
	if unread != nil {
		unread = fmt.Errorf("reading mutatingwebhookconfiguration %s by an empty patch: %w", i.options.WebhookConfiguration, unread)
	}
	secret, err := i.client.CoreV1().Secrets(i.options.Namespace).Patch(ctx,
		i.options.SecretName, types.MergePatchType, []byte(`{}`), injectorPatch())
	if apierrors.IsNotFound(err) {
		return unread // cert-manager's library is about to make one, and the watch tells
	}
	if err != nil {
		return errors.Join(unread, fmt.Errorf("reading secret %s/%s by an empty patch: %w", i.options.Namespace, i.options.SecretName, err))
	}
	signing := readTrust(secret.Data[corev1.TLSCertKey])
	if len(signing) == 0 {
		return unread // it is damaged; the library makes another
	}
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
		known = known.and(injected(webhooks).without(i.last))
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
	_, err = i.client.CoreV1().Secrets(secret.Namespace).Patch(ctx, secret.Name,
		types.MergePatchType, patch, injectorPatch())
	if err != nil {
		return fmt.Errorf("keeping the trusted authorities in secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// inject sets the caBundle of each webhook that has another, and nothing else. The patch is merged by
// the webhooks' names, and only into the very version that was read: otherwise a webhook removed
// meanwhile would be added again, with nothing but a caBundle.
func (i *injector) inject(ctx context.Context, current *admissionv1.MutatingWebhookConfiguration, caBundle []byte) error {
	var stale []map[string]any
	for _, webhook := range current.Webhooks {
		if !sameBundle(webhook.ClientConfig.CABundle, caBundle) {
			stale = append(stale, map[string]any{"name": webhook.Name, "clientConfig": map[string]any{"caBundle": caBundle}})
		}
	}
	if len(stale) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": current.ResourceVersion},
		"webhooks": stale,
	})
	if err != nil {
		return err
	}
	_, err = i.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(ctx, current.Name,
		types.StrategicMergePatchType, patch, injectorPatch())
	if err != nil {
		return fmt.Errorf("setting the caBundle in mutatingwebhookconfiguration %s: %w", current.Name, err)
	}
	klog.FromContext(ctx).Info("Set the caBundle", "mutatingwebhookconfiguration", current.Name, "webhooks", len(stale))
	return nil
}

// injected is what the caBundles of our webhooks have the API server trust.
func injected(configuration *admissionv1.MutatingWebhookConfiguration) (found trust) {
	for i := range configuration.Webhooks {
		found = found.and(readTrust(configuration.Webhooks[i].ClientConfig.CABundle))
	}
	return found
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
