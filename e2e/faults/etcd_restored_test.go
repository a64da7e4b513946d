package faults_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// etcd is restored from an older copy: resourceVersions go back, and clients that
// resume their watches are not told. Whatever is edited after that has to be
// seen. (kube-controller-manager, which has the same trouble, is restarted, as
// etcd's instructions say; ours must not need it.)
func TestEtcdRestoredFromAnOlderSnapshot(t *testing.T) {
	long(t, "it restarts the whole control plane")
	product := court.Run.Exclusive(t)
	run, ctx := court.Run, t.Context()
	plane := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Set("configmap/gone", "k", "1")
	manifest := func(name, source string) string {
		return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: 0, selector: {matchLabels: {a: b}},
			template: {metadata: {labels: {a: b}}, spec: {containers: [{name: app, image: registry.example/a, envFrom: [{configMapRef: {name: %s, optional: true}}]}]}}}}`, name, source)
	}
	s.Create(manifest("edited", "c"))
	s.Create(manifest("restored", "gone"))
	saved := filepath.Join(t.TempDir(), "etcd")
	harness.Must(t, run.RestartCluster(ctx, append(plane, "--save", saved)...))
	wantTrue(t, s, "deployment/edited", "configmap/c")

	s.Set("configmap/c", "k", "2")
	s.Set("configmap/gone", "k", "2")
	wantTrue(t, s, "deployment/edited", "configmap/c")
	wantTrue(t, s, "deployment/restored", "configmap/gone")
	for i := range 400 { // what will be lost
		s.Set("configmap/filler", "k", fmt.Sprint(i))
	}
	// As with a load balancer, nobody reaches an API server that is not ready: its
	// first answers (403, before it knows any role) have clients list anew.
	for _, process := range product.All() {
		process.Proxy.Add(proxy.Rule{Before: proxy.Fail(429, "TooManyRequests", "no API server is ready")})
	}
	harness.Must(t, run.RestartCluster(ctx, append(plane, "--restore", saved)...))
	t.Cleanup(func() { passBy(t, s) })
	for _, process := range product.All() {
		process.Proxy.Clear()
	}

	// As it was, all is true again. What is edited now is what nobody may see.
	wantTrue(t, s, "deployment/edited", "configmap/c")
	s.Set("configmap/c", "k", "3")
	began := time.Now()
	wantTrue(t, s, "deployment/edited", "configmap/c")
	t.Logf("an edit after the restore was rolled out after %.1fs", time.Since(began).Seconds())
	s.Set("configmap/gone", "k", "3")
	wantTrue(t, s, "deployment/restored", "configmap/gone")
	s.Create(manifest("new", "c"))
	s.Set("configmap/c", "k", "4")
	wantTrue(t, s, "deployment/new", "configmap/c")
	for _, process := range product.All() {
		if !process.Running() {
			t.Errorf("%s has ended", process.Name)
		}
	}
}

// wantTrue waits until a workload is stamped as its source is now.
func wantTrue(t *testing.T, s *harness.Space, workload, source string) {
	t.Helper()
	s.EventuallyIn(45*time.Second, "waiting for the truth", func() error {
		if got, want := s.Record(workload, source), s.Digest(source); got != want {
			return fmt.Errorf("%s is stamped %q for %s, want %q", workload, got, source, want)
		}
		return nil
	})
}

// passBy has the cluster pass the versions that it had before it was restored, so
// that everybody who resumed a watch sees again.
func passBy(t *testing.T, s *harness.Space) {
	t.Helper()
	for i := range 1500 {
		s.Set("configmap/filler", "k", fmt.Sprint(i))
	}
}
