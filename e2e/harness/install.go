package harness

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// OwnNamespace is configstamp's own.
const OwnNamespace = "configstamp"

// everything is the chart, rendered with all that e2e needs of it; "make
// manifests" writes it.
const everything = "e2e/testdata/everything.yaml"

// inPods are the kinds that only matter for configstamp in Pods, and its Lease, which it makes itself.
var inPods = []string{"Deployment", "Service", "PodDisruptionBudget", "Lease"}

// installProduct installs what the chart installs, without its Pods: they run as
// processes. Every webhook of it is called at url.
func installProduct(ctx context.Context, all dynamic.Interface, url string, ca []byte) error {
	dir, err := root()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, everything))
	if err != nil {
		return fmt.Errorf("reading what is to be installed: %w; make manifests writes it", err)
	}
	objects, err := parse(string(text))
	if err != nil {
		return err
	}
	for _, object := range objects {
		if slices.Contains(inPods, object.GetKind()) {
			continue
		}
		if object.GetKind() == "MutatingWebhookConfiguration" {
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

// callAt replaces the Service in a webhook configuration, and nothing else.
func callAt(configuration *unstructured.Unstructured, url string, ca []byte) error {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil || len(webhooks) == 0 {
		return fmt.Errorf("there are no webhooks in %s: %w", configuration.GetName(), err)
	}
	for _, webhook := range webhooks {
		if one, ok := webhook.(map[string]any); ok {
			one["clientConfig"] = map[string]any{"url": url, "caBundle": base64.StdEncoding.EncodeToString(ca)}
		}
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}

// token is what a Pod of ours would find at its mount.
func token(ctx context.Context, typed kubernetes.Interface) (string, error) {
	hours := int64((10 * time.Hour).Seconds())
	request, err := typed.CoreV1().ServiceAccounts(OwnNamespace).CreateToken(ctx, "configstamp",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of the service account: %w", err)
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
