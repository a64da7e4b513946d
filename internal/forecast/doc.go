// Package forecast foresees what an edit of sources does: which workloads roll, in which
// order and steps, which do not, and why, and for about how long it goes on.
//
// It is pure: it has no client, goroutine, lock or clock. It makes no rule of its own:
// package checksum tells whom an edit concerns, and the plan of package rollout gives the
// turns, at a virtual time, to workloads that all become healthy after their usual time.
// What nobody can foresee is left out: failures, other edits, and rollouts of other changes.
//
// Who has a Ring and contents, as the controller has, asks Question.Brief: it costs about
// 10 µs for each user of what is edited. The kubectl plugin has neither: it makes a world by
// Suppose, and asks Question.Answer, which costs about 50 µs for each.
//
// The words:
//   - An edit is one source going from one content to another, or from or to nothing.
//   - A question is some edits, and all workloads that may use what is edited.
//   - Who holds neither the digest key nor any content supposes them: a world in which
//     every record is true until the edit.
//
// Read it in this order:
//   - What goes in and comes out: question.go, answer.go, and suppose.go (what is supposed).
//   - Whom it concerns: concern.go.
//   - When they roll: run.go (the virtual time), with agenda.go (what is next in it) and
//     app.go (a workload in it).
package forecast
