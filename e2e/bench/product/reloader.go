package product

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/harness"
)

// reloader is stakater/Reloader: one process, no webhook, no memory of what was.
func reloader() *Adapter {
	return &Adapter{
		Name:        "reloader",
		Annotations: map[string]string{"reloader.stakater.com/auto": "true"},
		Install: func(ctx context.Context, l *lab.Lab, _ harness.URLs) (string, error) {
			return administrator(ctx, l, "reloader")
		},
		Roles: func(Options) []Role {
			return []Role{{Name: "reloader", Args: func(Place) []string { return nil }}}
		},
	}
}

// administrator makes a service account that may do anything, for products
// whose roles are not what is measured, and returns its token.
func administrator(ctx context.Context, l *lab.Lab, name string) (string, error) {
	if err := l.Namespace(ctx, name, nil); err != nil {
		return "", err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: name}}
	if _, err := l.Client.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("creating the service account of %s: %w", name, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: name}},
	}
	if _, err := l.Client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("giving %s its rights: %w", name, err)
	}
	return l.Token(ctx, name, name)
}
