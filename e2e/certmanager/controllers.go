package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"

	// Each of these registers itself in controller.Known; an issuer's two halves are the kind and its requests.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

const (
	workersPerController = 2
	// Upstream waits an hour before it tries a failed request again; a test has no hour.
	minimumBackoff = 5 * time.Second
	maximumBackoff = time.Minute
)

// runControllers runs every registered controller until ctx ends or one of them fails.
func runControllers(ctx context.Context, o options) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         o.kubeconfig,
		KubernetesAPIQPS:   100,
		KubernetesAPIBurst: 200,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: o.namespace},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: minimumBackoff,
			CertificateRequestMaximumBackoffDuration: maximumBackoff,
		},
	})
	if err != nil {
		return fmt.Errorf("preparing cert-manager's controllers: %w", err)
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("making the clients of cert-manager's controllers: %w", err)
	}

	parts := make([]func(context.Context) error, 0, len(controller.Known()))
	for name, construct := range controller.Known() {
		built, err := construct(factory)
		if err != nil {
			return fmt.Errorf("constructing cert-manager's controller %s: %w", name, err)
		}
		parts = append(parts, func(ctx context.Context) error {
			if err := built.Run(workersPerController, ctx); err != nil {
				return fmt.Errorf("cert-manager's controller %s: %w", name, err)
			}
			return ctx.Err()
		})
	}
	// Informers are made by the constructors above, so they start after them.
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return runTogether(ctx, parts...)
}
