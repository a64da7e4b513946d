// Command mutants proves that tests can fail: it breaks the product in every way of
// CONFIGSTAMP_E2E_BREAK (e2e/harness/breakage.go), one after the other, and runs the
// tests that mutants.tsv names for it. A way with which they pass is an error.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/configstamp/configstamp/e2e/harness"
)

//go:embed mutants.tsv
var table string

func main() {
	only := pflag.String("only", ".", "the ways to try, a regular expression")
	in := pflag.String("in", "", "run these instead of what the table names, such as './e2e Policy_WhatIsHeld'")
	pflag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *only, *in)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, in string) error {
	ways, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("reading --only: %w", err)
	}
	trials, err := harness.ReadTrials(table)
	if err != nil {
		return err
	}
	missed := 0
	for _, trial := range trials {
		if !ways.MatchString(string(trial.Way)) {
			continue
		}
		if in != "" {
			trial.Package, trial.Tests, _ = strings.Cut(in, " ")
		}
		began := time.Now()
		caught, err := try(ctx, trial)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			missed++
			fmt.Printf("%-22s NOT CAUGHT by %s -run '%s' (%.0f s): %v\n", trial.Way, trial.Package, trial.Tests, time.Since(began).Seconds(), err)
			continue
		}
		fmt.Printf("%-22s caught by %s (%.0f s): %s\n", trial.Way, trial.Package, time.Since(began).Seconds(), some(caught))
	}
	if missed > 0 {
		return fmt.Errorf("%d ways were not caught", missed)
	}
	return nil
}

// some are the first of the tests that have failed.
func some(names []string) string {
	const shown = 4
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// failed finds the names of tests, without their subtests, that have failed.
var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// try runs the tests of a trial with the product broken, and returns those that have
// failed; an error when none has.
func try(ctx context.Context, trial harness.Trial) ([]string, error) {
	args := []string{"test", "-count=1", "-run", trial.Tests}
	env := append(os.Environ(), harness.EnvBreak+"="+string(trial.Way))
	if strings.HasPrefix(trial.Package, "./e2e") {
		env = append(env, harness.EnvEnabled+"=1") // the harness builds the product
	} else {
		dir, err := os.MkdirTemp("", "configstamp-mutant-")
		if err != nil {
			return nil, fmt.Errorf("making a place for the changed file: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		overlay, err := harness.Overlay(dir, trial.Way)
		if err != nil {
			return nil, err
		}
		args = append(args, "-overlay", overlay)
	}
	command := exec.CommandContext(ctx, "go", append(args, trial.Package)...)
	command.Env = env
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	out, err := command.CombinedOutput()
	var names []string
	for _, match := range failed.FindAllStringSubmatch(string(out), -1) {
		if !slices.Contains(names, match[1]) {
			names = append(names, match[1])
		}
	}
	switch {
	case err == nil:
		return nil, errors.New("all passed")
	case len(names) == 0:
		return nil, fmt.Errorf("no test ran to its end: %w\n%s", err, out)
	}
	return names, nil
}
