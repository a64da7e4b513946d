// Command configstamp is the server: "webhook" stamps workloads at their
// admission, "controller" has those looked at again whose sources changed, "check"
// asks the webhooks as the API server does.
//
// main is wiring alone. root.go lists the commands. Flags are declared and checked in
// options.go; webhook.go and controller.go put the parts of each process together;
// process.go is what both share, serving.go their certificate and probes, metrics.go
// their metrics. check.go is the third command.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // windows name time zones, and an image need not have them
)

// gcPercent is how much memory may grow, in percent of what is in use, before
// garbage is collected, unless the environment sets GOGC. While the caches fill,
// each source is read and condensed to a hundredth: with Go's default of 100
// that garbage is a fifth of the peak (10,000 Secrets of 20 KiB, in one run: 56 MiB
// with 100, 46 with 50, 43 with 25), and collecting it more often costs a third of
// a CPU second.
const gcPercent = 25

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "configstamp:", err)
		os.Exit(1)
	}
}
