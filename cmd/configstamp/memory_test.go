package main

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for name, c := range map[string]struct {
		environment map[string]string
		want        int64 // bytes
		refused     bool
	}{
		"none":                {nil, math.MaxInt64, false},
		"the container's":     {map[string]string{memoryLimit: "268435456"}, 268435456 / 10 * 9, false},
		"Go's own wins":       {map[string]string{memoryLimit: "268435456", "GOMEMLIMIT": "1GiB"}, math.MaxInt64, false},
		"a quantity of bytes": {map[string]string{memoryLimit: "256Mi"}, math.MaxInt64, true},
		"nothing at all":      {map[string]string{memoryLimit: "0"}, math.MaxInt64, true},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(math.MaxInt64)
			err := tuneMemory(func(name string) string { return c.environment[name] })
			if got := debug.SetMemoryLimit(-1); got != c.want || (err != nil) != c.refused {
				t.Errorf("%d bytes, %v; want %d, refused: %t", got, err, c.want, c.refused)
			}
		})
	}
}
