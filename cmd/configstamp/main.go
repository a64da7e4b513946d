// Command configstamp is the server: "webhook" stamps workloads at their
// admission, "controller" has those looked at again whose sources changed.
//
// main is wiring alone. Flags are declared and checked in options.go; webhook.go
// and controller.go put the parts of each process together; process.go is what
// both share.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "configstamp:", err)
		os.Exit(1)
	}
}
