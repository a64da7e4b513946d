package main

import (
	"fmt"
	"runtime/debug"
	"strconv"
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
