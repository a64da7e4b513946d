// Package podtruth decides what running pods really have: what the sources hold now, or
// content from before.
//
// It is pure: it has no client, goroutine, lock or clock. It must not know who asks. The
// controller asks for its metrics, and gives what it has seen itself (Memory, Pod.Proven).
// The kubectl plugin has neither, and asks by what the API server tells at one moment.
//
// The words:
//   - A use is one container that uses one source in one way (How).
//   - A container holds a source's content if it has what the source holds now.
//   - A container is proven to have a content by the moment at which it started. What was
//     read at a start stays until the next one, so a proof lasts as long as the container.
//
// The rules stand as a table in docs/pods.md.
//
// Read it in this order: pod.go (the facts), read.go (which containers use what), match.go
// (what a stamp says now), memory.go (what the leader has seen of a source), judge.go (the
// rules), why.go (the reasons, in one sentence each).
package podtruth
