package lab

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"golang.org/x/sync/errgroup"
)

// Clients is how many requests of the lab's own are under way at once when it
// fills a cluster.
const Clients = 24

// Workload says what a Deployment is to look like.
type Workload struct {
	Namespace, Name string
	// Annotations are the Deployment's own: how a product is told to care.
	Annotations map[string]string
	// Sources are what it uses, all keys, as environment: configmap/a, secret/b.
	Sources []string
	// Padding is how many bytes of plain environment it has besides.
	Padding int
	// Rolling has its controller make ReplicaSets; else it is paused and has no
	// replicas, so that Kubernetes' own controllers do not get in the way.
	Rolling bool
}

// Deployment makes the object.
func (w Workload) Deployment() *appsv1.Deployment {
	labels := map[string]string{"app": w.Name}
	container := corev1.Container{Name: "app", Image: "registry.example.com/app:1"}
	for _, source := range w.Sources {
		kind, name, _ := strings.Cut(source, "/")
		from := corev1.EnvFromSource{}
		if kind == "secret" {
			from.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
		} else {
			from.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
		}
		container.EnvFrom = append(container.EnvFrom, from)
	}
	const chunk = 100
	for i := range w.Padding / chunk {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%04d", i), Value: strings.Repeat("v", chunk-30)})
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: labels, Annotations: maps.Clone(w.Annotations)},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(map[bool]int32{true: 1}[w.Rolling]), Paused: !w.Rolling,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"example.com/team": "blue"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{container}},
			},
		},
	}
}

// Create creates it.
func (l *Lab) Create(ctx context.Context, w Workload) error {
	if _, err := l.Client.AppsV1().Deployments(w.Namespace).Create(ctx, w.Deployment(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating Deployment %s/%s: %w", w.Namespace, w.Name, err)
	}
	return nil
}

// Namespace makes a namespace with labels.
func (l *Lab) Namespace(ctx context.Context, name string, labels map[string]string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := l.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating Namespace %s: %w", name, err)
	}
	return nil
}

// ConfigMap creates a ConfigMap with one value.
func (l *Lab) ConfigMap(ctx context.Context, namespace, name, value string) error {
	_, err := l.Client.CoreV1().ConfigMaps(namespace).Create(ctx, NewConfigMap(namespace, name, value), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating ConfigMap %s/%s: %w", namespace, name, err)
	}
	return nil
}

// Edit gives a ConfigMap another value, as a person does who has it open.
func (l *Lab) Edit(ctx context.Context, namespace, name, value string) error {
	_, err := l.Client.CoreV1().ConfigMaps(namespace).Update(ctx, NewConfigMap(namespace, name, value), metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("editing ConfigMap %s/%s: %w", namespace, name, err)
	}
	return nil
}

// NewConfigMap makes a ConfigMap with one value.
func NewConfigMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"MESSAGE": value}}
}

// Secrets creates n Secrets of size bytes each, all with other content, in a namespace.
func (l *Lab) Secrets(ctx context.Context, namespace string, n, size int) error {
	return Fill(ctx, n, func(ctx context.Context, i int) error {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("secret-%06d", i)},
			Data:       map[string][]byte{"username": []byte("admin"), "password": noise(uint64(i), size)},
		}
		if _, err := l.Client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating Secret %s/%s: %w", namespace, secret.Name, err)
		}
		return nil
	})
}

// noise is content that does not repeat itself, the same in every run.
func noise(seed uint64, size int) []byte {
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	raw := make([]byte, size/2+1)
	_, _ = source.Read(raw) // never fails
	return []byte(hex.EncodeToString(raw)[:size])
}

// Fill does something n times, Clients at a time.
func Fill(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	return Together(ctx, Clients, n, do)
}

// Together does something n times, clients at a time.
func Together(ctx context.Context, clients, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
