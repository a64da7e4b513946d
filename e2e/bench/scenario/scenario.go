// Package scenario holds what is measured: one small file for each scenario,
// and one list of them all. A new one writes a function that makes a Scenario,
// and adds it to the list.
//
// A scenario finds an empty cluster with one product installed in it that does
// not run yet; it starts it with what it needs (Bench.Product.Start), measures,
// and adds figures to its result. It never fails because something was slow.
// What a product cannot do is skipped by Result.Skip.
package scenario

import (
	"context"
	"strings"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

// Scenario is one thing that is measured.
type Scenario struct {
	Name, Title string
	// Method says how, for whoever reads the report.
	Method string
	// Controllers are those of Kubernetes that run beside the product.
	Controllers []string
	Run         func(ctx context.Context, b *Bench, r *report.Result) error
}

// All are the scenarios, in the order in which they run.
func All() []Scenario {
	return []Scenario{admission(), fanout(), follow(), overload(), idle(), reports()}
}

// workloadControllers are those that care for Deployments.
func workloadControllers() []string { return []string{"deployment", "replicaset"} }

// Bench is what a scenario measures with.
type Bench struct {
	*lab.Lab
	Given   product.Given
	Product *product.Installation
	// Quick asks for small sizes.
	Quick bool
	// Cores is what the API server and etcd may use each while overload measures; 0: each
	// quota that it has.
	Cores float64
	// Say tells the person at the terminal what is going on.
	Say func(format string, args ...any)
}

// Size is how many, in a full run and in a quick one.
func (b *Bench) Size(full, quick int) int {
	if b.Quick {
		return quick
	}
	return full
}

// Started runs measure with the product started, and stops it.
func (b *Bench) Started(ctx context.Context, o product.Options, measure func() error) error {
	if err := b.Product.Start(ctx, o); err != nil {
		return err
	}
	if err := measure(); err != nil {
		_ = b.Product.Stop() // the first error is the one to know
		return err
	}
	return b.Product.Stop()
}

// Spent measures the milliseconds of CPU that each process takes while something is done.
func (b *Bench) Spent(do func() error) (map[string]float64, error) {
	before, err := b.cpu()
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	spent, err := b.cpu()
	for role := range spent {
		spent[role] -= before[role]
	}
	return spent, err
}

func (b *Bench) cpu() (map[string]float64, error) {
	spent := map[string]float64{}
	for role, process := range b.Product.Processes() {
		seconds, err := process.CPU()
		if err != nil {
			return nil, err
		}
		spent[role] = 1000 * seconds
	}
	return spent, nil
}

// roles are the names of a product's processes, in its own order.
func roles(i *product.Installation) []string {
	var names []string
	for _, role := range i.Adapter.Roles(product.Options{}) {
		names = append(names, role.Name)
	}
	return names
}

// path is that of a namespace's Deployments, or of one of them.
func path(namespace string, name ...string) string {
	return strings.Join(append([]string{"/apis/apps/v1/namespaces", namespace, "deployments"}, name...), "/")
}
