package harness

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// manifest reads a file of deploy.
func manifest(path ...string) ([]*unstructured.Unstructured, error) {
	dir, err := root()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(append([]string{dir, "deploy"}, path...)...))
	if err != nil {
		return nil, fmt.Errorf("reading what is to be installed: %w", err)
	}
	return parse(string(text))
}

// installProduct installs deploy/base without its Pods: they run as processes.
// Every webhook of it is called at url.
func installProduct(ctx context.Context, all dynamic.Interface, url string, ca []byte) error {
	for _, file := range []string{"namespace.yaml", "rbac.yaml", "webhook.yaml"} {
		objects, err := manifest("base", file)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if object.GetKind() == "MutatingWebhookConfiguration" {
				if err := errors.Join(withDialects(object), callAt(object, url, ca)); err != nil {
					return err
				}
			}
			if err := install(ctx, all, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// withDialects adds the entry of deploy/dialects, as its component does.
func withDialects(configuration *unstructured.Unstructured) error {
	objects, err := manifest("dialects", "webhook.yaml")
	if err != nil {
		return err
	}
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("reading the webhooks of %s: %w", configuration.GetName(), err)
	}
	for _, object := range objects {
		more, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			return fmt.Errorf("reading the entry of dialects: %w", err)
		}
		webhooks = append(webhooks, more...)
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
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
