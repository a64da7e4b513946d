// Package impact tells whom an edit of sources concerns: which workloads roll, how many of
// them at first, which a setting holds, which do not roll, and why. It does not tell when.
//
// It is pure: it has no client, goroutine, lock or clock. It makes no rule of its own:
// package checksum tells whom an edit concerns, package rollout what holds a workload.
// What nobody can foresee is left out: failures, other edits, and rollouts of other changes.
//
// The words:
//   - An edit is one source going from one content to another, or from or to nothing.
//   - A question is some edits, and all workloads that may use what is edited.
//
// Read it in this order: question.go and answer.go (what goes in and comes out), concern.go
// (whom it concerns).
package impact
