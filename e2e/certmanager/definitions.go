package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const (
	fieldManager         = "certmanager-e2e"
	establishedWithin    = 30 * time.Second
	establishedPollEvery = 100 * time.Millisecond
)

// applyDefinitions applies every CustomResourceDefinition in directory and waits until all are served.
func applyDefinitions(ctx context.Context, config *rest.Config, directory string) error {
	clients, err := apiextensionsclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for CustomResourceDefinitions: %w", err)
	}
	paths, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil || len(paths) == 0 {
		return errors.Join(fmt.Errorf("no *.yaml in %s: give the deploy/crds directory of cert-manager's module", directory), err)
	}
	definitions := clients.ApiextensionsV1().CustomResourceDefinitions()
	var names []string
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading a CustomResourceDefinition: %w", err)
		}
		var definition apiextensions.CustomResourceDefinition
		if err := yaml.Unmarshal(content, &definition); err != nil {
			return fmt.Errorf("reading the CustomResourceDefinition in %s: %w", path, err)
		}
		force := true
		_, err = definitions.Patch(ctx, definition.Name, types.ApplyYAMLPatchType, content,
			metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
		if err != nil {
			return fmt.Errorf("applying %s: %w", path, err)
		}
		names = append(names, definition.Name)
	}
	for _, name := range names {
		err := wait.PollUntilContextTimeout(ctx, establishedPollEvery, establishedWithin, true, func(ctx context.Context) (bool, error) {
			definition, err := definitions.Get(ctx, name, metav1.GetOptions{})
			return err == nil && established(definition), nil
		})
		if err != nil {
			return fmt.Errorf("waiting for %s to be served: %w", name, err)
		}
	}
	return nil
}

func established(definition *apiextensions.CustomResourceDefinition) bool {
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apiextensions.Established {
			return condition.Status == apiextensions.ConditionTrue
		}
	}
	return false
}

func ensureNamespace(ctx context.Context, config *rest.Config, name string) error {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for Namespaces: %w", err)
	}
	_, err = clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the namespace %s: %w", name, err)
	}
	return nil
}
