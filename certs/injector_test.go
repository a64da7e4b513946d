package certs

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2/ktesting"

	"github.com/configstamp/configstamp/internal/cache/objects/front"
)

const secretName = "configstamp-authority"

var testOptions = Authority{Namespace: "configstamp", Service: "configstamp", Configuration: Configuration{Name: "configstamp"}, SecretName: secretName}

func caSecret(ca pair) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "configstamp", Name: secretName},
		Data:       map[string][]byte{"tls.crt": ca.certPEM, "ca.crt": ca.certPEM, "tls.key": ca.keyPEM},
	}
}

func webhookConfiguration() *admissionv1.MutatingWebhookConfiguration {
	none, ignore := admissionv1.SideEffectClassNone, admissionv1.Ignore
	webhook := func(name string) admissionv1.MutatingWebhook {
		return admissionv1.MutatingWebhook{
			Name: name, SideEffects: &none, FailurePolicy: &ignore, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "configstamp", Name: "configstamp"}},
			Rules:        []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{"CREATE"}}},
		}
	}
	return &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "configstamp", Labels: map[string]string{"somebody": "else"}},
		Webhooks:   []admissionv1.MutatingWebhook{webhook("workloads.configstamp.dev"), webhook("pods.configstamp.dev")},
	}
}

// newClient is a fake clientset on which, as on a real API server, an empty patch is no event.
func newClient(objects ...runtime.Object) *fake.Clientset {
	client := fake.NewClientset(objects...)
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if string(patch.GetPatch()) != "{}" {
			return false, nil, nil
		}
		obj, err := client.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
		return true, obj, err
	})
	return client
}

// injectorOf is that of a replica, which reaches the fake by HTTP.
func injectorOf(t *testing.T, client *fake.Clientset, options Authority) *injector {
	t.Helper()
	options.RESTConfig = front.Serve(t, client)
	i, err := newInjector(options)
	fatal(t, err)
	return i
}

func startInjector(t *testing.T, client *fake.Clientset) *injector {
	return working(t, injectorOf(t, client, testOptions))
}

func working(t *testing.T, i *injector) *injector {
	i.settleFor = 300 * time.Millisecond
	i.retry.Duration, i.retry.Cap = 10*time.Millisecond, 50*time.Millisecond
	_, ctx := ktesting.NewTestContext(t)
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return i
}

func currentWebhooks(t testing.TB, client *fake.Clientset) *admissionv1.MutatingWebhookConfiguration {
	t.Helper()
	current, err := client.Tracker().Get(admissionv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"), "", "configstamp")
	fatal(t, err)
	return current.(*admissionv1.MutatingWebhookConfiguration)
}

func hasBundle(t testing.TB, client *fake.Clientset, want []byte) func() bool {
	return func() bool {
		for _, webhook := range currentWebhooks(t, client).Webhooks {
			if !bytes.Equal(webhook.ClientConfig.CABundle, want) {
				return false
			}
		}
		return true
	}
}

func overwrite(t testing.TB, client *fake.Clientset) {
	t.Helper()
	other := currentWebhooks(t, client).DeepCopy()
	other.Webhooks[1].ClientConfig.CABundle = []byte("something else")
	_, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(context.Background(), other, metav1.UpdateOptions{})
	fatal(t, err)
}

// countWrites counts the patches that were not empty.
func countWrites(client *fake.Clientset) *atomic.Int32 {
	var n atomic.Int32
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if string(action.(clienttesting.PatchAction).GetPatch()) != "{}" {
			n.Add(1)
		}
		return false, nil, nil
	})
	return &n
}

func TestCABundleIsSetRestoredAndNothingElseTouched(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	client := newClient(caSecret(ca), webhookConfiguration())
	startInjector(t, client)
	eventually(t, "the caBundle is set", hasBundle(t, client, ca.certPEM))
	overwrite(t, client)
	eventually(t, "the caBundle is restored", hasBundle(t, client, ca.certPEM))

	ignore := cmp.Options{
		cmpopts.IgnoreFields(admissionv1.WebhookClientConfig{}, "CABundle"),
		cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ManagedFields", "ResourceVersion"),
		cmpopts.IgnoreTypes(metav1.TypeMeta{}),
	}
	if diff := cmp.Diff(webhookConfiguration(), currentWebhooks(t, client), ignore); diff != "" {
		t.Errorf("other fields changed:\n%s", diff)
	}
	secret, err := client.CoreV1().Secrets("configstamp").Get(t.Context(), secretName, metav1.GetOptions{})
	fatal(t, err)
	if !bytes.Equal(secret.Data["tls.key"], ca.keyPEM) || !bytes.Equal(secret.Data["ca.crt"], ca.certPEM) {
		t.Error("the authority's own keys of the Secret changed")
	}
}

func TestCABundleWithNoRightButPatch(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	client := newClient(caSecret(ca), webhookConfiguration())
	forbidden := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "mutatingwebhookconfigurations"}, "", errors.New("RBAC"))
	}
	for _, verb := range []string{"get", "list"} {
		client.PrependReactor(verb, "mutatingwebhookconfigurations", forbidden)
	}
	i := startInjector(t, client)
	eventually(t, "the caBundle is set", hasBundle(t, client, ca.certPEM))
	overwrite(t, client)
	i.wake <- struct{}{} // in place of a minute
	eventually(t, "the caBundle is restored at the next look", hasBundle(t, client, ca.certPEM))
}

func TestInjectorTriesAgainForEver(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	client := newClient(caSecret(ca))
	var refusals atomic.Int32
	client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refusals.Add(1) <= 6, nil, apierrors.NewInternalError(errors.New("etcd is away"))
	})
	startInjector(t, client)
	eventually(t, "some refusals", func() bool { return refusals.Load() > 6 })
	_, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), webhookConfiguration(), metav1.CreateOptions{})
	fatal(t, err)
	eventually(t, "the caBundle is set once the configuration is there", hasBundle(t, client, ca.certPEM))
}

func TestTwoInjectorsDoNotFight(t *testing.T) {
	t.Parallel()
	ca, next := newCA(t), newCA(t)
	client := newClient(caSecret(ca), webhookConfiguration())
	writes := countWrites(client)
	startInjector(t, client)
	startInjector(t, client)
	eventually(t, "the caBundle is set", hasBundle(t, client, ca.certPEM))
	rotate(t, client, next)
	eventually(t, "both authorities are trusted", hasBundle(t, client, concat(next, ca)))
	overwrite(t, client)
	eventually(t, "the caBundle is restored", hasBundle(t, client, concat(next, ca)))
	eventually(t, "nobody writes for a while", func() bool {
		before := writes.Load()
		time.Sleep(1500 * time.Millisecond) // longer than the pace of a fight
		return before == writes.Load()
	})
	// Two objects, two contents, and one restoration: five writes; twice that when both do all.
	if n := writes.Load(); n > 10 {
		t.Errorf("%d writes", n)
	}
	if !hasBundle(t, client, concat(next, ca))() {
		t.Error("it came to rest at something else")
	}
}

// rotate does what another replica does: it replaces three keys, and keeps the others.
func rotate(t *testing.T, client *fake.Clientset, next pair) {
	t.Helper()
	obj, err := client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), "configstamp", secretName)
	fatal(t, err)
	secret := obj.(*corev1.Secret).DeepCopy()
	for key, value := range caSecret(next).Data {
		secret.Data[key] = value
	}
	_, err = client.CoreV1().Secrets("configstamp").Update(t.Context(), secret, metav1.UpdateOptions{})
	fatal(t, err)
}

func TestRotationIsOverlapped(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]bool{"the Secret is changed": false, "the Secret is deleted and made again": true} {
		t.Run(name, func(t *testing.T) {
			ca, next := newCA(t), newCA(t)
			client := newClient(caSecret(ca), webhookConfiguration())
			writes := countWrites(client)
			i := startInjector(t, client)
			eventually(t, "the caBundle is set", hasBundle(t, client, ca.certPEM))
			leaf := next.leaf(t).Leaf
			if i.settled(leaf, time.Now().Add(time.Hour)) {
				t.Error("a certificate of an unknown authority counts as trusted")
			}
			began := time.Now()
			if forget {
				fatal(t, client.CoreV1().Secrets("configstamp").Delete(t.Context(), secretName, metav1.DeleteOptions{}))
				_, err := client.CoreV1().Secrets("configstamp").Create(t.Context(), caSecret(next), metav1.CreateOptions{})
				fatal(t, err)
			} else {
				rotate(t, client, next)
			}
			eventually(t, "both authorities are trusted", hasBundle(t, client, concat(next, ca)))
			if i.settled(leaf, began.Add(i.settleFor)) {
				t.Error("the new certificate is taken before API servers can know")
			}
			eventually(t, "the new certificate is taken", func() bool { return i.settled(leaf, time.Now()) })

			// A replica that starts now has no memory, and comes to the same.
			other := injectorOf(t, client, testOptions)
			before := writes.Load()
			fatal(t, other.sync(t.Context()))
			if n := writes.Load() - before; n != 0 {
				t.Errorf("a new replica wrote %d times", n)
			}
			if !hasBundle(t, client, concat(next, ca))() {
				t.Error("the old authority is no longer trusted")
			}
		})
	}
}

// A replica that looks before the other has injected must not take for somebody else's what is over.
func TestWhatIsOverIsNotTakenForSomebodyElses(t *testing.T) {
	signing, over := newCA(t), newCA(t)
	secret, configuration := caSecret(signing), webhookConfiguration()
	secret.Data[trustKey] = signing.certPEM
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = concat(signing, over)
	}
	client := newClient(secret, configuration)
	i := injectorOf(t, client, testOptions)
	i.last = trust{{ca: signing.Leaf}, {ca: over.Leaf}}
	fatal(t, i.sync(t.Context()))
	if !hasBundle(t, client, signing.certPEM)() {
		t.Error("it is trusted for another hour")
	}
}

func TestPatchesCarryTheVersionThatWasRead(t *testing.T) {
	secret, webhooks := caSecret(newCA(t)), webhookConfiguration()
	secret.ResourceVersion, webhooks.ResourceVersion = "7", "8"
	client := fake.NewClientset(secret, webhooks)
	var patches []string
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if string(patch.GetPatch()) != "{}" {
			patches = append(patches, string(patch.GetPatch()))
		}
		if patch.GetResource().Resource == "secrets" {
			return true, secret, nil
		}
		return true, webhooks, nil
	})
	i := injectorOf(t, client, testOptions)
	fatal(t, i.sync(t.Context()))
	var order []string
	for _, action := range client.Actions() {
		order = append(order, action.GetResource().Resource)
	}
	if want := []string{"mutatingwebhookconfigurations", "secrets", "secrets", "mutatingwebhookconfigurations"}; !slices.Equal(order, want) {
		t.Errorf("order: %v", order)
	}
	if len(patches) != 2 || !bytes.Contains([]byte(patches[0]), []byte(`"resourceVersion":"7"`)) || !bytes.Contains([]byte(patches[1]), []byte(`"resourceVersion":"8"`)) {
		t.Errorf("patches: %q", patches)
	}
}

func TestFreshCertificateWaitsForSlowClocks(t *testing.T) {
	ca, now := newCA(t), time.Now()
	i := injectorOf(t, fake.NewClientset(), testOptions)
	i.announced.Store(&announcement{ca.Leaf, now.Add(-time.Hour)})
	leaf := ca.leafUntil(t, now.Add(2*time.Hour)).Leaf // begins now
	if i.settled(leaf, now) || !i.settled(leaf, now.Add(settleFor)) {
		t.Error("it is not taken settleFor after its beginning")
	}
}

// Another way to have certificates, cert-manager's or an earlier Secret's, was
// trusted until now, and Pods that are yet to be replaced serve under it.
// cert-manager adds its authority to the caBundle when Pods that use it are about to
// take the place of ours.
func TestWhatOthersTrustBesideUsStays(t *testing.T) {
	t.Parallel()
	ours, theirs := newCA(t), newCA(t)
	client := newClient(caSecret(ours), webhookConfiguration())
	startInjector(t, client)
	eventually(t, "our authority is trusted", hasBundle(t, client, ours.certPEM))
	configuration, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "configstamp", metav1.GetOptions{})
	fatal(t, err)
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = concat(theirs, ours) // in an order of its own
	}
	_, err = client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(t.Context(), configuration, metav1.UpdateOptions{})
	fatal(t, err)
	eventually(t, "the Secret remembers theirs", func() bool {
		secret, err := client.CoreV1().Secrets("configstamp").Get(t.Context(), secretName, metav1.GetOptions{})
		return err == nil && bytes.Equal(readTrust(secret.Data[trustKey]).caBundle(), concat(ours, theirs))
	})
	time.Sleep(100 * time.Millisecond)
	if !hasBundle(t, client, concat(theirs, ours))() {
		t.Error("the caBundle was written to again")
	}
}

func TestWhatWasTrustedBeforeUsIsOverlapped(t *testing.T) {
	t.Parallel()
	before, ours := newCA(t), newCA(t)
	for name, remembered := range map[string][]byte{"our authority is new": nil, "it has been here before": trust(nil).next(ours.Leaf, time.Now(), overlap).encode()} {
		t.Run(name, func(t *testing.T) {
			configuration, secret := webhookConfiguration(), caSecret(ours)
			for i := range configuration.Webhooks {
				configuration.Webhooks[i].ClientConfig.CABundle = before.certPEM
			}
			secret.Data[trustKey] = remembered
			client := newClient(secret, configuration)
			var refusals atomic.Int32
			client.PrependReactor("patch", "mutatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
				return refusals.Add(1) <= 3, nil, apierrors.NewInternalError(errors.New("etcd is away"))
			})
			startInjector(t, client)
			eventually(t, "both authorities are trusted", hasBundle(t, client, concat(ours, before)))
			secret, err := client.CoreV1().Secrets("configstamp").Get(t.Context(), secretName, metav1.GetOptions{})
			fatal(t, err)
			kept := readTrust(secret.Data[trustKey])
			if !bytes.Equal(kept.caBundle(), concat(ours, before)) {
				t.Fatal("the Secret does not remember both")
			}
			if after := kept.next(ours.Leaf, time.Now().Add(overlap), overlap); !bytes.Equal(after.caBundle(), ours.certPEM) {
				t.Error("the one before is trusted for ever")
			}
		})
	}
}

// Each process keeps the configuration by which it is called: what is wrong with one of them
// keeps nobody from trusting the other.
func TestAValidatingConfigurationIsKeptToo(t *testing.T) {
	t.Parallel()
	none := admissionv1.SideEffectClassNone
	webhook := func(name string) admissionv1.ValidatingWebhook {
		return admissionv1.ValidatingWebhook{Name: name, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}}
	}
	want := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "configstamp", Labels: map[string]string{"somebody": "else"}},
		Webhooks:   []admissionv1.ValidatingWebhook{webhook("configmaps.configstamp.dev"), webhook("secrets.configstamp.dev")},
	}
	ca, next := newCA(t), newCA(t)
	client := newClient(caSecret(ca), want.DeepCopy()) // and no mutating one
	refused := atomic.Int32{}
	client.PrependReactor("patch", "mutatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
		refused.Add(1)
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "mutatingwebhookconfigurations"}, "configstamp", errors.New("RBAC"))
	})
	startInjector(t, client)
	options := testOptions
	options.Configuration.Validating = true
	i := working(t, injectorOf(t, client, options))
	current := func() *admissionv1.ValidatingWebhookConfiguration {
		object, err := client.Tracker().Get(admissionv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations"), "", "configstamp")
		fatal(t, err)
		return object.(*admissionv1.ValidatingWebhookConfiguration)
	}
	trusts := func(bundle []byte) func() bool {
		return func() bool {
			return !slices.ContainsFunc(current().Webhooks, func(w admissionv1.ValidatingWebhook) bool { return !bytes.Equal(w.ClientConfig.CABundle, bundle) })
		}
	}
	eventually(t, "the caBundle is set", trusts(ca.certPEM))
	eventually(t, "the certificate is settled", func() bool { return i.settled(i.leaf.Load().Leaf, time.Now()) })
	rotate(t, client, next)
	eventually(t, "both authorities are trusted", trusts(concat(next, ca)))
	eventually(t, "the other one is tried again", func() bool { return refused.Load() > 1 })
	ignore := cmp.Options{
		cmpopts.IgnoreFields(admissionv1.WebhookClientConfig{}, "CABundle"),
		cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ManagedFields", "ResourceVersion"),
		cmpopts.IgnoreTypes(metav1.TypeMeta{}),
	}
	if diff := cmp.Diff(want, current(), ignore); diff != "" {
		t.Errorf("other fields changed:\n%s", diff)
	}
}
