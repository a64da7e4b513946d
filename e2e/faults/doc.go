// Package faults breaks the product, its connections and its cluster in every
// way that could be thought of, and has package judge prove the invariants I1 to
// I6, and P1, P2, P4 and P5 of pins, on what the API server itself tells.
//
// A scenario is one small file, <what_is_broken>_test.go: it begins a Trial
// (trial.go), lets its user do things (user.go), breaks something, and asks for a
// verdict. TestRandom (random_test.go) makes its scenarios up, from a seed: schedule.go
// has what users do, pinner.go what those do who pin, pinned.go what pins have come to.
// Start reading at Trial; the Witness (witness.go) is what the judge believes.
package faults
