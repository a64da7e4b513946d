package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
	"github.com/configstamp/configstamp/e2e/bench/scenario"
	"github.com/configstamp/configstamp/e2e/harness"
)

// run is one run of the command, with its flags.
type run struct {
	scenarios, products, productArgs []string
	out                              string
	quick, list, keep                bool
	cores                            float64

	dir    string
	report report.Report
}

func command() *cobra.Command {
	var b run
	c := &cobra.Command{
		Use:           "bench",
		Short:         "Measure configstamp and others on an embedded Kubernetes, and write one report",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return b.run(c.Context(), c.OutOrStdout()) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&b.scenarios, "scenario", nil, "measure these alone; empty: all")
	flags.StringSliceVar(&b.products, "product", []string{"configstamp"}, "what to measure: configstamp (built from this checkout), or name=/path/to/binary; repeatable, also with two binaries of one name")
	flags.StringArrayVar(&b.productArgs, "product-arg", nil, "name=--flag=value, a further argument of each process of a product; repeatable")
	flags.StringVar(&b.out, "out", "../../dist/bench", "directory of the report")
	flags.BoolVar(&b.quick, "quick", false, "small sizes, for development")
	flags.BoolVar(&b.list, "list", false, "list the scenarios and end")
	flags.BoolVar(&b.keep, "keep", false, "keep logs and other files of the run")
	flags.Float64Var(&b.cores, "apiserver-cores", 0, "overload: so many cores each for the API server and etcd, such as 0.5, by cgroups; needs root; 0: one quota after the other")
	return c
}

func (b *run) run(ctx context.Context, out io.Writer) (err error) {
	if b.list {
		for _, s := range scenario.All() {
			fmt.Fprintf(out, "%-20s %s\n", s.Name, s.Title)
		}
		return nil
	}
	scenarios, err := b.chosen()
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "configstamp-bench-"); err != nil {
		return fmt.Errorf("making a directory for the run: %w", err)
	}
	if !b.keep {
		defer func() { _ = os.RemoveAll(b.dir) }() // whatever stays is in the directory for temporary files
	}
	b.report = report.Report{Date: time.Now(), Commit: commit(ctx), Quick: b.quick}
	products, err := b.given(ctx)
	if err != nil {
		return err
	}
	failed := 0
	for _, s := range scenarios {
		for _, given := range products {
			failed += b.one(ctx, s, given)
			if err := b.report.Write(b.out); err != nil || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
		}
	}
	fmt.Fprintf(out, "the report is in %s\n", filepath.Join(b.out, "report.md"))
	if failed > 0 {
		return fmt.Errorf("%d scenarios failed; the report says why, and --keep keeps the logs", failed)
	}
	return nil
}

func (b *run) chosen() ([]scenario.Scenario, error) {
	all := scenario.All()
	if len(b.scenarios) == 0 {
		return all, nil
	}
	var chosen []scenario.Scenario
	for _, name := range b.scenarios {
		at := slices.IndexFunc(all, func(s scenario.Scenario) bool { return s.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("--scenario=%s: there is none of that name; --list lists them", name)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

// given finds the products, and builds ours where no binary is given.
func (b *run) given(ctx context.Context) ([]product.Given, error) {
	var all []product.Given
	for _, text := range b.products {
		name, binary, _ := strings.Cut(text, "=")
		adapter, err := product.Find(name)
		if err != nil {
			return nil, err
		}
		given := product.Given{Adapter: adapter, Binary: binary, Called: text}
		switch {
		case binary != "":
			if _, err := os.Stat(binary); err != nil {
				return nil, fmt.Errorf("--product=%s: %w", text, err)
			}
		case name == "configstamp":
			given.Binary = filepath.Join(b.dir, name)
			if err := harness.BuildPlain(ctx, given.Binary, b.report.Commit, b.report.Commit); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("--product=%s: give %s=/path/to/binary", text, name)
		}
		for _, text := range b.productArgs {
			if of, arg, _ := strings.Cut(text, "="); of == name {
				given.Args = append(given.Args, arg)
			}
		}
		all = append(all, given)
	}
	return all, nil
}

// one runs a scenario for a product, and returns how many failed: 0 or 1. What goes wrong with
// it stands in the report; the other scenarios run all the same.
func (b *run) one(ctx context.Context, s scenario.Scenario, given product.Given) int {
	result := &report.Result{Scenario: s.Name, Title: s.Title, Method: s.Method, Product: given.Called, Load: report.Load()}
	b.report.Results = append(b.report.Results, result)
	begin := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "bench: %s, %s, %4.0fs: %s\n", s.Name, given.Called, time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
	err := b.measure(ctx, s, &scenario.Bench{Given: given, Quick: b.quick, Cores: b.cores, Say: say}, result)
	for _, skipped := range result.Skipped {
		say("SKIPPED: %s", skipped)
	}
	if err != nil {
		result.Failed = err.Error()
		say("FAILED: %v", err)
		return 1
	}
	say("done")
	return 0
}

func (b *run) measure(ctx context.Context, s scenario.Scenario, bench *scenario.Bench, result *report.Result) (err error) {
	if bench.Lab, err = lab.Up(ctx, b.dir, s.Controllers...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	if bench.Product, err = product.Install(ctx, bench.Lab, bench.Given); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bench.Product.Stop()) }()
	return s.Run(ctx, bench, result)
}

// commit is that of this checkout.
func commit(ctx context.Context) string {
	root, err := harness.Root()
	if err != nil {
		return "unknown"
	}
	command := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
