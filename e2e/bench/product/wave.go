package product

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/harness"
)

// waveOptIn is put on namespaces, so that its webhook, which has no selector of
// its own, is not called for the floors.
const waveOptIn = "bench.example.com/wave"

// waveWebhookPort cannot be chosen there.
const waveWebhookPort = 9443

// wave is wave-k8s/wave with its webhooks: one process that is both.
func wave() *Adapter {
	return &Adapter{
		Name:            "wave",
		NamespaceLabels: map[string]string{waveOptIn: "enabled"},
		Annotations:     map[string]string{"wave.pusher.com/update-on-config-change": "true"},
		Webhook:         true,
		Install: func(ctx context.Context, l *lab.Lab, _ harness.URLs) (string, error) {
			if err := waveWebhook(ctx, l); err != nil {
				return "", err
			}
			return administrator(ctx, l, "wave")
		},
		Roles: func(o Options) []Role {
			// Else it looks at everything again now and then.
			args := []string{"--enable-webhooks", "--sync-period=10h"}
			if o.Immediate {
				// Without them the first 100 rolls of a process come at once, then one a second.
				args = append(args, "--update-rate=10000", "--update-burst=10000")
			}
			return []Role{{
				Name: "wave",
				Args: func(Place) []string { return args },
				// It looks for its certificate below the directory for temporary files.
				Environment: func(p Place) []string {
					_ = waveCertificate(p) // without one it says so itself, and ends
					return []string{"TMPDIR=" + p.Temporary}
				},
			}}
		},
	}
}

func waveCertificate(p Place) error {
	dir := filepath.Join(p.Temporary, "k8s-webhook-server", "serving-certs")
	return errors.Join(os.MkdirAll(dir, 0o700),
		os.Symlink(p.CertFile, filepath.Join(dir, "tls.crt")), os.Symlink(p.KeyFile, filepath.Join(dir, "tls.key")))
}

// waveWebhook is what its chart installs, for Deployments, with a selector.
func waveWebhook(ctx context.Context, l *lab.Lab) error {
	ignore, none := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNoneOnDryRun
	url := "https://" + local(waveWebhookPort) + "/mutate-apps-v1-deployment"
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "wave-mutating-webhook-configuration"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:              "deployments.wave.pusher.com",
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: l.Authority.PEM},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{waveOptIn: "enabled"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
			FailurePolicy: &ignore, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	_, err := l.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, configuration, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("configuring wave's webhook: %w", err)
	}
	return nil
}
