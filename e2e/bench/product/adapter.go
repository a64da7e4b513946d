// Package product knows how each product that can be measured is installed,
// started, told to care for a workload, and known to be ready. Everything that
// differs between products is in an Adapter; there is one file for each. Their
// code is no part of this project: they are binaries.
package product

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/harness"
)

// Adapter is what differs between products.
type Adapter struct {
	Name string
	// NamespaceLabels and Annotations (of the workload itself) opt in.
	NamespaceLabels, Annotations map[string]string
	// Webhook tells that it stamps at admission.
	Webhook bool
	// Follows tells that it follows rollouts to their end, and has metrics of that.
	Follows bool
	// Install creates what has to be in the cluster, and returns the token of
	// the account under which the processes run. Webhooks are called at urls.
	Install func(ctx context.Context, l *lab.Lab, urls harness.URLs) (token string, err error)
	// Roles are its processes.
	Roles func(o Options) []Role
	// Working returns nil when the product does its work: every cache full,
	// leading, nothing left to do. nil: the product cannot tell, and a canary is
	// rolled to know.
	Working func(ctx context.Context, i *Installation) error
}

// Options are what scenarios ask of a product, in no product's words.
type Options struct {
	// Immediate has it act at once on a change, without waiting for more and at no
	// pace of its own, where it can be told so.
	Immediate bool
	// Following has it follow each rollout to its end, and begin all at once.
	Following bool
	// Counted puts a proxy that counts between each process and the API server.
	Counted bool
}

// Place is where a process finds things.
type Place struct {
	Kubeconfig        string
	CertFile, KeyFile string
	WebhookPort       int
	// ImpactPort is where a controller warns of what an edit rolls.
	ImpactPort  int
	MetricsPort int
	// Temporary is a directory for the process's own files.
	Temporary string
}

// Role is one process of a product.
type Role struct {
	Name        string
	Args        func(Place) []string
	Environment func(Place) []string
	// Ready is the path of its readiness probe on Place.MetricsPort, "" when
	// there is none.
	Ready string
}

// Given is a product as the command line names it.
type Given struct {
	Adapter *Adapter
	Binary  string
	// Called is what the report calls it: as it was given.
	Called string
	// Args are further arguments for each of its processes.
	Args []string
}

// Adapters are all products that are known.
func Adapters() []*Adapter { return []*Adapter{configstamp(), reloader(), wave()} }

// Find finds an adapter by name.
func Find(name string) (*Adapter, error) {
	var names []string
	for _, adapter := range Adapters() {
		if adapter.Name == name {
			return adapter, nil
		}
		names = append(names, adapter.Name)
	}
	return nil, fmt.Errorf("--product=%s: there is no adapter of that name; there are %s (e2e/bench/product)", name, strings.Join(slices.Sorted(slices.Values(names)), ", "))
}
