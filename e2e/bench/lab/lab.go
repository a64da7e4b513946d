// Package lab is what scenarios measure with: a cluster, processes whose memory
// and CPU can be read, objects in numbers, and watches that tell when something
// happened. It knows no product.
// Start reading at Lab.
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Lab is a cluster and an administrator's clients. Close must be called.
type Lab struct {
	Cluster *harness.Bare
	Config  *rest.Config
	// Client speaks protobuf, and has no limit of its own.
	Client    kubernetes.Interface
	Dynamic   dynamic.Interface
	Authority *harness.Authority
	// Dir holds logs, kubeconfigs and certificates.
	Dir string

	quotas map[string]quota // what Throttle made, by component
}

// Up makes a cluster without nodes. It runs some of Kubernetes' controllers beside those
// of namespaces and service accounts: the others' work shall not be measured. If the run is
// killed, the cluster ends after an hour.
func Up(ctx context.Context, dir string, controllers ...string) (*Lab, error) {
	dir, err := os.MkdirTemp(dir, "lab-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for a cluster: %w", err)
	}
	controllers = append([]string{"namespace", "serviceaccount"}, controllers...)
	cluster, err := harness.UpBare(ctx, dir, fmt.Sprintf("bench%d", os.Getpid()),
		"--lifetime", "1h", "--node", "none", "--apiserver-arg", "profiling=true", "--controller-manager-arg", "controllers="+strings.Join(controllers, ","))
	if err != nil {
		return nil, err
	}
	l := &Lab{Cluster: cluster, Dir: dir}
	if err := l.connect(); err != nil {
		_ = cluster.Down() // the first error is the one to know
		return nil, err
	}
	return l, nil
}

func (l *Lab) connect() (err error) {
	if l.Config, err = clientcmd.BuildConfigFromFlags("", l.Cluster.Kubeconfig); err != nil {
		return fmt.Errorf("reading the kubeconfig of cluster %s: %w", l.Cluster.Name, err)
	}
	l.Config.QPS = -1
	l.Config.WarningHandler = rest.NoWarnings{}
	if l.Dynamic, err = dynamic.NewForConfig(l.Config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	typed := rest.CopyConfig(l.Config)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if l.Client, err = kubernetes.NewForConfig(typed); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	l.Authority, err = harness.NewAuthority()
	return err
}

// Close takes the cluster down.
func (l *Lab) Close() error { return errors.Join(l.Cluster.Down(), l.unthrottle()) }

// File is the path of a file of this lab.
func (l *Lab) File(name string) string { return filepath.Join(l.Dir, name) }

// Token is what a Pod of a service account would find at its mount.
func (l *Lab) Token(ctx context.Context, namespace, serviceAccount string) (string, error) {
	hours := int64((10 * time.Hour).Seconds())
	request, err := l.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of service account %s/%s: %w", namespace, serviceAccount, err)
	}
	return request.Status.Token, nil
}

// Until asks every few milliseconds until there is no error, ctx ends, or it
// takes longer than bound.
func Until(ctx context.Context, what string, bound time.Duration, ok func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for {
		err := ok(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: not within %s: %w", what, bound, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Pause waits, or returns ctx's error.
func Pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}
