package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// Certificates of our own: the API server is told whom to trust, and told again
// by whatever is needed of that is taken away. That it then does trust them, behind
// a Service, is the matter of e2e/install.
func TestSelfManaged_TheAPIServerIsToldWhomToTrust(t *testing.T) {
	product := run.Exclusive(t)
	run := run.Of(t)
	run.TrustAgain(t)
	s := run.PlainSpace(t)
	for _, process := range []*harness.Process{product.Webhooks[0], product.Controllers[0]} {
		process.Proxy.Add(proxy.RefuseWatchList()) // as an older API server does
	}
	harness.Must(t, product.Restart(t.Context(), harness.Usual().SelfManaged()))
	trusted := func() error { return run.Trusted(t.Context()) }
	s.EventuallyIn(time.Minute, "waiting until our certificate is trusted", trusted)

	all := run.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	configuration, err := all.Get(t.Context(), "configstamp", metav1.GetOptions{})
	harness.Must(t, err)
	other := fmt.Sprintf(`{"webhooks":[{"name":%q,"clientConfig":{"caBundle":%q}}]}`, configuration.Webhooks[0].Name, run.Authority.Base64())
	_, err = all.Patch(t.Context(), "configstamp", types.StrategicMergePatchType, []byte(other), metav1.PatchOptions{})
	harness.Must(t, err)
	s.EventuallyIn(30*time.Second, "waiting until an overwritten caBundle is ours again, which a watch tells at once", trusted)

	secrets := run.Client.CoreV1().Secrets(harness.OwnNamespace)
	before, err := secrets.Get(t.Context(), "configstamp-authority", metav1.GetOptions{})
	harness.Must(t, err)
	harness.Must(t, secrets.Delete(t.Context(), "configstamp-authority", metav1.DeleteOptions{}))
	s.EventuallyIn(time.Minute, "waiting until a deleted authority has another in its place", func() error {
		after, err := secrets.Get(t.Context(), "configstamp-authority", metav1.GetOptions{})
		if err == nil && after.UID == before.UID {
			err = fmt.Errorf("it is the old one")
		}
		return err
	})
	s.EventuallyIn(2*time.Minute, "waiting until our certificate is trusted after that", trusted)
}
