package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/rules"
)

// envPrefix and a flag's name in capitals, "-" as "_", is the environment
// variable that gives the flag's value when the flag is not on the command line.
const envPrefix = "CONFIGSTAMP_"

// maxVerbosity is the most that may be logged: from 8 on client-go writes the
// bodies of requests and answers, Secrets among them.
const maxVerbosity = 7

// common are the options of both processes.
type common struct {
	serving
	rules.Flags
	kubeconfig string
	namespace  string
	name       string
	keyGrace   time.Duration
	logFormat  string
	verbosity  int
}

func (o *common) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; empty: the Pod's service account")
	flags.StringVar(&o.namespace, "namespace", "configstamp", "configstamp's own namespace")
	flags.StringVar(&o.name, "name", "configstamp", "name of this installation, its Service and its webhook configurations; with -key and -authority appended, of its Secrets; with -controller, of its Lease")
	flags.DurationVar(&o.keyGrace, "key-grace", time.Minute, "how long configstamp waits before it uses a newer key")
	o.Add(flags)
	o.serving.add(flags)
	flags.StringVar(&o.logFormat, "log-format", "json", "format of the log on standard error: json or text")
	flags.IntVarP(&o.verbosity, "v", "v", 0, fmt.Sprintf("verbosity: 0: what an operator acts on; 2: each admission; 4: client-go; at most %d", maxVerbosity))
}

func (o *common) check() error {
	errs := []error{o.serving.check()}
	if problems := validation.IsDNS1123Label(o.namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--namespace: %q cannot be a namespace: %s", o.namespace, strings.Join(problems, "; ")))
	}
	if _, err := o.Rules(); err != nil {
		errs = append(errs, err)
	}
	if o.logFormat != "json" && o.logFormat != "text" {
		errs = append(errs, fmt.Errorf("--log-format=%s: want json or text", o.logFormat))
	}
	if o.verbosity < 0 || o.verbosity > maxVerbosity {
		errs = append(errs, fmt.Errorf("-v=%d: want 0 to %d; beyond that client-go logs the bodies of Secrets", o.verbosity, maxVerbosity))
	}
	if o.keyGrace < 0 {
		errs = append(errs, fmt.Errorf("--key-grace=%s: want no less than 0s", o.keyGrace))
	}
	return errors.Join(errs...)
}

// mayServe reports whether anything in a namespace can be opted in.
func (o *common) mayServe(namespace string) bool { return o.MayServe(o.namespace, namespace) }

// logger makes the structured log of the process, which client-go's goes to as well.
func (o *common) logger() klog.Logger {
	// logr's verbosity n is slog's level -n.
	options := &slog.HandlerOptions{Level: slog.Level(-o.verbosity)}
	var handler slog.Handler = slog.NewJSONHandler(os.Stderr, options)
	if o.logFormat == "text" {
		handler = slog.NewTextHandler(os.Stderr, options)
	}
	log := logr.FromSlogHandler(handler)
	klog.SetLoggerWithOptions(log, klog.ContextualLogger(true))
	return log
}

// run is what each command does: read its flags, check them, and start what they
// ask for, with a logger in its context.
func run(o *common, check func() error, start func(context.Context) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		if err := fromEnvironment(command); err != nil {
			return err
		}
		if err := check(); err != nil {
			return err
		}
		return start(klog.NewContext(command.Context(), o.logger()))
	}
}

// fromEnvironment gives every flag that was not set the value of its
// environment variable, and tells of it in the flag's help.
func fromEnvironment(command *cobra.Command) error {
	var errs []error
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		value, ok := os.LookupEnv(envName(flag))
		if !ok || flag.Changed {
			return
		}
		if err := command.Flags().Set(flag.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", envName(flag), err))
		}
	})
	return errors.Join(errs...)
}

func envName(flag *pflag.Flag) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
}

// describeEnvironment adds its environment variable to each flag's help. It lists flags as they are declared,
// because their texts refer to their neighbours.
func describeEnvironment(command *cobra.Command) {
	command.Flags().SortFlags = false
	command.Flags().VisitAll(func(flag *pflag.Flag) { flag.Usage += " [$" + envName(flag) + "]" })
}
