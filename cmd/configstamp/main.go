// Command configstamp is the server: "webhook" stamps workloads at their
// admission, "controller" re-admits those whose sources changed.
//
// main is wiring alone. root.go lists the commands. Flags are declared and checked in
// options.go; webhook.go and controller.go put the parts of each process together;
// impact.go adds impact warnings to the controller, snapshots.go has it keep snapshots;
// process.go is what both share, serving.go their certificate and probes, metrics.go
// their metrics, memory.go how garbage is collected.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // windows name time zones, and an image need not have them
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := tuneMemory(os.Getenv)
	if err == nil {
		err = rootCommand().ExecuteContext(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "configstamp:", err)
		os.Exit(1)
	}
}
