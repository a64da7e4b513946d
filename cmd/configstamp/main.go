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
	"strconv"
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

// memoryLimit is the environment variable that tells what the container may take, in
// bytes. The chart sets it; where the container has no limit, the kubelet tells what
// the node can give, which never matters.
const memoryLimit = envPrefix + "MEMORY_LIMIT"

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

// tuneMemory tells the garbage collector what there is. It works harder from nine
// tenths of the limit on: the rest is for what Go does not count, such as the data
// of the program and the buffers of its connections. GOGC and GOMEMLIMIT, where
// they are set, are Go's own and win.
func tuneMemory(getenv func(string) string) error {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	text := getenv(memoryLimit)
	if text == "" || getenv("GOMEMLIMIT") != "" {
		return nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return fmt.Errorf("%s=%q: want a number of bytes, such as 268435456", memoryLimit, text)
	}
	debug.SetMemoryLimit(limit / 10 * 9)
	return nil
}
