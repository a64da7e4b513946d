// Package judge proves the invariants I1 to I6 of the design, and P1, P2, P4 and P5 of pins, on
// what an API server told of a run, after the fact. It knows neither cluster nor product:
// the digests that are right, and what a template references, are worked out
// here and in package harness from the design alone.
//
// Start reading at History (history.go); then Judge (judge.go), which walks
// through the life of each workload; contents.go is the order in which each
// source held what; objects.go compares what only the user may change (I4);
// pins.go is about Pods and what they read, collected.go about snapshots that go, undone.go
// about undos; secrecy.go looks for content (I6).
package judge
