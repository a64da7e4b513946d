package product

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/harness"
)

// configstamp is our own product, as the chart installs it, but for its Pods.
func configstamp() *Adapter {
	return &Adapter{
		Name:            "configstamp",
		NamespaceLabels: map[string]string{harness.InjectLabel: "enabled"},
		Webhook:         true,
		Follows:         true,
		Install: func(ctx context.Context, l *lab.Lab, urls harness.URLs) (string, error) {
			if err := harness.InstallManifests(ctx, l.Dynamic, urls, l.Authority.PEM); err != nil {
				return "", err
			}
			return l.Token(ctx, harness.OwnNamespace, "configstamp")
		},
		Roles: func(o Options) []Role {
			return []Role{
				{Name: "webhook", Ready: "/readyz", Args: func(p Place) []string {
					return []string{
						"webhook", "--kubeconfig=" + p.Kubeconfig, "--metrics-address=" + local(p.MetricsPort),
						"--address=" + local(p.WebhookPort), "--tls-cert-file=" + p.CertFile, "--tls-key-file=" + p.KeyFile,
						"--shutdown-linger=0s", // no Service has to learn that it leaves
					}
				}},
				{Name: "controller", Ready: "/readyz", Args: func(p Place) []string {
					args := []string{
						"controller", "--kubeconfig=" + p.Kubeconfig, "--metrics-address=" + local(p.MetricsPort),
						"--impact-address=" + local(p.ImpactPort), "--tls-cert-file=" + p.CertFile, "--tls-key-file=" + p.KeyFile,
					}
					if o.Following {
						args = append(args, "--step=1000", "--max-unsettled=2000", "--max-unsettled-per-namespace=2000", "--soak=1s", "--first-soak=0s", "--rollout-deadline=1h")
					} else {
						args = append(args, "--step=off") // without nodes no rollout becomes healthy
					}
					if o.Immediate {
						args = append(args, "--settle=0s")
					}
					return args
				}},
			}
		},
		Working: func(ctx context.Context, i *Installation) error {
			return lab.Until(ctx, "the controller to lead and to have nothing to do", 20*time.Minute, func(ctx context.Context) error {
				values, err := i.Metrics(ctx, "controller")
				switch {
				case err != nil:
					return err
				case values["configstamp_leader"] != 1:
					return errors.New("it does not lead yet")
				case values["configstamp_queue_depth"] != 0:
					return fmt.Errorf("%v workloads wait", values["configstamp_queue_depth"])
				}
				return nil
			})
		},
	}
}
