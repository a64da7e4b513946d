// Command bench measures configstamp, and other products beside it, on an
// embedded Kubernetes, against floors measured in the same run, and writes one
// report. It gives the same answer to anyone: see README.md.
//
// Start reading at scenario/scenario.go.
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
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
