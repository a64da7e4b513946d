// Package rollout decides when workloads roll. It is pure: it has no client, goroutine,
// lock or clock. Facts go in, orders come out; the controller sees, asks and does.
//
// A change is one source going from one content to another. It rolls one workload
// first, then twice as many each time those have become healthy, and halts when one
// fails. All changes together keep within a budget of rollouts that are under way.
//
// The words:
//   - A workload waits (waiter) in a queue of one of its changes, until its turn is
//     granted. Then its patch is sent, and it has an attempt: a rollout that is followed.
//   - An attempt counts for some changes (counts). When it fails, it stops them.
//   - All that is known of one workload is its record. Plan.update alone changes one, and
//     keeps queues, tallies and slots true.
//   - A slot is one rollout of the budget. A tally is what a change counts of its
//     workloads.
//   - A group is the copies of a replicated ConfigMap that change together.
//
// It knows package checksum and the types of package workload alone. It never speaks to
// the API server, tells people nothing and counts no metrics.
//
// Read it in this order:
//   - What goes in and comes out: facts.go (facts and verdicts), limits.go and budget.go
//     (how much may roll at once), plan.go (Plan, edits, new leaders).
//   - What is known: record.go (of a workload), change.go (of an edited source), group.go
//     (of its copies).
//   - May it roll now? hold.go, with settle.go (its sources rest), pace.go (it has not
//     rolled too often) and nodes.go (it lacks nothing but nodes).
//   - Whose turn is it? next.go (all changes), first.go (one change), queue.go (the order
//     within it), timers.go (what time brings).
//   - It rolls: turn.go (waiting, granted, sent, refused).
//   - How does it do? follow.go, with find.go (rollouts that others began), health.go, soak.go
//     (for how long it has to be well), looks.go and pods.go (when pods are listed, and what they show).
//   - It fails: halt.go (what keeps a halt, and what ends it). decline.go: an undo halts, too.
//
// Planner is to take the place of Plan, and is not wired yet. It counts everything anew in each
// cycle, over what looks have shown and a small memory. Read state.go (the states, and what is
// remembered of a workload), planner.go (what it is told), observe.go (what a look shows), await.go
// (what a workload waits for), then cycle.go (what is done each time), with opened.go (an open
// change, and what is counted), watch.go (verdicts) and infer.go (what a new leader finds).
package rollout
