package lifecycle

import (
	"context"
	"fmt"

	"github.com/configstamp/configstamp/e2e/cluster/api"
	"github.com/configstamp/configstamp/e2e/cluster/process"
)

// CertManager runs cert-manager's controllers as one more process of a cluster.
func (h Host) CertManager(ctx context.Context, name string) error {
	binary, err := h.Builds().Build(ctx, h.Sources.CertManager())
	if err != nil {
		return err
	}
	definitions, err := h.Sources.CertManagerDefinitions(ctx)
	if err != nil {
		return err
	}
	c, records, release, err := h.hold(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	for _, r := range records {
		if r.Component == "cert-manager" && r.Alive() {
			h.Log.Step("cert-manager runs already in cluster %s", name)
			return nil
		}
	}
	// It runs on the host: it needs the API server and nobody needs it.
	running, err := process.Start(process.Program{
		Component: "cert-manager", Path: binary,
		Args: []string{"--kubeconfig=" + c.Kubeconfig(), "--crds=" + definitions},
		Mark: c.Dir(), Logs: c.Logs(), Records: c.Records(),
	})
	if err != nil {
		return err
	}
	s := starter{Host: h, cluster: c, running: []*process.Running{running}}
	err = Client(c, func(client *api.Client) error {
		return s.wait(ctx, "cert-manager's custom resources", func(ctx context.Context) error {
			// It makes its namespace after everything is served, just before it starts its controllers.
			return client.Get(ctx, "/api/v1/namespaces/cert-manager", nil)
		})
	})
	if err != nil {
		return fmt.Errorf("starting cert-manager in cluster %s: %w", name, err)
	}
	h.Log.Step("cert-manager runs in cluster %s", name)
	return nil
}
