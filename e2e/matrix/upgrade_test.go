// Package matrix proves what no single version of Kubernetes can show: that an upgrade of the
// control plane, from one minor version to the next, restarts nothing and lets no workload
// through without stamps. "make matrix" runs it between versions that are built here.
package matrix

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/harness"
)

// run is the cluster and the product of this test binary.
var run *harness.Run

func TestMain(m *testing.M) {
	wanted := harness.Wanted{Manifest: "pins.yaml", Options: harness.Options{
		Settle: harness.Settle, Webhook: []string{"--pins"}, Controller: []string{"--pins", "--pods"},
	}}
	os.Exit(wanted.Main(m, func(r *harness.Run) error { run = r; return nil }))
}

const workloads = 12

func deployment(name string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: 0, selector: {matchLabels: {app: %[1]s}},
		template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: app, image: registry.example/a, envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: password}}]}]}}}}`, name)
}

// The control plane is upgraded, one component after the other and etcd first, while people
// create workloads. CONFIGSTAMP_KUBERNETES is the version before, CONFIGSTAMP_KUBERNETES_NEXT
// the one after.
func TestAnUpgradeOfTheControlPlane(t *testing.T) {
	next := os.Getenv("CONFIGSTAMP_KUBERNETES_NEXT")
	if next == "" {
		t.Skip("CONFIGSTAMP_KUBERNETES_NEXT says to which version; make matrix sets it")
	}
	s := run.Space(t)
	s.SetPolicy("namespace", map[string]string{"pin": "true"})
	s.Set("configmap/settings", "k", "1")
	s.Set("secret/password", "k", "1")
	before := version(t)
	for i := range workloads {
		s.Create(deployment(fmt.Sprintf("web-%d", i)))
	}
	names := make([]string, workloads)
	for i := range names {
		names[i] = fmt.Sprintf("deployment/web-%d", i)
		want(t, s, names[i])
	}
	counts := s.Settled(names...)

	created, refused := during(t, s, func() {
		t.Setenv("CONFIGSTAMP_KUBERNETES", next)
		for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			harness.Must(t, run.RestartCluster(t.Context(), "--upgrade", component))
			time.Sleep(3 * time.Second) // components of two versions work together
		}
	})
	after := version(t)
	t.Logf("from %s to %s: %d workloads were created meanwhile; %d requests met no API server", before, after, len(created), refused)
	if !strings.HasPrefix(after, next+".") || before == after {
		t.Fatalf("it was no upgrade to %s", next)
	}
	if len(created) == 0 {
		t.Error("nobody could create a workload")
	}
	for _, name := range created {
		want(t, s, name)
	}
	s.Unchanged(counts)

	s.Set("configmap/settings", "k", "2")
	for _, name := range append(names, created...) {
		want(t, s, name)
	}
}

func version(t *testing.T) string {
	t.Helper()
	info, err := run.Client.Discovery().ServerVersion()
	harness.Must(t, err)
	return info.GitVersion
}

// want waits until a workload's stamps are true. A workload that got none would be healed:
// the first look at it tells.
func want(t *testing.T, s *harness.Space, name string) {
	t.Helper()
	s.Eventually("waiting for the stamps of "+name, func() error {
		for _, source := range []string{"configmap/settings", "secret/password"} {
			if got, want := s.Stamp(name, source), s.Digest(source); got != want {
				return fmt.Errorf("the stamp of %s is %q, want %q", source, got, want)
			}
		}
		return nil
	})
}

// during has somebody create workloads while something goes on, and tells which there are,
// and how many requests were not answered by an API server. What was admitted without stamps
// is an error of the test.
func during(t *testing.T, s *harness.Space, do func()) (created []string, refused int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var creating sync.WaitGroup
	creating.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			time.Sleep(100 * time.Millisecond)
			d := &appsv1.Deployment{}
			if err := yaml.Unmarshal([]byte(deployment(fmt.Sprintf("new-%d", i))), d); err != nil {
				t.Error(err)
				return
			}
			stored, err := run.Client.AppsV1().Deployments(s.Namespace).Create(ctx, d, metav1.CreateOptions{})
			switch {
			case err != nil && (strings.Contains(err.Error(), "webhook") || strings.Contains(err.Error(), "admission")):
				t.Errorf("new-%d is refused: %v", i, err)
			case err != nil:
				refused++
			default:
				created = append(created, "deployment/"+d.Name)
				if len(stored.Spec.Template.Annotations) < 2 {
					t.Errorf("new-%d is admitted without stamps: %v", i, stored.Spec.Template.Annotations)
				}
			}
		}
	})
	do()
	stop()
	creating.Wait()
	return created, refused
}
