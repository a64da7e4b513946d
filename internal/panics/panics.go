// Package panics says where a panic came from, and nothing of what it holds.
package panics

import (
	"fmt"
	"runtime"
	"strconv"
)

// Where says where a panic came from, innermost first. It names places alone: what
// panicked, and the arguments in debug.Stack, may hold content or a key. It is to
// be called by the deferred function itself.
func Where() []string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)]) // without itself and its caller
	var places []string
	for {
		frame, more := frames.Next()
		places = append(places, frame.Function+":"+strconv.Itoa(frame.Line))
		if !more {
			return places
		}
	}
}

// What is the type of what panicked: its text may hold content.
func What(value any) string { return fmt.Sprintf("%T", value) }
