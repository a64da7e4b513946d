package install

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// helm upgrade changes one way to have certificates into the other, and back, and another
// authority of client certificates joins the first. Not one admission fails meanwhile, though failurePolicy is
// Fail and who shows no certificate is not answered, and nothing restarts.
func TestHelm_CertificatesChangeHands(t *testing.T) {
	const selfManaged, certManager = "--set=certificates.mode=self-managed", "--set=certificates.mode=cert-manager"
	s := openShop(t)
	cluster.Kubectl(t, "create", "namespace", harness.OwnNamespace)
	cluster.Own(t, "create", "configmap", "apiserver-clients", "--from-file=ca.crt="+cluster.ClientAuthority())
	install(t, selfManaged, "--set=webhook.failurePolicy=Fail", "--set=clientCertificates.ca.configMap=apiserver-clients", "--set=clientCertificates.names={"+harness.APIServerName+"}")
	cluster.WaitServing(t)
	s.Label("enabled")
	s.EventuallyRecorded()
	// Earlier versions kept this key, which is of another kind, where cert-manager's is today.
	key := cluster.Own(t, "get", "secret", "configstamp-authority", "-o", `jsonpath={.data.tls\.key}`)
	cluster.Own(t, "patch", "secret", "configstamp-ca", "--patch", `{"data":{"tls.key":"`+key+`"}}`)
	joins, err := harness.NewAuthority()
	harness.Must(t, err)
	first, err := os.ReadFile(cluster.ClientAuthority())
	harness.Must(t, err)
	both, err := json.Marshal(map[string]any{"data": map[string]string{"ca.crt": string(joins.PEM) + string(first)}})
	harness.Must(t, err)

	for _, step := range []struct{ mode, content string }{{certManager, "1"}, {selfManaged, "2"}} {
		s.still(step.mode, func() {
			s.unfailing(func() {
				cluster.Own(t, "patch", "configmap", "apiserver-clients", "--patch", string(both))
				helm(t, "upgrade", "configstamp", "deploy/chart", "--wait", "--timeout=3m", "--reuse-values", step.mode)
				cluster.WaitServing(t)
			})
		})
		s.told(step.content)
	}
	if left := cluster.Own(t, "get", "certificates,issuers", "-o", "name"); left != "" {
		t.Errorf("self-managed again, there are still %s", left)
	}
	s.still("helm uninstall", func() { uninstall(t) })
}

// unfailing goes on asking for admissions while something is done; none may fail.
func (s *shop) unfailing(do func()) {
	s.t.Helper()
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	asking.Go(func() {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "asks"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "asks", Image: "none"}}},
		}
		for ; ; time.Sleep(50 * time.Millisecond) {
			_, err := cluster.Client.CoreV1().Pods(s.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				s.t.Errorf("an admission has failed: %v", err)
			}
		}
	})
	do()
}
