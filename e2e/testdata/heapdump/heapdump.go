// This file is laid over cmd/configstamp for one test (go build -overlay): the
// real process, which has no debug endpoint, then writes a heap dump beside its
// binary when it gets SIGUSR1.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
)

func init() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
			for range 3 { // pools are emptied by the second
				runtime.GC()
			}
			debug.FreeOSMemory()
			name := fmt.Sprintf("%s.heap.%d", os.Args[0], os.Getpid())
			file, err := os.Create(name + ".part")
			if err != nil {
				panic(err)
			}
			debug.WriteHeapDump(file.Fd())
			if err := file.Close(); err != nil {
				panic(err)
			}
			if err := os.Rename(name+".part", name); err != nil {
				panic(err)
			}
		}
	}()
}
