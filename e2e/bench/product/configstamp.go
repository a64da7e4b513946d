package product

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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
		FromCache:       true,
		Steps:           true,
		Install: func(ctx context.Context, l *lab.Lab, urls harness.URLs) (string, error) {
			if err := harness.InstallManifests(ctx, l.Dynamic, "", urls, l.Authority.PEM); err != nil {
				return "", err
			}
			return l.Token(ctx, harness.OwnNamespace, "configstamp")
		},
		Pins: func(ctx context.Context, l *lab.Lab, urls harness.URLs) error {
			return harness.InstallManifests(ctx, l.Dynamic, "pins.yaml", urls, l.Authority.PEM)
		},
		Roles: func(o Options) []Role {
			return []Role{
				{Name: "webhook", Ready: "/readyz", Args: func(p Place) []string {
					args := []string{
						"webhook", "--kubeconfig=" + p.Kubeconfig, "--metrics-address=" + local(p.MetricsPort),
						"--address=" + local(p.WebhookPort), "--tls-cert-file=" + p.CertFile, "--tls-key-file=" + p.KeyFile,
						"--shutdown-linger=0s", // no Service has to learn that it leaves
					}
					if o.FromCache {
						args = append(args, "--freshness-timeout=1ns") // no check ends within that, so memory counts
					}
					if o.Pins {
						args = append(args, "--pins")
					}
					return args
				}},
				{Name: "controller", Ready: "/readyz", Args: func(p Place) []string {
					args := []string{
						"controller", "--kubeconfig=" + p.Kubeconfig, "--metrics-address=" + local(p.MetricsPort),
						"--impact-address=" + local(p.ImpactPort), "--tls-cert-file=" + p.CertFile, "--tls-key-file=" + p.KeyFile,
					}
					if o.Steps == nil {
						args = append(args, "--step=off") // without nodes no rollout becomes healthy
					} else {
						args = append(args, o.Steps.args()...)
					}
					if o.Immediate {
						args = append(args, "--settle=0s")
					}
					if o.Pods {
						args = append(args, "--pods")
					}
					if o.Pins { // nothing is kept for long, so that a measurement sees it go
						args = append(args, "--pins", "--snapshot-grace=10s", "--snapshot-interval=1s")
					}
					return args
				}},
			}
		},
		Working: func(ctx context.Context, i *Installation) error {
			return lab.Until(ctx, "the controller to lead and to have nothing to do", 5*time.Minute, func(ctx context.Context) error {
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

func (s Steps) args() []string {
	return []string{
		"--settle=" + s.Settle.String(), "--soak=" + s.Soak.String(),
		"--max-unsettled=" + strconv.Itoa(s.Slots), "--max-unsettled-per-namespace=" + strconv.Itoa(s.SlotsPerNamespace),
	}
}
