// Command certmanager runs the real controllers of cert-manager against one cluster: Issuers and ClusterIssuers of the
// kinds SelfSigned and CA, Certificates, and the injector of CA bundles.
//
// The project's own binaries are not to be had as Go modules; the packages they consist of are. The tests want to know
// that configstamp works with what users run, so there is no cert-manager behaviour in here, only the wiring:
// controllers.go starts the controllers, injector.go the injector, definitions.go applies the custom resources.
// There is no admission webhook of cert-manager's and no ACME, Vault or Venafi.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

type options struct {
	kubeconfig  string
	definitions string
	namespace   string
}

func main() {
	var o options
	// Its own set of flags: controller-runtime has put a --kubeconfig into the shared one.
	flags := flag.NewFlagSet("certmanager", flag.ExitOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "the cluster to run against")
	flags.StringVar(&o.definitions, "crds", "", "a directory of cert-manager's CustomResourceDefinitions to apply first (deploy/crds of its module)")
	flags.StringVar(&o.namespace, "cluster-resource-namespace", "cert-manager", "where the Secrets of ClusterIssuers are; made if it is missing")
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(2) // ExitOnError never gets here
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(klog.Background())
	if err := run(ctx, o); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "certmanager: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.kubeconfig == "" {
		return errors.New("no cluster to run against: give --kubeconfig, or set KUBECONFIG")
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig %s: %w", o.kubeconfig, err)
	}
	if o.definitions != "" {
		if err := applyDefinitions(ctx, config, o.definitions); err != nil {
			return err
		}
	}
	if err := ensureNamespace(ctx, config, o.namespace); err != nil {
		return err
	}
	fmt.Println("certmanager: custom resources are served; starting controllers and injector")
	return runTogether(ctx,
		func(ctx context.Context) error { return runControllers(ctx, o) },
		func(ctx context.Context) error { return runInjector(ctx, rest.CopyConfig(config)) },
	)
}

// runTogether runs all until one ends, then ends the others, and says why.
func runTogether(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() {
			ended <- part(ctx)
			cancel()
		}()
	}
	var all error
	for range parts {
		all = errors.Join(all, <-ended)
	}
	return all
}
