package harness

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// OwnNamespace is configstamp's own.
const OwnNamespace = "configstamp"

// everything is the chart, rendered with all that e2e needs of it; "make
// manifests" writes it.
const everything = "everything.yaml"

// inPods are the kinds that only matter for configstamp in Pods, and its Lease, which it makes itself.
var inPods = []string{"Deployment", "Service", "PodDisruptionBudget", "Lease"}

// URLs are where the API server calls the processes: for stamps, and for warnings of
// what an edit rolls.
type URLs struct{ Stamps, Warns string }

// of is where the webhooks of a kind of configuration are; "": it is none.
func (u URLs) of(kind string) string {
	return map[string]string{"MutatingWebhookConfiguration": u.Stamps, "ValidatingWebhookConfiguration": u.Warns}[kind]
}

// installProduct installs what the chart installs, without its Pods: they run as
// processes. Its webhooks are called at urls.
func installProduct(ctx context.Context, all dynamic.Interface, objects []*unstructured.Unstructured, urls URLs, ca []byte) error {
	for _, object := range objects {
		if slices.Contains(inPods, object.GetKind()) {
			continue
		}
		if url := urls.of(object.GetKind()); url != "" {
			if err := callAt(object, url, ca); err != nil {
				return err
			}
		}
		if err := install(ctx, all, object); err != nil {
			return err
		}
	}
	return nil
}

// callAt replaces the Service in a webhook configuration, and nothing else: the path stays.
func callAt(configuration *unstructured.Unstructured, url string, ca []byte) error {
	return eachWebhook(configuration, func(one map[string]any) {
		path, _, _ := unstructured.NestedString(one, "clientConfig", "service", "path")
		one["clientConfig"] = map[string]any{"url": strings.TrimSuffix(url, "/") + path, "caBundle": base64.StdEncoding.EncodeToString(ca)}
	})
}

// atEase gives our webhooks longer to answer than the chart does. A machine that
// stalls a process for some seconds has the API server go on without stamps
// otherwise, which is right, and no test's business but that of package faults. The
// second that a warning may take is what is tested: it stays.
func atEase(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() != "MutatingWebhookConfiguration" {
			continue
		}
		if err := eachWebhook(object, func(one map[string]any) { one["timeoutSeconds"] = int64(easyTimeout / time.Second) }); err != nil {
			return err
		}
	}
	return nil
}

func eachWebhook(configuration *unstructured.Unstructured, do func(one map[string]any)) error {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil || len(webhooks) == 0 {
		return fmt.Errorf("there are no webhooks in %s: %w", configuration.GetName(), err)
	}
	for _, webhook := range webhooks {
		if one, ok := webhook.(map[string]any); ok {
			do(one)
		}
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}

// Configure has the objects of a kind, in a manifest of the checkout, in the place of those
// of this run, to the end of the test.
func (r *Run) Configure(t testing.TB, kind, file string) {
	t.Helper()
	r = r.Of(t)
	put := func(objects []*unstructured.Unstructured) {
		Must(t, installProduct(context.Background(), r.Dynamic, slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != kind }),
			r.Product.URLs(), r.Authority.PEM))
	}
	dir, err := root()
	Must(t, err)
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
	Must(t, err)
	objects, err := parse(string(text))
	Must(t, err)
	usual, err := r.wanted.manifest()
	Must(t, err)
	put(objects)
	t.Cleanup(func() { put(usual) })
}

// token is what a Pod of ours would find at its mount.
func token(ctx context.Context, typed kubernetes.Interface) (string, error) {
	return tokenOf(ctx, typed, OwnNamespace, "configstamp")
}

func tokenOf(ctx context.Context, typed kubernetes.Interface, namespace, account string) (string, error) {
	hours := int64((10 * time.Hour).Seconds())
	request, err := typed.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of the service account %s/%s: %w", namespace, account, err)
	}
	return request.Status.Token, nil
}

// kubeconfig writes how a process reaches its API server.
func kubeconfig(file, server string, ca []byte, token string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["e2e"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["configstamp"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: "configstamp"}
	config.CurrentContext = "e2e"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}

// ConfigOf is how a service account that is there reaches the API server, under an
// agent's name, with no proxy between.
func (r *Run) ConfigOf(t testing.TB, namespace, account, agent string) *rest.Config {
	t.Helper()
	r = r.Of(t)
	identity, err := tokenOf(t.Context(), r.Client, namespace, account)
	Must(t, err)
	config := rest.AnonymousClientConfig(r.Config)
	config.BearerToken, config.UserAgent, config.QPS, config.WarningHandler = identity, agent, -1, rest.NoWarnings{}
	return config
}

// As makes a client of ConfigOf.
func (r *Run) As(t testing.TB, namespace, account, agent string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(r.ConfigOf(t, namespace, account, agent))
	Must(t, err)
	return client
}

// Stolen is a client with configstamp's own token.
func (r *Run) Stolen(t testing.TB) kubernetes.Interface {
	t.Helper()
	return r.As(t, OwnNamespace, "configstamp", Thief)
}

// TrustAgain has the API server trust the run's own authority at the end of the
// test, whatever the caBundles were meanwhile.
func (r *Run) TrustAgain(t testing.TB) {
	t.Helper()
	r = r.Of(t)
	t.Cleanup(func() {
		Must(t, r.Product.Stop()) // or it would go on
		for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
			all, err := client(r.Dynamic, kind, "")
			Must(t, err)
			configuration, err := all.Get(context.Background(), "configstamp", metav1.GetOptions{})
			Must(t, err)
			Must(t, eachWebhook(configuration, func(one map[string]any) {
				Must(t, unstructured.SetNestedField(one, r.Authority.Base64(), "clientConfig", "caBundle"))
			}))
			_, err = all.Update(context.Background(), configuration, metav1.UpdateOptions{})
			Must(t, err)
		}
	})
}

// KeepStamps installs the policy that keeps stamps, to the end of the test, and waits until it is in force: until a dry
// run of an update with a manifest keeps the stamps of that workload. No webhook of ours may answer meanwhile. It
// returns false where the cluster has no such policies.
func (s *Space) KeepStamps(manifest string) bool {
	s.t.Helper()
	served, err := s.Run.Client.Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	Must(s.t, err)
	if !slices.ContainsFunc(served.APIResources, func(resource metav1.APIResource) bool { return resource.Kind == "MutatingAdmissionPolicy" }) {
		return false
	}
	dir, err := root()
	Must(s.t, err)
	policy, err := os.ReadFile(filepath.Join(dir, "deploy", "keep-stamps.yaml"))
	Must(s.t, err)
	s.Run.Install(s.t, string(policy))
	s.Eventually("waiting for the policy that keeps stamps", func() error {
		if stored := s.KubectlInput(manifest, "replace", "--dry-run=server", "-o", "yaml", "-f", "-"); !strings.Contains(stored.Stdout, ".configstamp.dev/") {
			return fmt.Errorf("an update would drop them:\n%s", stored.Stdout)
		}
		return nil
	})
	return true
}
