package certs

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
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
	"k8s.io/klog/v2/ktesting"

	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

const (
	secretName = "configstamp-authority"
	mutating   = "mutatingwebhookconfigurations"
	validating = "validatingwebhookconfigurations"
)

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

// newServer starts an API server with some Secrets and webhook configurations.
func newServer(t testing.TB, objects ...runtime.Object) *fakeapi.Server {
	t.Helper()
	server := fakeapi.New(t)
	for _, object := range objects {
		switch object.(type) {
		case *corev1.Secret:
			server.Put("secrets", object)
		case *admissionv1.MutatingWebhookConfiguration:
			server.Put(mutating, object)
		default:
			server.Put(validating, object)
		}
	}
	return server
}

var errAway = apierrors.NewInternalError(errors.New("etcd is away"))

// injectorOf returns the injector of a replica, which does not run.
func injectorOf(t *testing.T, server *fakeapi.Server, options Authority) *injector {
	t.Helper()
	options.RESTConfig = server.Config()
	i, err := newInjector(options)
	fatal(t, err)
	return i
}

func startInjector(t *testing.T, server *fakeapi.Server) *injector {
	return working(t, injectorOf(t, server, testOptions))
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

func storedSecret(server *fakeapi.Server) *corev1.Secret {
	return server.Get("secrets", "configstamp", secretName).(*corev1.Secret)
}

func currentWebhooks(server *fakeapi.Server) *admissionv1.MutatingWebhookConfiguration {
	return server.Get(mutating, "", "configstamp").(*admissionv1.MutatingWebhookConfiguration)
}

func hasBundle(server *fakeapi.Server, want []byte) func() bool {
	return func() bool {
		return !slices.ContainsFunc(currentWebhooks(server).Webhooks, func(w admissionv1.MutatingWebhook) bool { return !bytes.Equal(w.ClientConfig.CABundle, want) })
	}
}

func overwrite(server *fakeapi.Server) {
	other := currentWebhooks(server).DeepCopy()
	other.Webhooks[1].ClientConfig.CABundle = []byte("something else")
	server.Put(mutating, other)
}

// isWrite reports whether a request is a patch that is not empty.
func isWrite(r *http.Request) bool {
	return r.Method == http.MethodPatch && r.ContentLength > int64(len("{}"))
}

func countWrites(server *fakeapi.Server) *atomic.Int32 {
	var n atomic.Int32
	server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if isWrite(r) {
			n.Add(1)
		}
		return false
	}
	return &n
}

// butBundles has cmp ignore what the injector may change.
var butBundles = cmp.Options{
	cmpopts.IgnoreFields(admissionv1.WebhookClientConfig{}, "CABundle"),
	cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion"),
}

func TestCABundleIsSetRestoredAndNothingElseTouched(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	server := newServer(t, caSecret(ca), webhookConfiguration())
	startInjector(t, server)
	eventually(t, "the caBundle is set", hasBundle(server, ca.certPEM))
	overwrite(server)
	eventually(t, "the caBundle is restored", hasBundle(server, ca.certPEM))

	if diff := cmp.Diff(webhookConfiguration(), currentWebhooks(server), butBundles); diff != "" {
		t.Errorf("other fields changed:\n%s", diff)
	}
	secret := storedSecret(server)
	if !bytes.Equal(secret.Data["tls.key"], ca.keyPEM) || !bytes.Equal(secret.Data["ca.crt"], ca.certPEM) {
		t.Error("the authority's own keys of the Secret changed")
	}
}

func TestCABundleWithNoRightButPatch(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	server := newServer(t, caSecret(ca), webhookConfiguration())
	server.Refuse("GET .*/"+mutating, fakeapi.ErrForbidden)
	i := startInjector(t, server)
	eventually(t, "the caBundle is set", hasBundle(server, ca.certPEM))
	overwrite(server)
	i.wake <- struct{}{} // in place of a minute
	eventually(t, "the caBundle is restored at the next look", hasBundle(server, ca.certPEM))
}

func TestInjectorTriesAgainForEver(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	server := newServer(t, caSecret(ca))
	refused := server.Refuse("PATCH", errAway)
	startInjector(t, server)
	eventually(t, "some refusals", func() bool { return refused.Load() > 6 })
	server.Refuse("PATCH", nil)
	server.Put(mutating, webhookConfiguration())
	eventually(t, "the caBundle is set once the configuration is there", hasBundle(server, ca.certPEM))
}

func TestTwoInjectorsDoNotFight(t *testing.T) {
	t.Parallel()
	ca, next := newCA(t), newCA(t)
	server := newServer(t, caSecret(ca), webhookConfiguration())
	writes := countWrites(server)
	startInjector(t, server)
	startInjector(t, server)
	eventually(t, "the caBundle is set", hasBundle(server, ca.certPEM))
	rotate(server, next)
	eventually(t, "both authorities are trusted", hasBundle(server, concat(next, ca)))
	overwrite(server)
	eventually(t, "the caBundle is restored", hasBundle(server, concat(next, ca)))
	eventually(t, "nobody writes for a while", func() bool {
		before := writes.Load()
		time.Sleep(1500 * time.Millisecond) // longer than the pace of a fight
		return before == writes.Load()
	})
	// Two objects, two contents, and one restoration: five writes; twice that when both do all.
	if n := writes.Load(); n > 10 {
		t.Errorf("%d writes", n)
	}
	if !hasBundle(server, concat(next, ca))() {
		t.Error("it came to rest at something else")
	}
}

// rotate does what another replica does: it replaces three keys, and keeps the others.
func rotate(server *fakeapi.Server, next pair) {
	secret := storedSecret(server).DeepCopy()
	maps.Copy(secret.Data, caSecret(next).Data)
	server.Put("secrets", secret)
}

func TestRotationIsOverlapped(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]bool{"the Secret is changed": false, "the Secret is made again": true} {
		t.Run(name, func(t *testing.T) {
			ca, next := newCA(t), newCA(t)
			server := newServer(t, caSecret(ca), webhookConfiguration())
			writes := countWrites(server)
			i := startInjector(t, server)
			eventually(t, "the caBundle is set", hasBundle(server, ca.certPEM))
			leaf := next.leaf(t).Leaf
			if i.settled(leaf, time.Now().Add(time.Hour)) {
				t.Error("a certificate of an unknown authority counts as trusted")
			}
			began := time.Now()
			if forget {
				server.Put("secrets", caSecret(next))
			} else {
				rotate(server, next)
			}
			eventually(t, "both authorities are trusted", hasBundle(server, concat(next, ca)))
			if i.settled(leaf, began.Add(i.settleFor)) {
				t.Error("the new certificate is taken before API servers can know")
			}
			eventually(t, "the new certificate is taken", func() bool { return i.settled(leaf, time.Now()) })

			// A replica that starts now has no memory, and comes to the same.
			other := injectorOf(t, server, testOptions)
			before := writes.Load()
			fatal(t, other.sync(t.Context()))
			if n := writes.Load() - before; n != 0 {
				t.Errorf("a new replica wrote %d times", n)
			}
			if !hasBundle(server, concat(next, ca))() {
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
	server := newServer(t, secret, configuration)
	i := injectorOf(t, server, testOptions)
	i.last = trust{{ca: signing.Leaf}, {ca: over.Leaf}}
	fatal(t, i.sync(t.Context()))
	if !hasBundle(server, signing.certPEM)() {
		t.Error("it is trusted for another hour")
	}
}

// What another process has written since both objects were read is not replaced.
func TestWritesGoToTheVersionThatWasRead(t *testing.T) {
	for written, order := range map[string]string{"secrets": "wss", mutating: "wssw"} {
		server := newServer(t, caSecret(newCA(t)), webhookConfiguration())
		server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			if isWrite(r) && strings.Contains(r.URL.Path, "/"+written+"/") {
				server.Put("secrets", storedSecret(server))
				server.Put(mutating, currentWebhooks(server))
			}
			return false
		}
		if err := injectorOf(t, server, testOptions).sync(t.Context()); !apierrors.IsConflict(err) {
			t.Errorf("%s: error %v", written, err)
		}
		patched := ""
		for _, request := range server.Requests() {
			if strings.Contains(request, "/secrets/") {
				patched += "s"
			} else {
				patched += "w"
			}
		}
		if patched != order {
			t.Errorf("patched %s, want %s", patched, order)
		}
	}
}

func TestFreshCertificateWaitsForSlowClocks(t *testing.T) {
	ca, now := newCA(t), time.Now()
	i := &injector{settleFor: settleFor}
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
	server := newServer(t, caSecret(ours), webhookConfiguration())
	startInjector(t, server)
	eventually(t, "our authority is trusted", hasBundle(server, ours.certPEM))
	configuration := currentWebhooks(server).DeepCopy()
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = concat(theirs, ours) // in an order of its own
	}
	server.Put(mutating, configuration)
	eventually(t, "the Secret remembers theirs", func() bool {
		return bytes.Equal(readTrust(storedSecret(server).Data[trustKey]).caBundle(), concat(ours, theirs))
	})
	time.Sleep(100 * time.Millisecond)
	if !hasBundle(server, concat(theirs, ours))() {
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
			server := newServer(t, secret, configuration)
			refused := server.Refuse("PATCH .*/"+mutating, errAway)
			startInjector(t, server)
			eventually(t, "some refusals", func() bool { return refused.Load() > 3 })
			server.Refuse("PATCH .*/"+mutating, nil)
			eventually(t, "both authorities are trusted", hasBundle(server, concat(ours, before)))
			kept := readTrust(storedSecret(server).Data[trustKey])
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
	ca := newCA(t)
	server := newServer(t, caSecret(ca), want) // and no mutating one
	refused := server.Refuse("PATCH .*/"+mutating, fakeapi.ErrForbidden)
	startInjector(t, server)
	options := testOptions
	options.Configuration.Validating = true
	i := working(t, injectorOf(t, server, options))
	current := func() *admissionv1.ValidatingWebhookConfiguration {
		return server.Get(validating, "", "configstamp").(*admissionv1.ValidatingWebhookConfiguration)
	}
	eventually(t, "the caBundle is set", func() bool {
		return !slices.ContainsFunc(current().Webhooks, func(w admissionv1.ValidatingWebhook) bool { return !bytes.Equal(w.ClientConfig.CABundle, ca.certPEM) })
	})
	eventually(t, "the certificate is settled", func() bool { return i.settled(i.leaf.Load().Leaf, time.Now()) })
	eventually(t, "the other one is tried again", func() bool { return refused.Load() > 1 })
	if diff := cmp.Diff(want, current(), butBundles); diff != "" {
		t.Errorf("other fields changed:\n%s", diff)
	}
}
