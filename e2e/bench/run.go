package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
	"github.com/configstamp/configstamp/e2e/bench/scenario"
	"github.com/configstamp/configstamp/e2e/harness"
)

// options are the flags.
type options struct {
	scenarios, products, productArgs []string
	out                              string
	quick, list, keep                bool
	cores                            float64
}

func command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:           "bench",
		Short:         "Measure configstamp and others on an embedded Kubernetes, and write one report",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return o.run(c.Context(), c.OutOrStdout()) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.scenarios, "scenario", nil, "measure these alone; empty: all")
	flags.StringSliceVar(&o.products, "product", []string{"configstamp"}, "what to measure: configstamp (built from this checkout), or name=/path/to/binary; repeatable")
	flags.StringArrayVar(&o.productArgs, "product-arg", nil, "name=--flag=value, a further argument of each process of a product; repeatable")
	flags.StringVar(&o.out, "out", "../../dist/bench", "directory of the report")
	flags.BoolVar(&o.quick, "quick", false, "small sizes, for development")
	flags.BoolVar(&o.list, "list", false, "list the scenarios and end")
	flags.BoolVar(&o.keep, "keep", false, "keep logs and other files of the run")
	flags.Float64Var(&o.cores, "apiserver-cores", 0, "overload: so many cores each for the API server and etcd, such as 0.5, by cgroups; needs root; 0: one quota after the other")
	return c
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	if o.list {
		for _, s := range scenario.All() {
			fmt.Fprintf(out, "%-20s %s\n", s.Name, s.Title)
		}
		return nil
	}
	scenarios, err := o.chosen()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "configstamp-bench-")
	if err != nil {
		return fmt.Errorf("making a directory for the run: %w", err)
	}
	if !o.keep {
		defer func() { _ = os.RemoveAll(dir) }() // whatever stays is in the directory for temporary files
	}
	commit := git(ctx, "describe", "--tags", "--always", "--dirty")
	products, err := o.given(ctx, dir, commit)
	if err != nil {
		return err
	}
	b := &run{options: o, dir: dir, report: &report.Report{
		Command: commandLine(), Date: time.Now(), Commit: commit, Quick: o.quick, Machine: report.ThisMachine(),
	}}
	for _, given := range products {
		b.report.Products = append(b.report.Products, report.Product{Name: given.Adapter.Name, Version: given.Version, Args: given.Args})
	}
	for _, s := range scenarios {
		for _, given := range products {
			if err := b.one(ctx, s, given); err != nil {
				return err
			}
		}
	}
	return b.conclude(out)
}

func (o *options) chosen() ([]scenario.Scenario, error) {
	if len(o.scenarios) == 0 {
		return scenario.All(), nil
	}
	var chosen []scenario.Scenario
	for _, name := range o.scenarios {
		found := false
		for _, s := range scenario.All() {
			if s.Name == name {
				chosen, found = append(chosen, s), true
			}
		}
		if !found {
			return nil, fmt.Errorf("--scenario=%s: there is none of that name; --list lists them", name)
		}
	}
	return chosen, nil
}

// given finds the products, and builds ours.
func (o *options) given(ctx context.Context, dir, commit string) ([]product.Given, error) {
	var all []product.Given
	for _, text := range o.products {
		name, binary, _ := strings.Cut(text, "=")
		adapter, err := product.Find(name)
		if err != nil {
			return nil, err
		}
		given := product.Given{Adapter: adapter, Binary: binary}
		if name == "configstamp" && binary == "" {
			given.Binary, given.Version = filepath.Join(dir, "configstamp"), commit+", built from this checkout"
			if err := harness.BuildPlain(ctx, given.Binary, commit, commit); err != nil {
				return nil, err
			}
		} else if given.Version, err = fingerprint(binary); err != nil {
			return nil, fmt.Errorf("--product=%s: %w; give %s=/path/to/binary", text, err, name)
		}
		for _, text := range o.productArgs {
			if of, arg, _ := strings.Cut(text, "="); of == name {
				given.Args = append(given.Args, arg)
			}
		}
		all = append(all, given)
	}
	return all, nil
}

// run is one run of the command.
type run struct {
	*options
	dir    string
	report *report.Report
}

// one runs a scenario for a product. What goes wrong with it stands in the
// report; the other scenarios run all the same.
func (b *run) one(ctx context.Context, s scenario.Scenario, given product.Given) error {
	result := &report.Result{Scenario: s.Name, Title: s.Title, Method: s.Method, Product: given.Adapter.Name, Load: report.Load()}
	b.report.Results = append(b.report.Results, result)
	begin := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "bench: %s, %s, %4.0fs: %s\n", s.Name, given.Adapter.Name, time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
	err := b.measure(ctx, s, &scenario.Bench{Given: given, Quick: b.quick, Cores: b.cores, Say: say}, result)
	result.Seconds = time.Since(begin).Seconds()
	if ctx.Err() != nil {
		result.Failed = "interrupted"
		return errors.Join(fmt.Errorf("interrupted: %w", context.Cause(ctx)), b.report.Write(b.out))
	}
	if err != nil {
		result.Failed = err.Error()
		say("FAILED: %v", err)
	}
	for _, skipped := range result.Skipped {
		say("SKIPPED: %s", skipped)
	}
	say("done")
	return b.report.Write(b.out)
}

func (b *run) measure(ctx context.Context, s scenario.Scenario, bench *scenario.Bench, result *report.Result) (err error) {
	if bench.Lab, err = lab.Up(ctx, b.dir, s.Controllers...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	b.report.Machine.Kubernetes = bench.Version()
	if bench.Product, err = product.Install(ctx, bench.Lab, bench.Given); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bench.Product.Stop()) }()
	return s.Run(ctx, bench, result)
}

// conclude says how it went. A scenario that failed, unlike a target that was
// missed, fails the run.
func (b *run) conclude(out io.Writer) error {
	failed := 0
	for _, p := range b.report.Products {
		t := b.report.Tally(p.Name)
		failed += t.Failed
		fmt.Fprintf(out, "%s: %d targets reached, %d missed, %d measurements SKIPPED, %d scenarios FAILED\n", p.Name, t.Reached, t.Missed, t.Skipped, t.Failed)
	}
	fmt.Fprintf(out, "the report is in %s\n", filepath.Join(b.out, "report.md"))
	if failed > 0 {
		return fmt.Errorf("%d scenarios failed; %s says why, and --keep keeps the logs", failed, filepath.Join(b.out, "report.md"))
	}
	return nil
}

// commandLine is how to repeat the run, whatever built this program. Where
// things were on this machine is nobody's business.
func commandLine() string {
	line := []string{"go -C e2e/bench run ."}
	for _, arg := range os.Args[1:] {
		if name, path, _ := strings.Cut(arg, "/"); strings.HasPrefix(arg, "/") || strings.HasSuffix(name, "=") {
			arg = name + "/path/to/" + filepath.Base(path)
		}
		line = append(line, arg)
	}
	return strings.Join(line, " ")
}

func git(ctx context.Context, args ...string) string {
	root, err := harness.Root()
	if err != nil {
		return "unknown"
	}
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
